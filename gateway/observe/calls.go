package observe

import (
	"github.com/sluicegate/sluice/gateway/observe/rollup"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition/usage"
)

// call counts a call for the admin. Those that no API took are nobody's: only
// metrics have them.
func (m *meter) call(o *observed) {
	ex := o.ex
	one := rollup.Call{
		API: m.callsOf(ex.API.Definition.OrgID), Key: ex.KeyHash, Name: ex.KeyName,
		Status: o.status, End: ex.Started.Add(o.total), Total: o.total,
	}
	if ex.Grant != nil && !ex.HasGuest() {
		one.Seat = &ex.Grant.Calls
	}
	if ex.Rejection != nil {
		one.Reason = uint8(ex.Rejection.Reason)
	}
	if ex.Upstream.Address != "" {
		one.Upstream = max(ex.Upstream.Duration, 0)
	}
	m.observer.calls.Count(&one)
}

// callsOf returns where the calls of the API are counted, anew when the API has
// moved to another organisation.
func (m *meter) callsOf(org string) *rollup.API {
	was := m.calls.Load()
	if was != nil && was.Org() == org {
		return was
	}
	next := rollup.NewAPI(m.api, org, m)
	if was != nil {
		next.SkipLatencies()
	}
	m.calls.CompareAndSwap(was, next)
	return m.calls.Load()
}

// Latencies implements rollup.Meter.
func (m *meter) Latencies() (l usage.Latencies) {
	s := m.counts.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range l {
		l[i] = int64(s.times.buckets[i][partTotal])
	}
	return l
}

// ReasonName implements rollup.Meter.
func (m *meter) ReasonName(reason uint8) string { return pipeline.Reason(reason).String() }
