package overload

import "sync/atomic"

// A turn spaces calls: it is when the next one may pass, in nanoseconds on the guard's
// clock. A caller that was idle has credit for a burst; one that calls all the time
// has none, and passes once per interval.
type turn struct{ next atomic.Int64 }

const (
	creditCalls = 8    // of a burst, or
	creditTime  = 50e6 // nanoseconds' worth of calls, whichever is more
	debtTime    = 50e6 // nanoseconds that a turn may be ahead
)

// due reports whether a call may pass now.
func (t *turn) due(now int64) bool { return t.next.Load() <= now }

// take counts a call that passes.
func (t *turn) take(now, interval int64) {
	credit := max(creditCalls*interval, creditTime)
	for {
		next := t.next.Load()
		// A cell that two keys share is charged for the calls of both; without a bound on
		// the debt the quieter one would pay for it long after.
		after := min(max(next, now-credit)+interval, now+max(interval, debtTime))
		if t.next.CompareAndSwap(next, after) {
			return
		}
	}
}
