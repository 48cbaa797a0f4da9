package credentials

import (
	"context"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/rights"
)

// View is a key as developers see it. The key itself is not stored.
type View struct {
	// Id of the key, which names it in calls of the portal; it is no credential.
	ID string `json:"key_id"`
	// Kind of the credential: a key, the name and password of a user, or tokens of an OAuth client.
	Kind string `json:"auth_type" enum:"authToken,basic,oauth"`
	// Alias of the key; of a user the name.
	Alias string `json:"alias"`
	// Whether calls are allowed: active; switched off: inactive; expired; or unusable, because of what
	// its policies say together.
	State string `json:"state" enum:"active,inactive,expired,unusable"`
	// Policies of the key.
	Policies []Named `json:"policies"`
	// What the key may call, and how often.
	APIs []Allowance `json:"apis"`
	// Id of the key request that it came from; empty: of none.
	Request string `json:"request_id"`
	// Time at which it was made (RFC 3339).
	Created string `json:"date_created" format:"date-time"`
	// Time at which it expires (RFC 3339); empty: never.
	Expires string `json:"expires"`
	// Time at which the key before the newest ends (RFC 3339); empty: there is none.
	Grace string `json:"grace_until"`
}

// Named is a policy of a key.
type Named struct {
	// Id of the policy.
	ID string `json:"id"`
	// Name of the policy; empty: it is gone.
	Name string `json:"name"`
}

// Allowance is how often a key may call an API. A quota that APIs share is shown whole for
// each. Numbers of 0 or less are no limit.
type Allowance struct {
	// Id of the API.
	API string `json:"api_id"`
	// Calls allowed in per seconds; 0 or less: no limit.
	Rate float64 `json:"rate"`
	// Seconds that rate is of.
	Per float64 `json:"per"`
	// Levels that a GraphQL operation may have; 0 or less: no limit.
	Depth int `json:"max_query_depth"`
	// Calls allowed in a period; 0 or less: no quota.
	Quota int64 `json:"quota_max"`
	// Seconds after which the quota renews; 0: it does not, or by the calendar.
	Renewal int64 `json:"quota_renewal_rate"`
	// Period of the calendar in which the quota renews, in place of seconds: hour, day, week or month.
	Calendar string `json:"quota_renewal_calendar,omitempty"`
	// Calls of the period so far; null: not known at the moment, or no quota.
	Used *int64 `json:"quota_used"`
	// Calls that are left in the period; null: not known at the moment, or no quota.
	Remaining *int64 `json:"quota_remaining"`
	// Time at which the quota renews (RFC 3339); empty: no period is open.
	Renews string `json:"quota_renews"`
}

// PublicID returns the id of a key that people see: its hash, also where keys are stored
// in clear.
func (k *Keys) PublicID(hash string) string {
	return k.d.Options.Hasher.Shown(hash)
}

// An Owner is a developer of an organisation.
type Owner struct{ Org, Developer string }

// HashOf returns the hash under which the key with a public id is stored. It does not
// check that the owner has the key.
func (k *Keys) HashOf(ctx context.Context, q store.Reader, who Owner, id string) (string, error) {
	if k.d.Options.Hasher.Algorithm != credential.None {
		return id, nil
	}
	all, _, err := q.DeveloperKeys(ctx, who.Org, who.Developer, store.Page{Max: MaxKeys})
	for i := range all {
		if hash := all[i].Owner.KeyHash; k.PublicID(hash) == id {
			return hash, nil
		}
	}
	return "", err
}

// Keys returns one page of a developer's keys, oldest first, and their total number.
func (k *Keys) Keys(ctx context.Context, org, developer string, page store.Page) ([]View, int64, error) {
	rows, total, err := k.d.Store.Reader().DeveloperKeys(ctx, org, developer, page)
	if err != nil {
		return nil, 0, err
	}
	sessions := make([]*definition.Session, len(rows))
	var ids []string
	for i := range rows {
		if sessions[i], err = store.SessionOf(&rows[i].Key); err != nil {
			return nil, 0, err
		}
		ids = append(ids, sessions[i].Policies()...)
	}
	found, err := k.d.Store.FindPolicies(ctx, org, ids)
	if err != nil {
		return nil, 0, err
	}
	set, err := policySet(found)
	if err != nil {
		return nil, 0, err
	}
	views := make([]View, 0, len(rows))
	for i := range rows {
		views = append(views, k.view(ctx, &rows[i], sessions[i], &policyBodies{found, set}))
	}
	return views, total, nil
}

