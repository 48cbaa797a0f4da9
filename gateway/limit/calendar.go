package limit

import (
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition/renewal"
)

const (
	// grain is what the rest of a period is rounded to: calls that come together
	// are then asked for together.
	grain = 20 * time.Millisecond

	// margin is how much earlier than the calendar says a counter's period ends, on
	// average half a grain more, so that a client that waits for the renewal is not
	// too early; it bridges what a call takes on its way to the store.
	margin = 5 * time.Millisecond

	// eve is the last of a period, in which a counter that is not open counts for
	// the next one: it was just closed, or clocks of gateways differ.
	eve = 100 * time.Millisecond

	// skew is by how much a renewal may differ from the calendar's to be the same.
	skew = 2 * time.Second
)

// renewByCalendar sets the period of a round's quota, if that goes by the
// calendar: the counter, if it opens one, opens it for as long as is left. One
// that is open stays as it is, so that whoever changes calendar or zone does so
// from the next period on.
func renewByCalendar(r *round, sp *pipeline.Special, now int64) {
	at := r.at(keyQuota)
	if sp.Calendar == nil || at < 0 {
		return
	}
	r.limits[at].Period = restOf(sp.Calendar, now)
}

// restOf is for how long a period that begins now is open.
func restOf(clock *renewal.Clock, now int64) time.Duration {
	end := clock.End(now)
	if end-now <= eve.Milliseconds() {
		end = clock.Next(end)
	}
	rest := time.Duration(end-now) * time.Millisecond
	return (rest - margin).Truncate(grain)
}

// settleReset has a renewal that is the calendar's told as the calendar has it.
func settleReset(c *counter.Count, end int64) {
	if c.ResetAt != 0 && time.Duration(max(c.ResetAt-end, end-c.ResetAt))*time.Millisecond < skew {
		c.ResetAt = end
	}
}
