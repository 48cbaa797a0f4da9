package definition

import (
	"github.com/sluicegate/sluice/internal/definition/object"
)

// What is stored may be older than a rule about it, and is served on as before. Rules of
// this file therefore are about what is being saved; Validate has those that hold always.

// ParseNewPolicy is ParsePolicy for a policy that is to be saved: its Warnings are
// problems.
func ParseNewPolicy(data []byte) (*Policy, error) {
	p, err := ParsePolicy(data)
	return p, withWarnings(err, p.Warnings())
}

// ParseNewSession is ParseSession for a session that is to be saved: its Warnings are
// problems.
func ParseNewSession(data []byte) (*Session, error) {
	s, err := ParseSession(data)
	return s, withWarnings(err, s.Warnings())
}

// withWarnings adds warnings to the problems of the same object.
func withWarnings(err error, warnings []Problem) error {
	problems, ok := err.(*Problems)
	switch {
	case err != nil && !ok:
		return err
	case !ok:
		problems = new(Problems)
	}
	all := Problems(warnings)
	for _, one := range *problems {
		all.add(one)
	}
	return all.err()
}

// Warnings lists what is served, but probably not as intended, such as a negative rate,
// which limits nothing. Such a policy is not saved.
func (p *Policy) Warnings() []Problem {
	var all Problems
	parts := p.Partitions
	for _, one := range []struct {
		name string
		on   bool
	}{
		{"quota", parts.Quota}, {"rate_limit", parts.RateLimit}, {"complexity", parts.Complexity}, {"acl", parts.ACL},
	} {
		if one.on && parts.PerAPI {
			all.addf("partitions."+one.name, "must be false beside per_api, under which each API has limits of its own: no key could use the policy; make two policies, or drop one of the two members")
		}
	}
	all.warnOfRights(&p.Limits, p.AccessRights)
	for i, access := range p.AccessList {
		if access != nil {
			all.warnOfAccess(object.Item("access_rights_array", i), access)
		}
	}
	return all
}

// Warnings lists what is served, but probably not as intended, such as a negative rate,
// which limits nothing. Such a session is not saved.
func (s *Session) Warnings() []Problem {
	var all Problems
	all.warnOfRights(&s.Limits, s.AccessRights)
	return all
}

func (p *Problems) warnOfRights(l *Limits, rights map[string]*Access) {
	p.warnOfLimits("", l)
	for _, id := range object.SortedKeys(rights) {
		if rights[id] != nil {
			p.warnOfAccess(object.Entry("access_rights", id), rights[id])
		}
	}
}

func (p *Problems) warnOfAccess(path string, access *Access) {
	if access.Limit != nil {
		p.warnOfLimits(path+".limit", &access.Limit.Limits)
	}
	for i, e := range access.Endpoints {
		for j, m := range e.Methods {
			p.warnOfRate(object.Item(object.Item(path+".endpoints", i)+".methods", j)+".limit", m.Limit.Rate, m.Limit.Per)
		}
	}
}

func (p *Problems) warnOfLimits(path string, l *Limits) {
	p.warnOfRate(path, l.Rate, l.Per)
	if l.QuotaMax < -1 {
		p.addf(object.Member(path, "quota_max"), "must not be negative: it would limit nothing; 0 sets no quota, -1 is unlimited")
	}
}

// warnOfRate reports a negative rate. -1 is unlimited (behaviour C.5).
func (p *Problems) warnOfRate(path string, rate, per float64) {
	if rate < 0 && rate != -1 {
		p.addf(object.Member(path, "rate"), "must not be negative: it would limit nothing; 0 sets no rate, -1 is unlimited")
	}
	if per < 0 && per != -1 {
		p.addf(object.Member(path, "per"), "must not be negative: the rate would limit nothing; it is the length of the period in seconds")
	}
}

// warnOfRates reports negative rates that all callers of an API share.
func (p *Problems) warnOfRates(a *API) {
	if r := a.GlobalRateLimit; r != nil && !r.Disabled {
		p.warnOfRate("global_rate_limit", r.Rate, r.Per)
	}
	if a.VersionData == nil {
		return
	}
	for _, name := range object.SortedKeys(a.VersionData.Versions) {
		v := a.VersionData.Versions[name]
		for i := range v.Extended().RateLimits {
			one := &v.Extended().RateLimits[i]
			if !one.Disabled {
				p.warnOfRate(object.Item(object.Entry("version_data.versions", name)+".extended_paths.rate_limit", i), one.Rate, one.Per)
			}
		}
	}
}
