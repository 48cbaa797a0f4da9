package distribution

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/sleep"
)

// rewriteAfter is the age at which an unchanged status is written again.
const rewriteAfter = 20 * time.Second

// maxStatuses bounds the gateways that are remembered between two writes.
const maxStatuses = 10_000

// statuses collects what gateways report, so that a poll costs no write.
type statuses struct {
	mu      sync.Mutex
	known   map[string]reported
	pending map[string]store.Gateway

	alive atomic.Int64 // gateways that reported to any admin lately
}

// reported is the status of a gateway that was last scheduled to be written.
type reported struct {
	status store.Gateway
	at     time.Time
}

func newStatuses() *statuses {
	return &statuses{known: make(map[string]reported), pending: make(map[string]store.Gateway)}
}

// RecordStatus records the status that a gateway reports with its poll. It is written
// to the database within a second. A gateway without a name is ignored.
func (s *Service) RecordStatus(g store.Gateway, now time.Time) {
	if g.Name == "" {
		return
	}
	f := s.statuses
	f.mu.Lock()
	defer f.mu.Unlock()
	last, known := f.known[g.Name]
	if known && last.status == g && now.Sub(last.at) < rewriteAfter {
		return
	}
	if !known && len(f.known) >= maxStatuses {
		clear(f.known)
	}
	f.known[g.Name] = reported{status: g, at: now}
	if len(f.pending) < maxStatuses {
		f.pending[g.Name] = g
	}
}

// Forget deletes a gateway that serves no longer. It returns store.ErrNotFound if there
// is none of the name.
func (s *Service) Forget(ctx context.Context, name string) error {
	f := s.statuses
	f.mu.Lock()
	delete(f.known, name)
	delete(f.pending, name)
	f.mu.Unlock()
	err := s.deps.Store.DropGateway(ctx, name)
	if err == nil {
		s.countGateways()
	}
	return err
}

// knows reports whether a gateway has reported and was not forgotten since.
func (f *statuses) knows(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, known := f.known[name]
	return known
}

// take removes and returns the statuses to be written.
func (f *statuses) take() []store.Gateway {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]store.Gateway, 0, len(f.pending))
	for _, g := range f.pending {
		list = append(list, g)
	}
	clear(f.pending)
	return list
}

// writeStatuses writes statuses once a second, and deletes those of silent gateways.
func (s *Service) writeStatuses() {
	for n := 0; sleep.For(s.lifetime, time.Second) == nil; n++ {
		for _, g := range s.statuses.take() {
			s.putGateway(g)
		}
		s.putHeard()
		if n%10 == 0 {
			s.countGateways()
		}
		if n%600 == 60 {
			s.dropGateways()
		}
	}
}

// aliveFor is the age up to which a status counts: gateways poll every 30 s, and the
// stored status may be older by rewriteAfter.
const aliveFor = 90 * time.Second

// Gateways returns how many gateways serve at the moment, at least 1. They divide
// limits by it while the counter store is unavailable.
func (s *Service) Gateways() int { return int(max(1, s.statuses.alive.Load())) }

func (s *Service) countGateways() {
	ctx, cancel := context.WithTimeout(s.lifetime, workWithin)
	defer cancel()
	list, err := s.deps.Store.ListGateways(ctx)
	if err != nil {
		return // keep the last count
	}
	alive := int64(0)
	for _, g := range list {
		if time.Since(g.SeenAt) < aliveFor {
			alive++
		}
	}
	s.statuses.alive.Store(alive)
}

func (s *Service) putGateway(g store.Gateway) {
	ctx, cancel := context.WithTimeout(s.lifetime, workWithin)
	defer cancel()
	if err := s.deps.Store.PutGateway(ctx, g); err != nil && s.lifetime.Err() == nil {
		// The next poll reports it again.
		s.log.Warn("what a gateway said was not recorded", "gateway", g.Name, "err", err)
	}
	if s.statuses.knows(g.Name) {
		return
	}
	// It was forgotten while its status was written.
	if err := s.deps.Store.DropGateway(ctx, g.Name); err != nil && !errors.Is(err, store.ErrNotFound) && s.lifetime.Err() == nil {
		s.log.Warn("a gateway was not forgotten", "gateway", g.Name, "err", err)
	}
}

func (s *Service) dropGateways() {
	ctx, cancel := context.WithTimeout(s.lifetime, workWithin)
	defer cancel()
	if err := s.deps.Store.DropGateways(ctx); err != nil && s.lifetime.Err() == nil {
		s.log.Warn("gateways that are long silent were not forgotten", "err", err)
	}
}
