// Package deadline has contexts with a time-out that cost no allocation.
package deadline

import (
	"context"
	"sync"
	"time"
)

// A Deadline is a context with a time-out alone. One that did not expire is used
// again, which context.WithTimeout cannot: that made half of what a flight
// allocated.
type Deadline struct {
	at    time.Time
	done  chan struct{}
	timer *time.Timer
}

var deadlines = sync.Pool{New: func() any {
	d := &Deadline{done: make(chan struct{})}
	d.timer = time.AfterFunc(time.Hour, func() { close(d.done) })
	d.timer.Stop()
	return d
}}

// Within returns a Deadline that expires after timeout.
func Within(timeout time.Duration) *Deadline {
	d := deadlines.Get().(*Deadline)
	d.at = time.Now().Add(timeout)
	d.timer.Reset(timeout)
	return d
}

// End must be called once, when nobody waits on d any more.
func (d *Deadline) End() {
	if d.timer.Stop() {
		deadlines.Put(d)
	}
}

// Deadline implements context.Context.
func (d *Deadline) Deadline() (time.Time, bool) { return d.at, true }

// Done implements context.Context.
func (d *Deadline) Done() <-chan struct{} { return d.done }

// Err implements context.Context.
func (d *Deadline) Err() error {
	select {
	case <-d.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value implements context.Context: there are none.
func (d *Deadline) Value(any) any { return nil }
