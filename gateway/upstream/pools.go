package upstream

import (
	"context"
	"crypto/tls"
	"slices"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/upstream/identity"
	"github.com/sluicegate/sluice/internal/pace"
)

// Pools holds the connections to all upstreams, for one configuration after the
// other. It is safe for concurrent use.
type Pools struct {
	epoch time.Time
	stop  chan struct{}
	ended sync.WaitGroup // what runs until stop is closed
	late  lookout
	files identity.Files

	mu      sync.Mutex
	byKey   map[poolKey]*pool
	fresh   []*pool // made since the last Swap
	leaving []*pool // retired, may still have calls in flight
	closed  bool
}

// sweepEvery is how often idle connections are looked through; sweepShare is what
// of a processor that takes while it lasts, for there may be very many pools.
const (
	sweepEvery = time.Second
	sweepShare = 0.1
)

// NewPools returns empty pools. Close ends them.
func NewPools() *Pools {
	s := &Pools{
		epoch: time.Now().Add(-time.Hour), // so that 0 lies well in the past
		stop:  make(chan struct{}),
		byKey: make(map[poolKey]*pool),
		late:  lookout{wake: make(chan struct{}, 1)},
	}
	s.ended.Go(s.sweep)
	s.ended.Go(func() { s.late.run(s.stop) })
	return s
}

// get returns the pool for key, which is made for a host when there is none yet.
func (s *Pools) get(key poolKey, host string, conf *tls.Config) *pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.byKey[key]; p != nil {
		return p
	}
	p := newPool(key, conf, s.epoch, &s.late)
	p.version = withHost(host)
	p.stopped = s.closed
	s.byKey[key] = p
	s.fresh = append(s.fresh, p)
	return p
}

// Swap is told which APIs came into service and which left it, each of them once
// and all that came before any that left, and lets go of the connections that none
// needs any more. Requests in flight are not disturbed.
func (s *Pools) Swap(came, gone []*pipeline.API) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, api := range came {
		for _, p := range poolsOf(api) {
			p.users++
		}
	}
	for _, api := range gone {
		for _, p := range poolsOf(api) {
			p.users--
			s.letGo(p)
		}
	}
}

// Swapped says that Swap was told of all APIs that were compiled and are served:
// what was made for others is let go of. It must not run while APIs are compiled.
func (s *Pools) Swapped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.fresh {
		s.letGo(p)
	}
	s.fresh = nil
	s.leaving = slices.DeleteFunc(s.leaving, (*pool).empty)
}

// poolsOf returns the pools that an API needs, as often as it needs them.
func poolsOf(api *pipeline.API) (pools []*pool) {
	for _, v := range api.Versions {
		pools = appendPools(pools, v.Upstream)
	}
	return pools
}

// appendPools appends the pools of a stage, and of those that it calls by.
func appendPools(pools []*pool, stage pipeline.Stage) []*pool {
	switch s := stage.(type) {
	case *forward:
		return append(pools, s.pool)
	case interface{ Parts() []pipeline.Stage }:
		for _, part := range s.Parts() {
			pools = appendPools(pools, part)
		}
	}
	return pools
}

// letGo needs mu.
func (s *Pools) letGo(p *pool) {
	if p.users > 0 || s.byKey[p.key] != p {
		return
	}
	p.retire()
	delete(s.byKey, p.key)
	s.leaving = append(s.leaving, p)
}

// Close cuts every connection, those in use too, and fails all later calls.
func (s *Pools) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	close(s.stop)
	all := s.list()
	s.mu.Unlock()
	for _, p := range all {
		p.stop()
	}
	s.ended.Wait()
}

// list needs mu.
func (s *Pools) list() []*pool {
	all := make([]*pool, 0, len(s.byKey))
	for _, p := range s.byKey {
		all = append(all, p)
	}
	return append(all, s.leaving...)
}

func (s *Pools) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.ended.Go(func() {
		<-s.stop
		cancel()
	})
	rests := pace.New(sweepShare)
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		s.mu.Lock()
		all := s.list()
		s.mu.Unlock()
		rests.Begin()
		for _, p := range all {
			p.sweep(p.now() - p.key.idle)
			if rests.Step(ctx) != nil {
				return
			}
		}
	}
}

// Stats is how connections to upstreams are used.
type Stats struct {
	Open int // connections, those being made included
	Idle int // of them waiting for a request
}

// Stats returns current numbers over all upstreams.
func (s *Pools) Stats() Stats {
	s.mu.Lock()
	all := s.list()
	s.mu.Unlock()
	var sum Stats
	for _, p := range all {
		p.mu.Lock()
		sum.Open += p.open
		sum.Idle += len(p.idle)
		p.mu.Unlock()
	}
	return sum
}
