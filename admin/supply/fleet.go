package supply

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/admin/store"
)

// rewriteAfter is how old the record of a gateway may get that says the same
// with every poll.
const rewriteAfter = 20 * time.Second

// maxFleet bounds how many gateways are remembered between two writes.
const maxFleet = 10_000

// A fleet collects what gateways say, so that a poll costs no write.
type fleet struct {
	mu      sync.Mutex
	known   map[string]heardOf
	pending map[string]store.Gateway

	alive atomic.Int64 // gateways that some admin heard of lately
}

// heardOf is what was last handed on about a gateway.
type heardOf struct {
	status store.Gateway
	at     time.Time
}

func newFleet() *fleet {
	return &fleet{known: make(map[string]heardOf), pending: make(map[string]store.Gateway)}
}

// Heard notes what a gateway says of itself with its poll; the database has it
// within a second. A gateway without a name is left out.
func (s *Supply) Heard(g store.Gateway, now time.Time) {
	if g.Name == "" {
		return
	}
	f := s.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	last, known := f.known[g.Name]
	if known && last.status == g && now.Sub(last.at) < rewriteAfter {
		return
	}
	if !known && len(f.known) >= maxFleet {
		clear(f.known)
	}
	f.known[g.Name] = heardOf{status: g, at: now}
	if len(f.pending) < maxFleet {
		f.pending[g.Name] = g
	}
}

// take returns what is to be written, and forgets it.
func (f *fleet) take() []store.Gateway {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]store.Gateway, 0, len(f.pending))
	for _, g := range f.pending {
		list = append(list, g)
	}
	clear(f.pending)
	return list
}

// reportFleet writes what gateways say once a second, and forgets silent ones.
func (s *Supply) reportFleet() {
	for n := 0; pause(s.lifetime, time.Second); n++ {
		for _, g := range s.fleet.take() {
			s.putGateway(g)
		}
		if n%10 == 0 {
			s.countFleet()
		}
		if n%600 == 60 {
			s.dropGateways()
		}
	}
}

// aliveFor is how recent a gateway's record must be for the gateway to count:
// it polls every half minute, and its record may lag behind by rewriteAfter.
const aliveFor = 90 * time.Second

// Gateways is how many gateways serve at the moment, at least 1. Each of them
// takes its share of a limit from that while the counter store is away.
func (s *Supply) Gateways() int { return int(max(1, s.fleet.alive.Load())) }

func (s *Supply) countFleet() {
	ctx, cancel := context.WithTimeout(s.lifetime, workWithin)
	defer cancel()
	list, err := s.deps.Store.ListGateways(ctx)
	if err != nil {
		return // the last count is better than none
	}
	alive := int64(0)
	for _, g := range list {
		if time.Since(g.SeenAt) < aliveFor {
			alive++
		}
	}
	s.fleet.alive.Store(alive)
}

func (s *Supply) putGateway(g store.Gateway) {
	ctx, cancel := context.WithTimeout(s.lifetime, workWithin)
	defer cancel()
	if err := s.deps.Store.PutGateway(ctx, g); err != nil && s.lifetime.Err() == nil {
		// The next poll of the gateway says it again.
		s.log.Warn("what a gateway said was not recorded", "gateway", g.Name, "err", err)
	}
}

func (s *Supply) dropGateways() {
	ctx, cancel := context.WithTimeout(s.lifetime, workWithin)
	defer cancel()
	if err := s.deps.Store.DropGateways(ctx); err != nil && s.lifetime.Err() == nil {
		s.log.Warn("gateways that are long silent were not forgotten", "err", err)
	}
}
