package limit

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
)

// A room is where requests wait that are over the rate of their key, as long as
// there is room. No key takes more than half of it: one that floods would keep all
// others from waiting.
type room struct {
	most   int64 // requests that may wait at the same time
	inside atomic.Int64
	each   int32 // of one key
	seed   maphash.Seed
	cells  [1 << 10]atomic.Int32 // requests by key; keys that share a cell share its half
	closed chan struct{}
	once   sync.Once
	timers sync.Pool // of *time.Timer, stopped
}

// A seat is a place in a room.
type seat struct{ cell *atomic.Int32 }

func newRoom(most int) *room {
	r := &room{most: int64(most), each: int32((most + 1) / 2), seed: maphash.MakeSeed(), closed: make(chan struct{})}
	r.timers.New = func() any {
		t := time.NewTimer(time.Hour)
		t.Stop()
		return t
	}
	return r
}

// enter takes a place for a key, unless all are taken that it may have.
func (r *room) enter(key string) (seat, bool) {
	s := seat{&r.cells[maphash.String(r.seed, key)%uint64(len(r.cells))]}
	if s.cell.Add(1) > r.each {
		s.cell.Add(-1)
		return s, false
	}
	if r.inside.Add(1) > r.most {
		r.leave(s)
		return s, false
	}
	return s, true
}

func (r *room) leave(s seat) {
	s.cell.Add(-1)
	r.inside.Add(-1)
}

// close ends all waiting, and any that would begin.
func (r *room) close() { r.once.Do(func() { close(r.closed) }) }

// Stop ends the waiting of requests that are over their rate: they are refused at
// once. The gateway calls it when it begins to stop.
func (l *Limiter) Stop() { l.waiting.close() }

// Waiting returns how many requests wait for their rate.
func (l *Limiter) Waiting() int { return int(l.waiting.inside.Load()) }

// A waiting is how often a request has waited, and whether it has a place for it.
type waiting struct {
	tries  int
	placed bool
	seat   seat
}

// again waits until the request may try again so many calls under the rate that
// refused them, and returns false when it may not: it has tried as often as its
// key may, too many wait already, its client is gone or the gateway stops. Nor
// does it wait for more calls than the rate ever has room for, or when it is only
// thought of.
func (w *waiting) again(l *Limiter, ex *pipeline.Exchange, rate *counter.Limit, calls int) bool {
	if ex.Grant == nil || ex.Grant.Special == nil || ex.Dry || int64(calls) > rate.Max {
		return false
	}
	t := ex.Grant.Special.Throttle
	if w.tries >= t.Retries || t.Interval <= 0 {
		return false
	}
	if !w.placed {
		if w.seat, w.placed = l.waiting.enter(ex.KeyHash); !w.placed {
			return false
		}
	}
	w.tries++
	return l.waiting.pass(t.Interval, ex)
}

// end gives the place back.
func (w *waiting) end(l *Limiter) {
	if w.placed {
		l.waiting.leave(w.seat)
	}
}

// glance is how often it is looked whether a client that waits is still there.
const glance = 100 * time.Millisecond

// pass lets time pass, and returns false when the client left meanwhile or the
// gateway stops.
func (r *room) pass(d time.Duration, ex *pipeline.Exchange) bool {
	t := r.timers.Get().(*time.Timer)
	defer func() {
		t.Stop()
		r.timers.Put(t)
	}()
	for ends := time.Now().Add(d); d > 0; d = time.Until(ends) {
		t.Reset(min(d, glance))
		select {
		case <-t.C:
		case <-r.closed:
			return false
		}
		if ex.Call.Gone() {
			return false
		}
	}
	return true
}
