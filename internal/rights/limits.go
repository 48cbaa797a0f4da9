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

// Quota admits Max calls in a period. Values of one Scope are counted together,
// those of different scopes apart: "" is the key, else the id of an API or of a
// policy.
type Quota struct {
	Max         int64  `json:"quota_max"`                        // 0: none is set; -1: unlimited
	Renewal     int64  `json:"quota_renewal_rate"`               // seconds; 0: it never renews
	Calendar    string `json:"quota_renewal_calendar,omitempty"` // hour, day, week or month, in place of Renewal; "": it renews by that
	Zone        string `json:"quota_renewal_zone,omitempty"`     // of Calendar; "" is UTC
	Scope       string `json:"scope"`
	From        Origin `json:"from"`
	RenewalFrom Origin `json:"renewal_from"`
}

// Throttle is how a call over its rate waits and tries again.
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

// partitioned tells whether a policy writes some groups only.
func partitioned(p *definition.Policy) bool {
	parts := p.Partitions
	return parts.Quota || parts.RateLimit || parts.Complexity || parts.ACL
}

// written tells whether a policy writes the group.
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

// writes tells whether a policy decides on the group for this key. Where some
// policies enforce it and others measure it, only those that enforce it do, and
// where only the key itself holds somebody back, none does: what is on trial
// neither loosens nor tightens what holds.
func (r *Rights) writes(g group, p *definition.Policy) bool {
	return g.written(p) && p.Measures() != r.enforced[g]
}

// Measured names, for each kind of rule, the policy on whose behalf it is counted
// and logged what the rule would refuse; "" where the rule refuses.
type Measured struct {
	Access     string `json:"access,omitempty"` // APIs, versions, paths, fields, and rates of single calls
	Rate       string `json:"rate,omitempty"`
	Quota      string `json:"quota,omitempty"`
	Complexity string `json:"complexity,omitempty"`
}

