package observe

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

var wouldRefuse = describe("would_refuse_total", "Requests that a policy on trial (enforcement: measure) would have refused, by reason and policy.", "api", "reason", "policy")

// spared counts the refusals that were left out at one API, for the policies on
// trial, of which there are few.
type spared struct {
	mu     sync.RWMutex
	counts map[pipeline.Spared]*atomic.Uint64
}

// maxSpared bounds the series of one API.
const maxSpared = 1000

// note counts what an exchange was spared. It allocates at the first time of a
// reason and a policy only.
func (s *spared) note(ex *pipeline.Exchange) {
	for i := range ex.Spared {
		if ex.Spared[i].Reason == pipeline.ReasonNone {
			return
		}
		if n := s.of(ex.Spared[i]); n != nil {
			n.Add(1)
		}
	}
}

// of returns the counter of a reason and a policy, or nil when there are too many.
func (s *spared) of(one pipeline.Spared) *atomic.Uint64 {
	s.mu.RLock()
	n := s.counts[one]
	s.mu.RUnlock()
	if n != nil {
		return n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n = s.counts[one]; n == nil && len(s.counts) < maxSpared {
		if s.counts == nil {
			s.counts = make(map[pipeline.Spared]*atomic.Uint64)
		}
		n = new(atomic.Uint64)
		s.counts[one] = n
	}
	return n
}

func (s *spared) collect(ch chan<- prometheus.Metric, api string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for one, n := range s.counts {
		ch <- total(wouldRefuse, n.Load(), api, one.Reason.String(), validLabel(one.Policy))
	}
}

// noteSpared counts what an exchange was spared, if anything.
func (m *meter) noteSpared(ex *pipeline.Exchange) {
	if ex.Spared[0].Reason == pipeline.ReasonNone {
		return
	}
	s := m.spared.Load()
	if s == nil {
		m.spared.CompareAndSwap(nil, new(spared))
		s = m.spared.Load()
	}
	s.note(ex)
}

// appendSpared appends what a request was spared.
func appendSpared(b []byte, ex *pipeline.Exchange) []byte {
	if ex.Spared[0].Reason == pipeline.ReasonNone {
		return b
	}
	b = append(b, `,"would":[`...)
	for i := range ex.Spared {
		one := &ex.Spared[i]
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
