package auth

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// retryEvery is how often a store that is away is asked again, by one request. The
// others do not wait for it.
const retryEvery = 250 * time.Millisecond

// tolerated is how many look-ups in a row may fail before the store counts as away.
const tolerated = 2

// breaker is a circuit breaker for the store.
type breaker struct {
	until    atomic.Int64 // when the store is asked again, since Sessions.base; 0: it is not away
	failures atomic.Int32 // in a row
}

// isOpen reports whether the store is away and it is not yet time to ask again.
func (b *breaker) isOpen(now time.Duration) bool {
	until := b.until.Load()
	return until != 0 && int64(now) < until
}

// mayTry reports whether the caller may ask the store. While it is away, one request
// in every retryEvery may.
func (b *breaker) mayTry(now time.Duration) bool {
	until := b.until.Load()
	return until == 0 || int64(now) >= until && b.until.CompareAndSwap(until, int64(now+retryEvery))
}

// failed records a failed look-up, and reports whether the store went away with it.
func (b *breaker) failed(now time.Duration) bool {
	if b.failures.Add(1) <= tolerated {
		return false
	}
	return b.until.Swap(max(int64(now+retryEvery), 1)) == 0
}

// answered records an answer, and reports whether the store was away.
func (b *breaker) answered() bool {
	b.failures.Store(0)
	return b.until.Load() != 0 && b.until.Swap(0) != 0
}

// note records the outcome of a look-up, and logs when the store goes away and when
// it is back.
func (s *Sessions) note(w *wanted, err error) {
	if isAbsence(err) {
		if s.away.failed(time.Since(s.base)) {
			s.opts.Log.Warn("key store is away: cached keys stay valid, others are answered 503", "err", err)
		}
		return
	}
	s.reached()
	if err == nil || errors.Is(err, keystore.ErrNotFound) {
		return
	}
	last, now := s.lastLog.Load(), int64(w.now/time.Second)+1 // at most one line a second
	if now != last && s.lastLog.CompareAndSwap(last, now) {
		s.opts.Log.Error("a key cannot be looked up", "key", s.nameOf(w), "err", err)
	}
}

// reached records that the store is not away.
func (s *Sessions) reached() {
	if s.away.answered() {
		s.opts.Log.Info("key store is back")
	}
}

// isAbsence reports whether an error of the store concerns all keys. A store that is
// being refilled, has a session that cannot be read, or is asked for too many keys,
// answers for other keys.
func isAbsence(err error) bool {
	if errors.Is(err, keystore.ErrRefilling) || errors.Is(err, keystore.ErrUnreadable) || errors.Is(err, keystore.ErrBusy) {
		return false
	}
	return errors.Is(err, keystore.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// nameOf returns the name of a credential in logs, by its most likely identity.
func (s *Sessions) nameOf(w *wanted) string {
	identity, _ := s.opts.Hasher.Candidate(nil, w.token, w.org, 0)
	return s.newEntry(w, string(identity), &definition.Session{}, stamp{}).name()
}
