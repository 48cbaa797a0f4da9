package graphql

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var (
	lookupsTotal  = metrics.Describe("graphql_cache_total", "Look-ups of GraphQL operations, by what became of them.", "result")
	cachedEntries = metrics.Describe("graphql_cache_entries", "GraphQL operations in memory.", "kind")
	cachedBytes   = metrics.Describe("graphql_cache_bytes", "Memory that GraphQL operations take.", "kind")
)

// Metrics returns the metrics of the caches of operations.
func (g *GraphQL) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		now := g.Cached()
		ch <- metrics.Counter(lookupsTotal, now.Hits, "hit")
		ch <- metrics.Counter(lookupsTotal, now.Misses, "miss")
		ch <- metrics.Counter(lookupsTotal, now.RefusedHits, "refused")
		ch <- metrics.Gauge(cachedEntries, float64(now.Entries), "valid")
		ch <- metrics.Gauge(cachedEntries, float64(now.Refused), "refused")
		ch <- metrics.Gauge(cachedBytes, float64(now.Bytes), "valid")
		ch <- metrics.Gauge(cachedBytes, float64(now.RefusedBytes), "refused")
	}, lookupsTotal, cachedEntries, cachedBytes)
}
