package observe

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/metrics"
)

var wouldRefuse = metrics.Describe("would_refuse_total", "Requests that a policy on trial (enforcement: measure) would have refused, by reason and policy.", "api", "reason", "policy")

// reportOnly counts, for one API, the requests that policies on trial would have
// refused.
type reportOnly struct {
	mu     sync.RWMutex
	counts map[pipeline.ReportOnlyRefusal]*atomic.Uint64
}

// maxReportOnly bounds the series of one API.
const maxReportOnly = 1000

// count counts the report-only refusals of an exchange. It allocates only for the first
// one of a reason and a policy.
func (s *reportOnly) count(ex *pipeline.Exchange) {
	for i := range ex.ReportOnly {
		if ex.ReportOnly[i].Reason == pipeline.ReasonNone {
			return
		}
		if n := s.counter(ex.ReportOnly[i]); n != nil {
			n.Add(1)
		}
	}
}

// counter returns the counter of a reason and a policy, or nil if there are too many.
func (s *reportOnly) counter(one pipeline.ReportOnlyRefusal) *atomic.Uint64 {
	s.mu.RLock()
	n := s.counts[one]
	s.mu.RUnlock()
	if n != nil {
		return n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n = s.counts[one]; n == nil && len(s.counts) < maxReportOnly {
		if s.counts == nil {
			s.counts = make(map[pipeline.ReportOnlyRefusal]*atomic.Uint64)
		}
		n = new(atomic.Uint64)
		s.counts[one] = n
	}
	return n
}

func (s *reportOnly) collect(ch chan<- prometheus.Metric, api string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for one, n := range s.counts {
		ch <- metrics.Counter(wouldRefuse, n.Load(), api, one.Reason.String(), metrics.Label(one.Policy))
	}
}

// countReportOnly counts the report-only refusals of an exchange, if there are any.
func (m *meter) countReportOnly(ex *pipeline.Exchange) {
	if ex.ReportOnly[0].Reason == pipeline.ReasonNone {
		return
	}
	s := m.reportOnly.Load()
	if s == nil {
		m.reportOnly.CompareAndSwap(nil, new(reportOnly))
		s = m.reportOnly.Load()
	}
	s.count(ex)
}

// appendReportOnly appends the report-only refusals of a request.
func appendReportOnly(b []byte, ex *pipeline.Exchange) []byte {
	if ex.ReportOnly[0].Reason == pipeline.ReasonNone {
		return b
	}
	b = append(b, `,"would":[`...)
	for i := range ex.ReportOnly {
		one := &ex.ReportOnly[i]
		if one.Reason == pipeline.ReasonNone {
			break
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMember(append(b, '{'), `"reason":"`, one.Reason.String())
		b = append(appendMember(b, `,"policy":"`, one.Policy), '}')
	}
	return append(b, ']')
}
