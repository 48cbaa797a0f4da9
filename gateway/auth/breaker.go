package auth

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/keystore"
)

// retryEvery is how often a store that is away is asked again, by one request:
// the others need not wait to learn that it still is.
const retryEvery = 250 * time.Millisecond

// breaker knows whether the store is away.
type breaker struct{ until atomic.Int64 } // since Sessions.base; 0: it is not away

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

// settle draws the conclusion from what came of a look-up, and tells when the
// store goes away and when it is back.
func (s *Sessions) settle(w *wanted, err error) {
	switch {
	case err == nil || errors.Is(err, keystore.ErrNotFound):
		if s.away.until.Swap(0) != 0 {
			s.opts.Log.Info("key store is back")
		}
	case errors.Is(err, keystore.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded):
		until := max(int64(time.Since(s.base)+retryEvery), 1)
		if s.away.until.Swap(until) == 0 {
			s.opts.Log.Warn("key store is away: keys in memory go on, others are answered 503", "err", err)
		}
	default: // this session's own trouble
		last, now := s.lastLog.Load(), int64(w.now/time.Second)
		if now != last && s.lastLog.CompareAndSwap(last, now) {
			s.opts.Log.Error("a session cannot be read", "key", s.nameOf(w), "err", err)
		}
	}
}

// nameOf returns what logs call a credential under the likeliest of its
// identities.
func (s *Sessions) nameOf(w *wanted) string {
	identity, _ := s.opts.Hasher.Candidate(nil, w.token, w.org, 0)
	return s.newEntry(w, string(identity), nil, mark{}).name()
}
