package rights

import (
	"math"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
)

// longest bounds a period, in milliseconds: 100 years, which counters can hold.
const longest = 100 * 365 * 24 * 3600 * 1000

// RateLimit returns the limit under which calls of a key to the API are counted
// as a rate, or false when there is none. subject is the key's hash. An update of
// the key starts a fresh one.
func (a *Access) RateLimit(n counter.Naming, subject string) (counter.Limit, bool) {
	if a.Rate.Calls <= 0 || a.Rate.Per <= 0 {
		return counter.Limit{}, false
	}
	calls, per := a.Rate.Calls, a.Rate.Per
	if calls < 1 { // half a call per second is one in two seconds
		calls, per = 1, per/calls
	}
	return counter.Limit{
		Key:    n.Rate(a.Rate.Scope, subject, a.stamp),
		Kind:   counter.Rate,
		Max:    int64(min(calls, counter.MaxRate)),
		Period: millis(max(per*1000, 1)),
	}, true
}

// QuotaLimit returns the limit under which calls of a key to the API are counted
// as a quota, or false when there is none.
func (a *Access) QuotaLimit(n counter.Naming, subject string) (counter.Limit, bool) {
	if a.Quota.Max <= 0 {
		return counter.Limit{}, false
	}
	return counter.Limit{
		Key:    n.Quota(a.Quota.Scope, subject),
		Kind:   counter.Quota,
		Max:    min(a.Quota.Max, counter.MaxQuota),
		Period: millis(float64(max(a.Quota.Renewal, 0)) * 1000),
	}, true
}

func millis(n float64) time.Duration {
	return time.Duration(math.Round(min(n, longest))) * time.Millisecond
}

// QuotaScopes returns the scopes under which quotas of the key may be counted,
// each once, beginning with "", the key as a whole.
func (r *Rights) QuotaScopes() []string {
	scopes := []string{""}
	seen := map[string]bool{"": true}
	for _, api := range r.APIs() {
		if q := r.quota(api); !seen[q.Scope] {
			seen[q.Scope] = true
			scopes = append(scopes, q.Scope)
		}
	}
	return scopes
}
