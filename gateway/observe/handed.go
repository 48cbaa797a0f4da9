package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Handed is what became of the counts of calls that the admin gets.
type Handed struct {
	Calls   uint64        // that it has
	Dropped uint64        // calls that it will never have: there was no room, or it did not want them
	Others  uint64        // calls whose key was not told apart, for want of room
	Waiting int           // rows that it does not have yet
	Lag     time.Duration // how long ago it had everything
}

var (
	usageCalls   = describe("usage_calls_total", "Calls that the admin has counted.")
	usageLost    = describe("usage_dropped_total", "Calls that the admin will never count: there was no room for them, or it refused them.")
	usageOthers  = describe("usage_other_keys_total", "Calls that are counted without their key, for want of room.")
	usageWaiting = describe("usage_waiting_rows", "Rows of counted calls that the admin does not have yet.")
	usageLag     = describe("usage_flush_lag_seconds", "How long ago the admin had all that was counted.")

	handedMetrics = []*prometheus.Desc{usageCalls, usageLost, usageOthers, usageWaiting, usageLag}
)

func (h Handed) collect(ch chan<- prometheus.Metric) {
	ch <- total(usageCalls, h.Calls)
	ch <- total(usageLost, h.Dropped)
	ch <- total(usageOthers, h.Others)
	ch <- gauge(usageWaiting, float64(h.Waiting))
	ch <- gauge(usageLag, h.Lag.Seconds())
}