// policyBodies holds policies as they are stored and as a set.
type policyBodies struct {
	found map[string]store.RequestedPolicy
	set   *definition.PolicySet
}

func (k *Keys) view(ctx context.Context, row *store.DeveloperKey, s *definition.Session, policies *policyBodies) View {
	now := k.d.Now()
	v := View{
		ID: k.PublicID(row.Owner.KeyHash), Kind: sessionKind(s), Alias: s.Alias, State: "active",
		Policies: []Named{}, APIs: []Allowance{}, Request: row.Owner.RequestID,
		Created: row.Owner.CreatedAt.UTC().Format(time.RFC3339), Expires: timeOf(s.Expires), Grace: grace(s, now),
	}
	for _, id := range s.Policies() {
		v.Policies = append(v.Policies, Named{ID: id, Name: policies.found[id].Name})
	}
	may, err := rights.Effective(s, policies.set)
	switch {
	case err != nil:
		v.State = "unusable"
		return v
	case s.Expires > 0 && s.Expires <= now.Unix():
		v.State = "expired"
	case may.Inactive.Value:
		v.State = "inactive"
	}
	v.APIs = k.allowances(ctx, may, row.Owner.KeyHash)
	return v
}

// keyKind returns the kind of credential of a stored key.
func keyKind(key *store.Key) (string, error) {
	s, err := store.SessionOf(key)
	if err != nil {
		return "", err
	}
	return sessionKind(s), nil
}

func sessionKind(s *definition.Session) string {
	switch {
	case s.HasPassword():
		return Basic
	case s.OAuthClient() != "":
		return OAuth
	}
	return Token
}

func timeOf(seconds int64) string {
	if seconds <= 0 {
		return ""
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339)
}

// grace returns when the last predecessor of the key ends; "" for none.
func grace(s *definition.Session, now time.Time) string {
	last := int64(0)
	for _, c := range s.Credentials() {
		last = max(last, c.Retires)
	}
	if last <= now.Unix() {
		return ""
	}
	return timeOf(last)
}

// allowances returns the allowances of a key with the remaining quotas; without these if
// the counters are unavailable.
func (k *Keys) allowances(ctx context.Context, may *rights.Rights, hash string) []Allowance {
	apis := may.APIs()
	all := make([]Allowance, 0, len(apis))
	var limits []counter.Limit
	at := make(map[string][]int) // indexes of allowances, by counter
	for _, id := range apis {
		a, ok := may.For(id)
		if !ok {
			continue
		}
		all = append(all, Allowance{
			API: id, Rate: a.Rate.Calls, Per: a.Rate.Per, Depth: a.Depth.Value,
			Quota: a.Quota.Max, Renewal: a.Quota.Renewal, Calendar: a.Quota.Calendar,
		})
		limit, ok := a.QuotaLimit(k.d.Naming, hash)
		if !ok {
			continue
		}
		if at[limit.Key] == nil {
			limits = append(limits, limit)
		}
		at[limit.Key] = append(at[limit.Key], len(all)-1)
	}
	for some := range slices.Chunk(limits, counter.MaxLimits) {
		counts := make([]counter.Count, len(some))
		if err := k.d.Counters.Peek(ctx, some, counts); err != nil {
			k.d.Log.Warn("a key's quota could not be looked at", "key", shortHash(k.PublicID(hash)), "err", err)
			return all
		}
		for i, limit := range some {
			for _, j := range at[limit.Key] {
				all[j].fill(limit, counts[i])
			}
		}
	}
	return all
}

func (a *Allowance) fill(limit counter.Limit, c counter.Count) {
	used, left := max(limit.Max-c.Remaining, 0), c.Remaining
	a.Used, a.Remaining = &used, &left
	a.Renews = timeOf((c.ResetAt + 999) / 1000) // rounded up, as in the headers for clients
}

// shortHash returns the part of a hash that logs show.
func shortHash(hash string) string { return hash[:min(len(hash), 12)] }