// Measured tells which of the key's rules do not refuse: those that only policies
// on trial write, and of which the key says nothing itself. Of several policies
// the first is named.
func (r *Rights) Measured() Measured {
	var m Measured
	for _, p := range slices.Backward(r.applied) {
		if !p.Measures() {
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

// A claim is what one place says about the limits of calls to an API.
type claim struct {
	*definition.Limits
	scope string
	from  Origin
}

// usual is how many claims there usually are, at most.
const usual = 4

// claims appends to room what every place that has a say in a group says about an
// API, in order. set tells whether limits say anything about the group.
//
// A policy has a say when it writes the group and lists the API, or lists none
// at all. Where policies write the group but none has a say, as beside a policy
// that only lists APIs, the numbers of all of them hold. The key is heard when
// no policy writes the group.
func (r *Rights) claims(room []claim, g group, api string, set func(*definition.Limits) bool) []claim {
	written, heard := false, false
	for _, p := range r.applied {
		if !r.writes(g, p) {
			continue
		}
		written = true
		entry, listed := p.AccessRights[api]
		if !listed && len(p.AccessRights) > 0 {
			continue
		}
		heard = true
		if c, ok := r.ofPolicy(p, entry, api, set); ok {
			room = append(room, c)
		}
	}
	switch {
	case heard:
		return room
	case written:
		return r.ofAll(room, g, set)
	}
	return r.ofKey(room, api, set)
}

// ofAll appends to room the claims of all policies that write a group.
func (r *Rights) ofAll(room []claim, g group, set func(*definition.Limits) bool) []claim {
	for _, p := range r.applied {
		if r.writes(g, p) && set(&p.Limits) {
			room = append(room, claim{Limits: &p.Limits, from: Origin{Kind: Policy, ID: p.Key()}})
		}
	}
	return room
}

// ofPolicy is what a policy says: its entry for the API before its own numbers.
// Limits of an entry are counted for that API alone. Those of the policy are
// counted under its id when they are meant per API, or when several policies
// bring their own list of APIs; otherwise for the key as a whole.
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

// ofKey appends to room what the key says: its entry for the API, unless policies
// brought the entries, before its own numbers.
func (r *Rights) ofKey(room []claim, api string, set func(*definition.Limits) bool) []claim {
	if r.lists == 0 {
		if e := r.Session.AccessRights[api]; e != nil && e.Limit != nil && set(&e.Limit.Limits) {
			return append(room, claim{Limits: &e.Limit.Limits, scope: api, from: Origin{Kind: KeyEntry}})
		}
	}
	if set(&r.Session.Limits) {
		return append(room, claim{Limits: &r.Session.Limits, from: Origin{Kind: Key}})
	}
	return room
}

// sets tells whether a rate limits, or says that it does not.
func sets(rate, per float64) bool { return rate < 0 || rate > 0 && per > 0 }

// freer tells whether r admits more calls in the long run than other.
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
	var room [usual]claim
	won := Rate{From: Origin{Kind: Default}}
	for i, c := range r.claims(room[:0], rates, api, func(l *definition.Limits) bool { return sets(l.Rate, l.Per) }) {
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
	var room [usual]claim
	won := Quota{From: Origin{Kind: Default}, RenewalFrom: Origin{Kind: Default}}
	for _, c := range r.claims(room[:0], quotas, api, func(l *definition.Limits) bool { return l.QuotaMax != 0 }) {
		// Of equal ones the lesser id decides, so that which counter is used does
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
	if won.Max < 0 { // a quota that nothing uses up has nothing to renew
		won.Max, won.Renewal, won.RenewalFrom = -1, 0, won.From
		won.Calendar, won.Zone = "", ""
	}
	if won.Calendar != "" { // it comes with the quota that won, and no period beside it
		won.Renewal, won.RenewalFrom = 0, won.From
	}
	return won
}

// complexity fills in how large an operation may be.
func (r *Rights) complexity(a *Access) {
	a.Depth = largest(r, a.API, func(l *definition.Limits) int { return l.MaxQueryDepth })
	a.Aliases = largest(r, a.API, func(l *definition.Limits) int { return l.MaxQueryAliases })
	a.RootFields = largest(r, a.API, func(l *definition.Limits) int { return l.MaxQueryRootFields })
	a.Directives = largest(r, a.API, func(l *definition.Limits) int { return l.MaxQueryDirectives })
	a.Tokens = largest(r, a.API, func(l *definition.Limits) int { return l.MaxQueryTokens })
	a.Cost = largest(r, a.API, func(l *definition.Limits) int64 { return l.MaxQueryCost })
}

// largest returns the largest of what the claims on an API say about one number
// of the complexity group. Each number is inherited for itself.
func largest[T int | int64](r *Rights, api string, of func(*definition.Limits) T) Value[T] {
	var room [usual]claim
	won := Value[T]{From: Origin{Kind: Default}}
	for _, c := range r.claims(room[:0], complexity, api, func(l *definition.Limits) bool { return of(l) != 0 }) {
		if n := of(c.Limits); larger(n, won.Value) {
			won = Value[T]{Value: max(n, -1), From: c.from}
		}
	}
	return won
}

func (r *Rights) throttle(api string) Throttle {
	var room [usual]claim
	won := Throttle{IntervalFrom: Origin{Kind: Default}, RetriesFrom: Origin{Kind: Default}}
	set := func(l *definition.Limits) bool { return l.ThrottleInterval != 0 || l.ThrottleRetryLimit != 0 }
	for i, c := range r.claims(room[:0], rates, api, set) {
		if i == 0 || c.ThrottleInterval > won.Interval {
			won.Interval, won.IntervalFrom = c.ThrottleInterval, c.from
		}
		if i == 0 || c.ThrottleRetryLimit > won.Retries {
			won.Retries, won.RetriesFrom = c.ThrottleRetryLimit, c.from
		}
	}
	return won
}

// larger compares limits: a negative one is unlimited and so the largest, 0 is
// none and so the smallest.
func larger[T int | int64](a, b T) bool { return b >= 0 && (a < 0 || a > b) }
