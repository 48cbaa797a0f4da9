package keys

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/rights"
)

// Get returns the session of a key, and its hash. The caller owns the session. It is
// as stored, but with the remaining quotas, and for a key with policies with the
// limits that apply to all of its calls in place of its own, which have no effect.
// Passwords and secrets are left out.
func (k *Service) Get(ctx context.Context, ref Ref) (*definition.Session, string, error) {
	found, hash, err := k.find(ctx, ref)
	if err != nil {
		return nil, "", err
	}
	session := found.Clone()
	Hide(session)
	may, err := rights.Effective(found, k.Policies())
	if err != nil {
		return session, k.Options.Hasher.Listed(hash), nil // a key that cannot be used has no used quota
	}
	return session, k.Options.Hasher.Listed(hash), k.fill(ctx, session, may, hash)
}

// Hide removes from a session what nobody may see: passwords, secrets and legacy hashes.
// The session must be the caller's own.
func Hide(s *definition.Session) {
	s.Hide()
	if s.Extra == nil {
		return
	}
	s.Extra.SuccessorOf = maskLegacy(s.Extra.SuccessorOf)
	for i := range s.Extra.Keys {
		s.Extra.Keys[i].Hash = maskLegacy(s.Extra.Keys[i].Hash)
	}
}

func maskLegacy(hash string) string {
	if credential.IsLegacy(hash) {
		return credential.Masked(hash)
	}
	return hash
}

// Preview returns a session with its policies applied. It stores nothing, and does not
// change s.
func (k *Service) Preview(s *definition.Session) (*definition.Session, error) {
	session, may, err := k.accept(s, nil)
	if err != nil {
		return nil, err
	}
	session.Hide()
	k.general(session, may)
	session.IsInactive = may.Inactive.Value
	session.Tags = values(may.Tags)
	if len(may.Meta) > 0 {
		session.MetaData = make(map[string]json.RawMessage, len(may.Meta))
		for name, v := range may.Meta {
			session.MetaData[name] = v.Value
		}
	}
	if len(may.Policies) > 0 {
		session.AccessRights = make(map[string]*definition.Access)
		for _, id := range may.APIs() {
			if a, ok := may.For(id); ok {
				session.AccessRights[id] = entryOf(a)
			}
		}
	}
	return session, nil
}

// entryOf returns the access rights of a key for one API as an access entry.
func entryOf(a *rights.Access) *definition.Access {
	e := &definition.Access{
		APIID: a.API, Versions: values(a.Versions), AllowedURLs: values(a.AllowedURLs),
		RestrictedTypes: values(a.RestrictedTypes), AllowedTypes: values(a.AllowedTypes),
		DisableIntrospection: a.DisableIntrospection.Value, TrustedDocumentsOnly: a.TrustedDocumentsOnly.Value,
		AllowanceScope: a.Quota.Scope,
	}
	for _, f := range a.FieldAccess {
		e.FieldAccessRights = append(e.FieldAccessRights, f.Value)
	}
	e.Limit = &definition.AccessLimit{Limits: limitsOf(a), QuotaRemaining: max(a.Quota.Max, 0)}
	return e
}

func limitsOf(a *rights.Access) definition.Limits {
	return definition.Limits{
		Renewal: calendarOf(a.Quota),
		Rate:    a.Rate.Calls, Per: a.Rate.Per,
		ThrottleInterval: a.Throttle.Interval, ThrottleRetryLimit: a.Throttle.Retries,
		QuotaMax: a.Quota.Max, QuotaRenewalRate: a.Quota.Renewal,
		MaxQueryDepth: a.Depth.Value, MaxQueryAliases: a.Aliases.Value, MaxQueryRootFields: a.RootFields.Value,
		MaxQueryDirectives: a.Directives.Value, MaxQueryTokens: a.Tokens.Value, MaxQueryCost: a.Cost.Value,
	}
}

// calendarOf returns the calendar by which a quota renews, or nil.
func calendarOf(q rights.Quota) *definition.Calendar {
	if q.Calendar == "" {
		return nil
	}
	return &definition.Calendar{Every: q.Calendar, Zone: q.Zone}
}

func values[T any](items []rights.Item[T]) []T {
	var all []T
	for _, i := range items {
		all = append(all, i.Value)
	}
	return all
}

// general sets the limits of a session with policies to those that apply to all calls:
// those of its APIs, if they are counted together. It returns the quota among them, or
// false if there is none.
func (k *Service) general(session *definition.Session, may *rights.Rights) (rights.Quota, bool) {
	apis := may.APIs()
	if len(may.Policies) == 0 || len(apis) == 0 {
		own := rights.Quota{Max: session.QuotaMax, Renewal: session.QuotaRenewalRate}
		return own, own.Max > 0
	}
	first, _ := may.For(apis[0])
	l := limitsOf(first)
	sameRate, sameQuota := true, true
	limits := []definition.Limits{l}
	for _, id := range apis[1:] {
		a, _ := may.For(id)
		sameRate = sameRate && a.Rate == first.Rate
		sameQuota = sameQuota && a.Quota == first.Quota
		limits = append(limits, limitsOf(a))
	}
	if sameRate {
		session.Rate, session.Per = l.Rate, l.Per
		session.ThrottleInterval, session.ThrottleRetryLimit = l.ThrottleInterval, l.ThrottleRetryLimit
	}
	if sameQuota {
		session.QuotaMax, session.QuotaRenewalRate, session.Renewal = l.QuotaMax, l.QuotaRenewalRate, l.Renewal
	}
	for _, one := range complexity {
		if same(limits, one) {
			*one(&session.Limits) = *one(&l)
		}
	}
	if same(limits, queryCost) {
		session.MaxQueryCost = l.MaxQueryCost
	}
	return first.Quota, sameQuota && first.Quota.Max > 0
}

