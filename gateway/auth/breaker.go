package auth

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// retryEvery is how often a store that is away is asked again, by one request:
// the others need not wait to learn that it still is.
const retryEvery = 250 * time.Millisecond

// tolerated is how many look-ups in a row may fail before the store is taken to
// be away: a single slow answer says little.
const tolerated = 2

// breaker knows whether the store is away.
type breaker struct {
	until    atomic.Int64 // since Sessions.base; 0: it is not away
	failures atomic.Int32 // look-ups in a row
}

// isOpen tells whether the store is away and it is not yet time to ask again.
func (b *breaker) isOpen(now time.Duration) bool {
	until := b.until.Load()
	return until != 0 && int64(now) < until
}

// mayTry tells whether the store may be asked. While it is away, one request in
// every interval may.
func (b *breaker) mayTry(now time.Duration) bool {
	until := b.until.Load()
	return until == 0 || int64(now) >= until && b.until.CompareAndSwap(until, int64(now+retryEvery))
}

// failed takes note of a look-up that failed, and tells whether the store is now
// taken to be away and was not before.
func (b *breaker) failed(now time.Duration) bool {
	if b.failures.Add(1) <= tolerated {
		return false
	}
	return b.until.Swap(max(int64(now+retryEvery), 1)) == 0
}

// answered takes note of an answer, and tells whether the store was away.
func (b *breaker) answered() bool {
	b.failures.Store(0)
	return b.until.Load() != 0 && b.until.Swap(0) != 0
}

// settle draws the conclusion from what came of a look-up, and tells when the
// store goes away and when it is back.
func (s *Sessions) settle(w *wanted, err error) {
	if isAbsence(err) {
		if s.away.failed(time.Since(s.base)) {
			s.opts.Log.Warn("key store is away: keys in memory go on, others are answered 503", "err", err)
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

// reached takes note that the store is there.
func (s *Sessions) reached() {
	if s.away.answered() {
		s.opts.Log.Info("key store is back")
	}
}

// isAbsence tells whether an error of the store concerns all keys. One that lost
// its data, or holds something that is no session, answers for the others.
func isAbsence(err error) bool {
	if errors.Is(err, keystore.ErrRefilling) || errors.Is(err, keystore.ErrUnreadable) {
		return false
	}
	return errors.Is(err, keystore.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// nameOf returns what logs call a credential under the likeliest of its
// identities.
func (s *Sessions) nameOf(w *wanted) string {
	identity, _ := s.opts.Hasher.Candidate(nil, w.token, w.org, 0)
	return s.newEntry(w, string(identity), &definition.Session{}, mark{}).name()
}
