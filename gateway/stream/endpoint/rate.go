package endpoint

import (
	"sync"
	"time"

	"github.com/sluicegate/sluice/internal/definition/streams"
)

// A limiter bounds messages in a time. It lets a whole time's messages through at once, and
// others at an even pace behind them.
type limiter struct {
	each, per time.Duration

	mu   sync.Mutex
	free time.Time // when all that was let through is paid for
}

func newLimiter(r *streams.Rate) *limiter {
	return &limiter{each: max(1, r.Per/time.Duration(max(1, r.Count))), per: r.Per}
}

// wait returns 0 and counts a message, or returns after which time one may come.
func (l *limiter) wait(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free.Before(now) {
		l.free = now
	}
	next := l.free.Add(l.each)
	if over := next.Sub(now) - l.per; over > 0 {
		return over
	}
	l.free = next
	return 0
}
