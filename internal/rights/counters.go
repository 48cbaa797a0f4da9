package rights

import (
	"math"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
)

// longest bounds a period, in milliseconds: 100 years, which counters can hold.
const longest = 100 * 365 * 24 * 3600 * 1000

// RateLimit returns the limit for the rate of calls of a key to the API, or false if
// there is none. subject is the key's hash. An update of the key starts a new counter.
func (a *Access) RateLimit(n counter.Naming, subject string) (counter.Limit, bool) {
	if a.Rate.Calls <= 0 || a.Rate.Per <= 0 {
		return counter.Limit{}, false
	}
	return RateOf(n.Rate(a.Rate.Scope, subject, a.stamp), a.Rate.Calls, a.Rate.Per), true
}

// RateOf returns the limit for a number of calls in a number of seconds, both above 0.
func RateOf(key string, calls, per float64) counter.Limit {
	if calls < 1 { // half a call per second is one in two seconds
		calls, per = 1, per/calls
	}
	return counter.Limit{
		Key: key, Kind: counter.Rate,
		Max: int64(min(calls, counter.MaxRate)), Period: millis(max(per*1000, 1)),
	}
}

// EndpointNames build the names of the counters that one key has for the endpoints of
// an API.
type EndpointNames struct {
	naming              counter.Naming
	api, subject, stamp string
}

// EndpointNames returns the names for a key; subject is its hash. An update of the key
// starts new counters.
func (a *Access) EndpointNames(n counter.Naming, subject string) EndpointNames {
	return EndpointNames{naming: n, api: a.API, subject: subject, stamp: a.stamp}
}

// Limit returns the limit for calls to one of the API's Endpoints, which applies in
// addition to the key's rate.
func (n EndpointNames) Limit(e *EndpointRate) counter.Limit {
	scope := n.api + ":" + e.Method + ":" + e.Path // no id has a colon in it
	return RateOf(n.naming.Rate(scope, n.subject, n.stamp), e.Rate.Calls, e.Rate.Per)
}

// QuotaLimit returns the limit for the quota of calls of a key to the API, or false if
// there is none. A quota that renews by the calendar has the longest possible period:
// the caller has to set how much of it is left.
func (a *Access) QuotaLimit(n counter.Naming, subject string) (counter.Limit, bool) {
	if a.Quota.Max <= 0 {
		return counter.Limit{}, false
	}
	l := counter.Limit{
		Key:    n.Quota(a.Quota.Scope, subject),
		Kind:   counter.Quota,
		Max:    min(a.Quota.Max, counter.MaxQuota),
		Period: millis(float64(max(a.Quota.Renewal, 0)) * 1000),
	}
	if unit, ok := definition.ParseCalendarUnit(a.Quota.Calendar); ok {
		l.Period = unit.Longest()
	}
	return l, true
}

func millis(n float64) time.Duration {
	return time.Duration(math.Round(min(n, longest))) * time.Millisecond
}

// QuotaScopes returns the scopes under which quotas of the key may be counted, each
// once. The first is "", the key as a whole.
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