// A gauge is a quota whose counter is read, and the members that receive the result.
type gauge struct {
	limit counter.Limit
	into  []reading
}

type reading struct{ remaining, renews *int64 }

type gauges []gauge

// add adds a counter to read, once even if it is added again.
func (all *gauges) add(limit counter.Limit, into reading) {
	for i := range *all {
		if one := &(*all)[i]; one.limit.Key == limit.Key {
			one.into = append(one.into, into)
			return
		}
	}
	*all = append(*all, gauge{limit, []reading{into}})
}

// fill reads the counters of a key's quotas and sets what remains of them.
func (k *Service) fill(ctx context.Context, session *definition.Session, may *rights.Rights, hash string) error {
	var all gauges
	session.QuotaRemaining = 0
	if q, ok := k.general(session, may); ok {
		whole := rights.Access{Quota: q}
		limit, _ := whole.QuotaLimit(k.Naming, hash)
		all.add(limit, reading{&session.QuotaRemaining, &session.QuotaRenews})
	}
	for _, id := range sortedKeys(session.AccessRights) {
		e := session.AccessRights[id]
		a, ok := may.For(id)
		if !ok {
			continue
		}
		e.AllowanceScope = a.Quota.Scope
		if e.Limit == nil {
			continue
		}
		e.Limit.QuotaRemaining = 0
		limit, ok := a.QuotaLimit(k.Naming, hash)
		if ok && a.Quota.From.Kind == rights.KeyEntry {
			all.add(limit, reading{&e.Limit.QuotaRemaining, &e.Limit.QuotaRenews})
		}
	}
	states := k.quotas(may)
	for i := range states {
		a, _ := may.For(states[i].APIs[0])
		limit, _ := a.QuotaLimit(k.Naming, hash)
		all.add(limit, reading{&states[i].QuotaRemaining, &states[i].QuotaRenews})
	}
	session.SetQuotas(states)
	for some := range slices.Chunk(all, counter.MaxLimits) {
		if err := k.read(ctx, some); err != nil {
			return fmt.Errorf("reading the quotas of a key: %w", err)
		}
	}
	return nil
}

// quotas returns the quotas of a key by what they are counted for, as if nothing of them
// was used; none if all calls are counted together.
func (k *Service) quotas(may *rights.Rights) (states []definition.QuotaState) {
	for _, id := range may.APIs() {
		a, ok := may.For(id)
		if !ok || a.Quota.Max <= 0 {
			continue
		}
		at := slices.IndexFunc(states, func(s definition.QuotaState) bool { return s.Scope == a.Quota.Scope })
		if at < 0 {
			at = len(states)
			l := limitsOf(a)
			states = append(states, definition.QuotaState{
				Scope: a.Quota.Scope, QuotaMax: l.QuotaMax, QuotaRenewalRate: l.QuotaRenewalRate, Renewal: l.Renewal,
				QuotaRemaining: l.QuotaMax, QuotaRenews: renewalOf(&l, k.Now()),
			})
		}
		states[at].APIs = append(states[at].APIs, id)
	}
	if len(states) == 1 && states[0].Scope == "" {
		return nil
	}
	return states
}

// read reads counters. A period that has not begun renews as the session says.
func (k *Service) read(ctx context.Context, some gauges) error {
	limits := make([]counter.Limit, len(some))
	for i, g := range some {
		limits[i] = g.limit
	}
	counts := make([]counter.Count, len(some))
	if err := k.Counter.Peek(ctx, limits, counts); err != nil {
		return err
	}
	for i, g := range some {
		for _, into := range g.into {
			*into.remaining = counts[i].Remaining
			if counts[i].ResetAt > 0 {
				*into.renews = (counts[i].ResetAt + 999) / 1000 // as in responses to clients
			}
		}
	}
	return nil
}

// complexity returns the numbers of the complexity group.
var complexity = []func(*definition.Limits) *int{
	func(l *definition.Limits) *int { return &l.MaxQueryDepth },
	func(l *definition.Limits) *int { return &l.MaxQueryAliases },
	func(l *definition.Limits) *int { return &l.MaxQueryRootFields },
	func(l *definition.Limits) *int { return &l.MaxQueryDirectives },
	func(l *definition.Limits) *int { return &l.MaxQueryTokens },
}

func queryCost(l *definition.Limits) *int64 { return &l.MaxQueryCost }

// same reports whether a number is the same in all limits.
func same[T comparable](limits []definition.Limits, of func(*definition.Limits) *T) bool {
	for i := range limits {
		if *of(&limits[i]) != *of(&limits[0]) {
			return false
		}
	}
	return true
}
