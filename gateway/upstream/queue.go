package upstream

import (
	"sync"
	"time"
)

// grant is what a waiter gets: a connection, or a place to make one.
type grant struct {
	conn    *conn
	stopped bool
}

// waiter waits for a connection.
type waiter struct {
	turn       chan grant // takes one without blocking
	timer      *time.Timer
	next, prev *waiter
	queued     bool
}

// waiters is a queue in order of arrival. Its users hold the pool's mutex.
type waiters struct {
	first, last *waiter
	n           int
}

var spareWaiters = sync.Pool{New: func() any {
	w := &waiter{turn: make(chan grant, 1), timer: time.NewTimer(time.Hour)}
	w.timer.Stop()
	return w
}}

// join queues up for at most wait.
func (q *waiters) join(wait time.Duration) *waiter {
	w := spareWaiters.Get().(*waiter)
	w.timer.Reset(wait)
	w.queued, w.prev = true, q.last
	q.n++
	if q.last != nil {
		q.last.next = w
	} else {
		q.first = w
	}
	q.last = w
	return w
}

// pop removes and returns who came first, or nil.
func (q *waiters) pop() *waiter {
	w := q.first
	if w != nil {
		q.leave(w)
	}
	return w
}

// leave removes w and reports whether it was still queued.
func (q *waiters) leave(w *waiter) bool {
	if !w.queued {
		return false
	}
	q.n--
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.last = w.prev
	}
	w.next, w.prev, w.queued = nil, nil, false
	return true
}

// free recycles w, which must not be queued and whose turn must be empty.
func (w *waiter) free() {
	w.timer.Stop()
	spareWaiters.Put(w)
}
