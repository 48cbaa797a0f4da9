package observe

import (
	"github.com/sluicegate/sluice/gateway/usage"
	contract "github.com/sluicegate/sluice/internal/usage"
)

// call counts a call for the admin. Calls that match no API are in the metrics only.
func (m *meter) call(o *observed) {
	ex := o.ex
	one := usage.Call{
		API: m.callsOf(ex.API.Definition.OrgID), Key: ex.KeyHash, Name: ex.KeyName,
		Status: o.status, End: ex.Started.Add(o.total), Total: o.total,
	}
	if ex.Rejection != nil {
		one.Reason = ex.Rejection.Reason
	}
	if ex.Upstream.Address != "" {
		one.Upstream = max(ex.Upstream.Duration, 0)
	}
	m.observer.calls.Count(&one)
}

// callsOf returns the identity under which calls of the API are counted. It is a new
// one when the API has moved to another organisation.
func (m *meter) callsOf(org string) *usage.APICalls {
	was := m.calls.Load()
	if was != nil && was.Org() == org {
		return was
	}
	next := usage.NewAPICalls(m.api, org, m.latencies)
	if was != nil {
		next.SkipLatencies()
	}
	m.calls.CompareAndSwap(was, next)
	return m.calls.Load()
}

// latencies returns how many calls took how long.
func (m *meter) latencies() (l contract.Latencies) {
	s := m.counts.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range l {
		l[i] = int64(s.times.buckets[i][partTotal])
	}
	return l
}
