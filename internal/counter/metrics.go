package counter

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var (
	storeUp      = metrics.Describe("store_up", "Whether a shared store answers: 1 or 0.", "store")
	storeOutages = metrics.Describe("store_outages_total", "How often a shared store went away.", "store")
	storeWithout = metrics.Describe("store_decisions_without_total", "Decisions that were made while a shared store was away.", "store")
)

// Metrics returns the metrics of the shared store, which is always up if v is nil.
func (v *Valkey) Metrics() prometheus.Collector {
	const store = "counters"
	return metrics.New(func(ch chan<- prometheus.Metric) {
		away, outages, without := false, uint64(0), uint64(0)
		if v != nil {
			away, outages, without = v.State().Away, uint64(v.stats.Outages.Load()), uint64(v.stats.Standby.Load())
		}
		ch <- metrics.Flag(storeUp, !away, store)
		ch <- metrics.Counter(storeOutages, outages, store)
		ch <- metrics.Counter(storeWithout, without, store)
	}, storeUp, storeOutages, storeWithout)
}
