package rights

import (
	"slices"

	"github.com/sluicegate/sluice/internal/definition"
)

// Rate admits Calls in Per seconds.
type Rate struct {
	Calls float64 `json:"rate"` // 0: none is set; -1: unlimited
	Per   float64 `json:"per"`  // seconds
	Scope string  `json:"scope"`
	From  Origin  `json:"from"`
}

// Quota admits Max calls in a period. Quotas of one Scope share a counter: "" is the
// key, otherwise the scope is the id of an API or of a policy.
type Quota struct {
	Max         int64  `json:"quota_max"`                        // 0: none is set; -1: unlimited
	Renewal     int64  `json:"quota_renewal_rate"`               // seconds; 0: it never renews
	Calendar    string `json:"quota_renewal_calendar,omitempty"` // hour, day, week or month, in place of Renewal; "": it renews by Renewal
	Zone        string `json:"quota_renewal_zone,omitempty"`     // of Calendar; "" is UTC
	Scope       string `json:"scope"`
	From        Origin `json:"from"`
	RenewalFrom Origin `json:"renewal_from"`
}

// Throttle is how often a call over its rate is tried again, and the wait before each
// retry.
type Throttle struct {
	Interval     float64 `json:"throttle_interval"` // seconds
	Retries      int     `json:"throttle_retry_limit"`
	IntervalFrom Origin  `json:"interval_from"`
	RetriesFrom  Origin  `json:"retries_from"`
}

// A group is a part of a session that a policy writes as a whole.
type group uint8

const (
	acl group = iota
	rates
	quotas
	complexity
	groups
)

// partitioned reports whether a policy writes some groups only.
func partitioned(p *definition.Policy) bool {
	parts := p.Partitions
	return parts.Quota || parts.RateLimit || parts.Complexity || parts.ACL
}

// written reports whether a policy writes the group.
func (g group) written(p *definition.Policy) bool {
	if !partitioned(p) {
		return true
	}
	switch g {
	case acl:
		return p.Partitions.ACL
	case rates:
		return p.Partitions.RateLimit
	case quotas:
		return p.Partitions.Quota
	}
	return p.Partitions.Complexity
}

// writes reports whether a policy decides the group for this key. If some policies
// enforce the group and others are report-only, only the former do; if only the key
// itself has limits, no policy does. A report-only policy neither loosens nor tightens
// the limits that are enforced.
func (r *Rights) writes(g group, p *definition.Policy) bool {
	return g.written(p) && p.ReportOnly() != r.enforced[g]
}

// ReportOnly names, for each kind of rule, the report-only policy in whose name refusals
// are counted and logged; "" if the rule refuses.
type ReportOnly struct {
	Access     string `json:"access,omitempty"` // APIs, versions, paths, fields, and rates of single calls
	Rate       string `json:"rate,omitempty"`
	Quota      string `json:"quota,omitempty"`
	Complexity string `json:"complexity,omitempty"`
}

// ReportOnly returns which of the key's rules do not refuse: those that only report-only
// policies write, and that the key does not set itself. If there are several policies,
// the first is named.
func (r *Rights) ReportOnly() ReportOnly {
	var m ReportOnly
	for _, p := range slices.Backward(r.applied) {
		if !p.ReportOnly() {
			continue
		}
		for g, name := range [groups]*string{acl: &m.Access, rates: &m.Rate, quotas: &m.Quota, complexity: &m.Complexity} {
			if r.writes(group(g), p) {
				*name = p.Key()
			}
		}
	}
	return m
}

// A claim is the limits that one source, the key or a policy, sets for calls to an
// API.
type claim struct {
	*definition.Limits
	scope string
	from  Origin
}

// usual is the largest number of claims that is common.
const usual = 4

// claims appends to buffer the claims of all sources that apply to a group and an API,
// in order. set reports whether limits set the group.
//
// A policy applies if it writes the group and lists the API, or lists no API at all.
// If policies write the group but none applies, as with one that only lists other
// APIs, the limits of all of them do. The key applies if no policy writes the group.
func (r *Rights) claims(buffer []claim, g group, api string, set func(*definition.Limits) bool) []claim {
	written, found := false, false
	for _, p := range r.applied {
		if !r.writes(g, p) {
			continue
		}
		written = true
		entry, listed := p.AccessRights[api]
		if !listed && len(p.AccessRights) > 0 {
			continue
		}
		found = true
		if c, ok := r.ofPolicy(p, entry, api, set); ok {
			buffer = append(buffer, c)
		}
	}
	switch {
	case found:
		return buffer
	case written:
		return r.ofAll(buffer, g, set)
	}
	return r.ofKey(buffer, api, set)
}

// ofAll appends to buffer the claims of all policies that write a group.
func (r *Rights) ofAll(buffer []claim, g group, set func(*definition.Limits) bool) []claim {
	for _, p := range r.applied {
		if r.writes(g, p) && set(&p.Limits) {
			buffer = append(buffer, claim{Limits: &p.Limits, from: Origin{Kind: Policy, ID: p.Key()}})
		}
	}
	return buffer
}

// ofPolicy appends the claims of a policy: its entry for the API before its own
// limits. Limits of an entry are counted for that API alone. Those of the policy are
// counted under its id if they are meant per API, or if several policies have their
// own list of APIs; otherwise they are counted for the key as a whole.
func (r *Rights) ofPolicy(p *definition.Policy, entry *definition.Access, api string, set func(*definition.Limits) bool) (claim, bool) {
	id := p.Key()
	if entry != nil && entry.Limit != nil && set(&entry.Limit.Limits) {
		return claim{Limits: &entry.Limit.Limits, scope: api, from: Origin{Kind: PolicyEntry, ID: id}}, true
	}
	c := claim{Limits: &p.Limits, from: Origin{Kind: Policy, ID: id}}
	ownList := r.lists > 1 && r.writes(acl, p) && len(p.AccessRights) > 0
	if p.Partitions.PerAPI || ownList {
		c.scope = id
	}
	return c, set(&p.Limits)
}

