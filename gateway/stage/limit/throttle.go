package limit

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
)

// A waitingRoom bounds the requests that wait because they are over the rate of
// their key. No key takes more than half of the slots: a flooding one would keep all
// others from waiting.
type waitingRoom struct {
	most   int64 // requests that may wait at the same time
	inside atomic.Int64
	each   int32 // of one key
	seed   maphash.Seed
	cells  [1 << 10]atomic.Int32 // requests by key; keys that share a cell share its half
	closed chan struct{}
	once   sync.Once
	timers sync.Pool // of *time.Timer, stopped
}

// A waitingSlot is a slot that a request has taken.
type waitingSlot struct{ cell *atomic.Int32 }

func newWaitingRoom(most int) *waitingRoom {
	r := &waitingRoom{most: int64(most), each: int32((most + 1) / 2), seed: maphash.MakeSeed(), closed: make(chan struct{})}
	r.timers.New = func() any {
		t := time.NewTimer(time.Hour)
		t.Stop()
		return t
	}
	return r
}

// enter takes a slot for a key. It returns false when none is free for it.
func (r *waitingRoom) enter(key string) (waitingSlot, bool) {
	s := waitingSlot{&r.cells[maphash.String(r.seed, key)%uint64(len(r.cells))]}
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

func (r *waitingRoom) leave(s waitingSlot) {
	s.cell.Add(-1)
	r.inside.Add(-1)
}

// close ends all waiting, now and later.
func (r *waitingRoom) close() { r.once.Do(func() { close(r.closed) }) }

// Stop ends the waiting of requests that are over their rate: they are refused at
// once. It is called when the gateway begins to shut down.
func (l *Limiter) Stop() { l.waiting.close() }

// Waiting returns how many requests wait for their rate.
func (l *Limiter) Waiting() int { return int(l.waiting.inside.Load()) }

// waiting is the state of a request that waits for its rate.
type waiting struct {
	tries  int
	placed bool // slot is taken
	slot   waitingSlot
}

// again waits for one interval of the key's throttle, after which the request may be
// counted again. It returns false when the request may not wait: it has used its
// retries, all slots are taken, its client is gone, the gateway stops, the rate never
// allows so many calls, or it is not counted.
func (w *waiting) again(l *Limiter, ex *pipeline.Exchange, rate *counter.Limit, calls int) bool {
	if ex.Grant == nil || ex.Grant.Special == nil || ex.IsUncounted() || int64(calls) > rate.Max {
		return false
	}
	t := ex.Grant.Special.Throttle
	if w.tries >= t.Retries || t.Interval <= 0 {
		return false
	}
	if !w.placed {
		if w.slot, w.placed = l.waiting.enter(ex.KeyHash); !w.placed {
			return false
		}
	}
	w.tries++
	return l.waiting.sleep(t.Interval, ex)
}

// end frees the slot.
func (w *waiting) end(l *Limiter) {
	if w.placed {
		l.waiting.leave(w.slot)
	}
}

// clientCheck is how often a waiting request checks that its client is still
// connected.
const clientCheck = 100 * time.Millisecond

// sleep waits for d. It returns false when the client leaves meanwhile or the gateway
// stops.
func (r *waitingRoom) sleep(d time.Duration, ex *pipeline.Exchange) bool {
	t := r.timers.Get().(*time.Timer)
	defer func() {
		t.Stop()
		r.timers.Put(t)
	}()
	for ends := time.Now().Add(d); d > 0; d = time.Until(ends) {
		t.Reset(min(d, clientCheck))
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
