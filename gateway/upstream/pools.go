package upstream

import (
	"context"
	"crypto/tls"
	"slices"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/pace"
)

// Pools holds the connections to all upstreams, for one configuration after the
// other. It is safe for concurrent use.
type Pools struct {
	epoch time.Time
	stop  chan struct{}
	ended sync.WaitGroup // what runs until stop is closed
	files Files
	guard *dialguard.Policy // stricter than what upstreams may be; nil: none

	mu      sync.Mutex
	byKey   map[poolKey]*pool
	fresh   []*pool // made since the last Swap
	leaving []*pool // retired, may still have calls in flight
	closed  bool

	sources map[sourceKey]*sourceCounts // in service, and those that may come into it
	others  sourceCounts                // of data sources without an entry
	unused  []*sourceCounts             // made since the last Swap
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
	}
	s.ended.Go(s.sweep)
	return s
}

// Guard restricts the addresses of upstreams further. It is called before the first
// upstream is compiled.
func (s *Pools) Guard(p dialguard.Policy) { s.guard = &p }

// Apart returns empty pools under the same guard. s may be nil.
func (s *Pools) Apart() *Pools {
	apart := NewPools()
	if s != nil {
		apart.guard = s.guard
	}
	return apart
}

// get returns the pool for key, which is made for a host when there is none yet.
func (s *Pools) get(key poolKey, host string, conf *tls.Config) *pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.byKey[key]; p != nil {
		return p
	}
	p := newPool(key, conf, s.epoch)
	if s.guard != nil {
		p.dialer.ControlContext = s.guard.Control
	}
	p.version = withHost(host)
	p.stopped = s.closed
	s.byKey[key] = p
	s.fresh = append(s.fresh, p)
	return p
}

// Swap records APIs that came into service and APIs that left it. Each is passed once,
// and of one change all that came before any that left, so that they keep the
// connections that they share. Others are closed when their requests end.
func (s *Pools) Swap(came, gone []*pipeline.API) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, api := range came {
		for _, p := range poolsOf(api) {
			p.users++
		}
		for _, f := range fetchersOf(api) {
			f.counts.users++
		}
	}
	for _, api := range gone {
		for _, p := range poolsOf(api) {
			p.users--
			s.letGo(p)
		}
		for _, f := range fetchersOf(api) {
			f.counts.users--
			s.forget(f.counts)
		}
	}
}

// Swapped retires the pools of APIs that were compiled but not passed to Swap. It must
// not run while APIs are compiled.
func (s *Pools) Swapped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.fresh {
		s.letGo(p)
	}
	for _, c := range s.unused {
		s.forget(c)
	}
	s.fresh, s.unused = nil, nil
	s.leaving = slices.DeleteFunc(s.leaving, (*pool).empty)
}

// poolsOf returns the pools that an API needs, as often as it needs them.
func poolsOf(api *pipeline.API) (pools []*pool) {
	for _, v := range api.Versions {
		pipeline.Visit(v.Upstream, func(stage pipeline.Stage) {
			switch s := stage.(type) {
			case *forward:
				pools = append(pools, s.pool)
			case FetcherHolder:
				for _, f := range s.Fetchers() {
					if f.pool != nil {
						pools = append(pools, f.pool)
					}
				}
			}
		})
	}
	return pools
}

// fetchersOf returns the Fetchers of an API, as often as it has them.
func fetchersOf(api *pipeline.API) (all []*Fetcher) {
	for _, v := range api.Versions {
		pipeline.Visit(v.Upstream, func(stage pipeline.Stage) {
			if s, ok := stage.(FetcherHolder); ok {
				all = append(all, s.Fetchers()...)
			}
		})
	}
	return all
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