// ofKey appends to buffer the claims of the key: its entry for the API, unless the
// entries are from policies, before its own limits.
func (r *Rights) ofKey(buffer []claim, api string, set func(*definition.Limits) bool) []claim {
	if r.lists == 0 {
		if e := r.Session.AccessRights[api]; e != nil && e.Limit != nil && set(&e.Limit.Limits) {
			return append(buffer, claim{Limits: &e.Limit.Limits, scope: api, from: Origin{Kind: KeyEntry}})
		}
	}
	if set(&r.Session.Limits) {
		return append(buffer, claim{Limits: &r.Session.Limits, from: Origin{Kind: Key}})
	}
	return buffer
}

// sets reports whether a rate is set: to a limit or to unlimited.
func sets(rate, per float64) bool { return rate < 0 || rate > 0 && per > 0 }

// freer reports whether r admits more calls in the long run than other.
func (r Rate) freer(other Rate) bool {
	switch {
	case other.Calls < 0:
		return false
	case r.Calls < 0:
		return true
	}
	return r.Per*other.Calls < other.Per*r.Calls
}

func (r *Rights) rate(api string) Rate {
	var buffer [usual]claim
	won := Rate{From: Origin{Kind: Default}}
	for i, c := range r.claims(buffer[:0], rates, api, func(l *definition.Limits) bool { return sets(l.Rate, l.Per) }) {
		one := Rate{Calls: c.Rate, Per: c.Per, Scope: c.scope, From: c.from}
		if i == 0 || one.freer(won) {
			won = one
		}
	}
	if won.Calls < 0 {
		won.Calls, won.Per = -1, 0
	}
	return won
}

func (r *Rights) quota(api string) Quota {
	var buffer [usual]claim
	won := Quota{From: Origin{Kind: Default}, RenewalFrom: Origin{Kind: Default}}
	for _, c := range r.claims(buffer[:0], quotas, api, func(l *definition.Limits) bool { return l.QuotaMax != 0 }) {
		// Of equal ones the smaller id decides, so that the choice of the counter does
		// not depend on the order of policies.
		tie := c.QuotaMax == won.Max && c.from.ID < won.From.ID
		if tie || larger(c.QuotaMax, won.Max) {
			won.Max, won.Scope, won.From = c.QuotaMax, c.scope, c.from
			won.Calendar, won.Zone = "", ""
			if c.Limits.Renewal.On() {
				won.Calendar, won.Zone = c.Limits.Renewal.Every, c.Limits.Renewal.Zone
			}
		}
		if c.QuotaRenewalRate > won.Renewal {
			won.Renewal, won.RenewalFrom = c.QuotaRenewalRate, c.from
		}
	}
	if won.Max < 0 { // an unlimited quota does not renew
		won.Max, won.Renewal, won.RenewalFrom = -1, 0, won.From
		won.Calendar, won.Zone = "", ""
	}
	if won.Calendar != "" { // the calendar belongs to this quota, and replaces any period
		won.Renewal, won.RenewalFrom = 0, won.From
	}
	return won
}

// complexity sets the limits on the size of an operation.
func (r *Rights) complexity(a *Access) {
	a.Depth = largest(r, a.API, func(l *definition.Limits) int { return l.MaxQueryDepth })
	a.Aliases = largest(r, a.API, func(l *definition.Limits) int { return l.MaxQueryAliases })
	a.RootFields = largest(r, a.API, func(l *definition.Limits) int { return l.MaxQueryRootFields })
	a.Directives = largest(r, a.API, func(l *definition.Limits) int { return l.MaxQueryDirectives })
	a.Tokens = largest(r, a.API, func(l *definition.Limits) int { return l.MaxQueryTokens })
	a.Cost = largest(r, a.API, func(l *definition.Limits) int64 { return l.MaxQueryCost })
}

// largest returns the largest value that the claims on an API have for one number of
// the complexity group. Each number is inherited separately.
func largest[T int | int64](r *Rights, api string, of func(*definition.Limits) T) Value[T] {
	var buffer [usual]claim
	won := Value[T]{From: Origin{Kind: Default}}
	for _, c := range r.claims(buffer[:0], complexity, api, func(l *definition.Limits) bool { return of(l) != 0 }) {
		if n := of(c.Limits); larger(n, won.Value) {
			won = Value[T]{Value: max(n, -1), From: c.from}
		}
	}
	return won
}

func (r *Rights) throttle(api string) Throttle {
	var buffer [usual]claim
	won := Throttle{IntervalFrom: Origin{Kind: Default}, RetriesFrom: Origin{Kind: Default}}
	set := func(l *definition.Limits) bool { return l.ThrottleInterval != 0 || l.ThrottleRetryLimit != 0 }
	for i, c := range r.claims(buffer[:0], rates, api, set) {
		if i == 0 || c.ThrottleInterval > won.Interval {
			won.Interval, won.IntervalFrom = c.ThrottleInterval, c.from
		}
		if i == 0 || c.ThrottleRetryLimit > won.Retries {
			won.Retries, won.RetriesFrom = c.ThrottleRetryLimit, c.from
		}
	}
	return won
}

// larger compares limits: a negative one is unlimited and therefore the largest, 0 is
// not set and therefore the smallest.
func larger[T int | int64](a, b T) bool { return b >= 0 && (a < 0 || a > b) }
