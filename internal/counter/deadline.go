package counter

import (
	"context"
	"sync"
	"time"
)

// A deadline is a context with a time-out alone. One that did not expire is used
// again, which context.WithTimeout cannot: that made half of what a flight
// allocated.
type deadline struct {
	at    time.Time
	done  chan struct{}
	timer *time.Timer
}

var deadlines = sync.Pool{New: func() any {
	d := &deadline{done: make(chan struct{})}
	d.timer = time.AfterFunc(time.Hour, func() { close(d.done) })
	d.timer.Stop()
	return d
}}

func within(timeout time.Duration) *deadline {
	d := deadlines.Get().(*deadline)
	d.at = time.Now().Add(timeout)
	d.timer.Reset(timeout)
	return d
}

// end must be called once, when nobody waits on d any more.
func (d *deadline) end() {
	if d.timer.Stop() {
		deadlines.Put(d)
	}
}

// Deadline implements context.Context.
func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} { return d.done }

// Err implements context.Context.
func (d *deadline) Err() error {
	select {
	case <-d.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value implements context.Context: there are none.
func (d *deadline) Value(any) any { return nil }
