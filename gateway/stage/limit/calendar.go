package limit

import (
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
)

const (
	// grain is the unit that the rest of a period is rounded to, so that calls of the
	// same moment have the same limit and are counted in one batch.
	grain = 20 * time.Millisecond

	// margin is how much earlier than the calendar's a counter's period ends, so that a
	// client that waits for the renewal is not too early. It covers the way to the
	// store; rounding adds half a grain on average.
	margin = 5 * time.Millisecond

	// eve is the end of a period, in which a counter that is not open counts for the
	// next period: it has just ended, or the clocks of gateways differ.
	eve = 100 * time.Millisecond

	// skew is by how much a counter's renewal may differ from the calendar's to be
	// reported as the calendar's.
	skew = 2 * time.Second
)

// setCalendarPeriod sets the period of a round's quota if it renews by the calendar:
// a counter that is opened now ends with the calendar's period. An open counter
// keeps its end, so that changes of calendar or zone hold from the next period on.
func setCalendarPeriod(r *round, sp *pipeline.Special, now int64) {
	at := r.index(keyQuota)
	if sp.Calendar == nil || at < 0 {
		return
	}
	r.limits[at].Period = untilRenewal(sp.Calendar, now)
}

// untilRenewal returns the length of a period that begins at now, in unix
// milliseconds.
func untilRenewal(clock *definition.QuotaClock, now int64) time.Duration {
	end := clock.End(now)
	if end-now <= eve.Milliseconds() {
		end = clock.Next(end)
	}
	rest := time.Duration(end-now) * time.Millisecond
	return (rest - margin).Truncate(grain)
}

// alignReset sets the renewal of a count to the end of the calendar's period, in unix
// milliseconds, if the two are the same but for rounding.
func alignReset(c *counter.Count, end int64) {
	if c.ResetAt != 0 && time.Duration(max(c.ResetAt-end, end-c.ResetAt))*time.Millisecond < skew {
		c.ResetAt = end
	}
}
