package distribution

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/sleep"
)

// How keys are delivered to the key store.
const (
	deliverWithin = time.Second            // the call that changed a key waits for at most that
	deliverEvery  = 500 * time.Millisecond // interval of looking for deliveries that are due or that another admin left
	deliverAtOnce = 50                     // keys locked at a time
	putAtOnce     = 16                     // writes to the key store in flight
)

// Deliver writes a changed key to the key store within a second, or else leaves it to
// the background.
func (s *Service) Deliver(hash string) {
	ctx, cancel := context.WithTimeout(s.lifetime, deliverWithin)
	defer cancel()
	if err := s.deps.Store.DeliverKey(ctx, hash, s.putter(ctx)); err != nil {
		wake(s.late)
		s.log.Warn("a changed key reaches the gateways later", "key", s.short(hash), "err", err)
	}
}

// short returns the part of a key's hash that logs show.
func (s *Service) short(hash string) string {
	if s.deps.Shown != nil {
		hash = s.deps.Shown(hash)
	}
	return hash[:min(len(hash), 12)]
}

// drain delivers the keys that could not be delivered at once, here or in a process
// that ended.
func (s *Service) drain() {
	failing := false
	for {
		taken, failed, err := s.drainSome()
		switch {
		case s.lifetime.Err() != nil:
			return
		case (err != nil || failed > 0) && !failing:
			s.log.Warn("changed keys wait for the key store", "failed", failed, "err", err)
		case failing && err == nil && taken > failed:
			s.log.Info("changed keys reach the key store again")
		}
		failing = err != nil || failed > 0 || failing && taken == 0
		if err == nil && taken == deliverAtOnce && failed == 0 {
			continue // there is more
		}
		select {
		case <-s.late:
			if sleep.For(s.lifetime, deliverEvery/5) != nil {
				return
			}
		case <-time.After(deliverEvery):
		case <-s.lifetime.Done():
			return
		}
	}
}

func (s *Service) drainSome() (taken, failed int, err error) {
	ctx, cancel := context.WithTimeout(s.lifetime, workWithin)
	defer cancel()
	return s.deps.Store.Deliver(ctx, deliverAtOnce, s.putter(ctx))
}

// putter writes deliveries to the key store, some at a time.
func (s *Service) putter(ctx context.Context) func([]store.Delivery) []error {
	return func(list []store.Delivery) []error {
		ctx, cancel := context.WithTimeout(ctx, deliverWithin)
		defer cancel()
		results := make([]error, len(list))
		if err := s.mark(ctx); err != nil {
			for i := range results {
				results[i] = err
			}
			return results
		}
		slots := make(chan struct{}, putAtOnce)
		var all sync.WaitGroup
		for i, d := range list {
			slots <- struct{}{}
			all.Go(func() {
				results[i] = s.put(ctx, d)
				<-slots
			})
		}
		all.Wait()
		return results
	}
}

// put writes or deletes one key in the key store, and then resets its counters.
func (s *Service) put(ctx context.Context, d store.Delivery) error {
	var err error
	if d.Session == nil {
		if err = s.deps.Keys.Delete(ctx, d.Hash); errors.Is(err, keystore.ErrNotFound) {
			err = nil
		}
	} else {
		err = s.deps.Keys.Put(ctx, d.Hash, d.Session)
	}
	if err != nil {
		return fmt.Errorf("writing key %s to the key store: %w", s.short(d.Hash), err)
	}
	if len(d.Reset) == 0 || s.deps.Counters == nil {
		return nil
	}
	if err := s.deps.Counters.Reset(ctx, d.Reset...); err != nil {
		return fmt.Errorf("resetting the counters of key %s: %w", s.short(d.Hash), err)
	}
	return nil
}

// Refill writes every key to the key store. A key store in the gateway's process is
// empty at first: the caller waits for Refill before it accepts traffic.
func (s *Service) Refill(ctx context.Context) error {
	for {
		ran, err := s.fill(ctx, s.putAll)
		if err != nil || ran {
			return err
		}
		if sleep.For(ctx, epochEvery/20) != nil { // another process fills the store, or just did
			return fmt.Errorf("filling the key store: %w", ctx.Err())
		}
	}
}

// fill calls put with all keys, and logs the result.
func (s *Service) fill(ctx context.Context, put func(context.Context, iter.Seq2[keystore.Entry, error]) (int, error)) (ran bool, err error) {
	started, count := time.Now(), 0
	ran, err = s.deps.Store.FillKeys(ctx, func(all iter.Seq2[store.Delivery, error]) (err error) {
		count, err = put(ctx, entries(all))
		return err
	})
	s.meters.refilled.Add(float64(count))
	if err != nil {
		return ran, fmt.Errorf("filling the key store, after %d keys: %w", count, err)
	}
	if ran {
		s.log.Info("key store filled", "keys", count, "seconds", time.Since(started).Seconds())
	}
	return ran, nil
}

// entries converts deliveries to entries of the key store.
func entries(all iter.Seq2[store.Delivery, error]) iter.Seq2[keystore.Entry, error] {
	return func(yield func(keystore.Entry, error) bool) {
		for d, err := range all {
			if !yield(keystore.Entry{Hash: d.Hash, Session: d.Session}, err) {
				return
			}
		}
	}
}

// putAll writes entries one by one, which is fast within the process.
func (s *Service) putAll(ctx context.Context, all iter.Seq2[keystore.Entry, error]) (count int, err error) {
	for e, err := range all {
		if err != nil {
			return count, err
		}
		if err := s.deps.Keys.Put(ctx, e.Hash, e.Session); err != nil {
			return count, err
		}
		count++
	}
	return count, nil
}
