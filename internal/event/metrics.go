package event

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var eventsDropped = metrics.Describe("events_dropped_total", "Events that were dropped before any sink received them.")

// Metrics returns the metrics of the bus.
func (b *Bus) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		ch <- metrics.Counter(eventsDropped, b.Dropped())
	}, eventsDropped)
}
