// Package distribution serves the gateways: it renders the configuration as a bundle
// that gateways long-poll for, writes changed keys to the key store, and records the
// status that gateways report.
package distribution

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

// Open decrypts a secret that definitions refer to.
type Open func(of store.SecretName, sealed []byte) (string, error)

// Deps are the dependencies of a Service. All but Counters, Shared, Shown and Metrics
// are required.
type Deps struct {
	Store    *store.Store
	Keys     keystore.Store           // key store of the gateways
	Counters counter.Counter          // reset when a key changes; nil: none
	Shared   Shared                   // Keys if several processes share it; nil: it is in this process, and Refill fills it
	Shown    func(hash string) string // what logs show in place of a hash; nil: the hash
	Secret   Open                     // decrypts secrets of definitions
	Metrics  prometheus.Registerer    // nil: not measured
	Log      *slog.Logger
}

// Shared is a key store that many processes share, and that may lose its data.
type Shared interface {
	// Filled reports whether the store holds all keys: whether Fill ended after
	// the last loss of data.
	Filled(ctx context.Context) (bool, error)

	// Fill writes all keys, notes that the store is complete, and returns how
	// many it wrote.
	Fill(ctx context.Context, entries iter.Seq2[keystore.Entry, error]) (int, error)
}

// Service is the supply of one admin. It is safe for concurrent use.
type Service struct {
	deps         Deps
	log          *slog.Logger
	latestBundle *latestBundle
	segments     *segments
	held         *snapshot // the snapshot of the latest bundle; used by follow alone
	statuses     *statuses
	questions    *questions
	gatherings   gatherings
	keyFeed      *keyFeed
	ledger       ledger // Shared, if it can be compared with the database; or nil
	meters       *meters
	checkedSeal  bool // the seals in the store were looked at; used by watchShared alone

	dirty     chan struct{} // a change to be rendered; capacity 1
	dirtyKeys chan struct{} // a change of a key that gateways may not have heard of; capacity 1
	late      chan struct{} // a key that was not delivered at once; capacity 1
	released  chan struct{} // closed by Release
	release   sync.Once

	lifetime context.Context // ends with Stop
	end      context.CancelFunc
	workers  sync.WaitGroup
}

// workWithin bounds one unit of work in the background.
const workWithin = 10 * time.Second

// New returns a Service. Keys can be delivered from now on; the work in the
// background begins with Start.
func New(d Deps) (*Service, error) {
	s := &Service{
		deps: d, log: d.Log, latestBundle: newLatestBundle(), segments: newSegments(), statuses: newStatuses(), questions: newQuestions(),
		keyFeed: newKeyFeed(), dirty: make(chan struct{}, 1), dirtyKeys: make(chan struct{}, 1), late: make(chan struct{}, 1),
		released: make(chan struct{}),
	}
	s.ledger, _ = d.Shared.(ledger)
	var err error
	if s.meters, err = newMeters(d.Metrics, d.Store); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	s.lifetime, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Start follows the store's configuration, and delivers the keys that are due, until
// Stop. The database may be unavailable.
func (s *Service) Start() {
	s.workers.Go(func() { s.deps.Store.Listen(s.lifetime, func(store.State) { wake(s.dirty) }, s.heard) })
	s.workers.Go(s.follow)
	s.workers.Go(func() { s.deps.Store.Subscribe(s.lifetime, "sluice_keys", func() { wake(s.dirtyKeys) }) })
	s.workers.Go(s.followKeys)
	s.workers.Go(s.dropKeyChanges)
	s.workers.Go(s.drain)
	s.workers.Go(s.watchShared)
	s.workers.Go(s.writeStatuses)
}

// Release ends all waits for a bundle or for changes of keys, now and later.
func (s *Service) Release() {
	s.latestBundle.close()
	s.release.Do(func() { close(s.released) })
}

// Stop ends all waits and all work in the background.
func (s *Service) Stop() {
	s.Release()
	s.end()
	s.workers.Wait()
}

// wake wakes the receiver of a channel of capacity 1, now or when it next waits.
func wake(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
