// Package supply keeps gateways supplied: it renders the configuration as a
// bundle that many can wait for, brings changed keys to the key store, and
// records what gateways say of themselves.
package supply

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/keystore"
)

// Deps are what a Supply works with. All but Counters, Shared, Shown and Metrics are
// required.
type Deps struct {
	Store    *store.Store
	Keys     keystore.Store           // where gateways find sessions
	Counters counter.Counter          // whose counters a key's change resets; nil: none
	Shared   Shared                   // Keys once more, where it is shared; nil: Keys lives in this process, and Refill fills it
	Shown    func(hash string) string // what people read in place of a key's hash; nil: the hash
	Metrics  prometheus.Registerer    // nil: not measured
	Log      *slog.Logger
}

// Shared is a key store that many processes share, and that may lose its data.
type Shared interface {
	// Filled reports whether the store holds all keys: whether Fill has ended
	// since it last lost some.
	Filled(ctx context.Context) (bool, error)

	// Fill writes all keys, notes that the store is complete, and returns how
	// many it wrote.
	Fill(ctx context.Context, entries iter.Seq2[keystore.Entry, error]) (int, error)
}

// Supply is the supply of one admin. It is safe for concurrent use.
type Supply struct {
	deps   Deps
	log    *slog.Logger
	shelf  *shelf
	held   *holding // what shelf's bundle is made of; used by follow alone
	fleet  *fleet
	meters *meters

	dirty chan struct{} // the configuration is to be rendered again; holds one
	late  chan struct{} // a key could not be delivered at once; holds one

	lifetime context.Context // ends with Stop
	end      context.CancelFunc
	workers  sync.WaitGroup
}

// workWithin bounds the work on one thing in the background.
const workWithin = 10 * time.Second

// Start returns a Supply that follows the store's configuration and delivers
// keys from now on, until Stop. The database may be away.
func Start(d Deps) (*Supply, error) {
	s := &Supply{
		deps: d, log: d.Log, shelf: newShelf(), fleet: newFleet(),
		dirty: make(chan struct{}, 1), late: make(chan struct{}, 1),
	}
	var err error
	if s.meters, err = newMeters(d.Metrics, d.Store); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	s.lifetime, s.end = context.WithCancel(context.Background())
	s.workers.Go(func() { d.Store.Listen(s.lifetime, func(store.State) { poke(s.dirty) }) })
	s.workers.Go(s.follow)
	s.workers.Go(s.drain)
	s.workers.Go(s.watchShared)
	s.workers.Go(s.reportFleet)
	return s, nil
}

// Release lets everybody go who waits for a bundle, now and later.
func (s *Supply) Release() { s.shelf.close() }

// Stop releases everybody who waits and ends all work in the background.
func (s *Supply) Stop() {
	s.Release()
	s.end()
	s.workers.Wait()
}

// poke wakes whoever waits on a channel that holds one, or will.
func poke(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// pause waits, or less when ctx ends; it tells whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
