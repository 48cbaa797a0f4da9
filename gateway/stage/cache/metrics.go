package cache

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var (
	answersTotal = metrics.Describe("answer_cache_total", "Calls whose answers may be kept, by what became of them.", "result")
	answersKept  = metrics.Describe("answer_cache_entries", "Answers that are kept.")
	answersBytes = metrics.Describe("answer_cache_bytes", "Memory that kept answers take.")
)

// Metrics returns the metrics of the cache.
func (c *Cache) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		now := c.Stats()
		ch <- metrics.Counter(answersTotal, now.Hits, "hit")
		ch <- metrics.Counter(answersTotal, now.Misses, "miss")
		ch <- metrics.Counter(answersTotal, now.Shared, "shared")
		ch <- metrics.Gauge(answersKept, float64(now.Entries))
		ch <- metrics.Gauge(answersBytes, float64(now.Bytes))
	}, answersTotal, answersKept, answersBytes)
}
