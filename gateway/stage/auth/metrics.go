package auth

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var (
	lookupsTotal  = metrics.Describe("key_cache_total", "Look-ups of keys, by what became of them.", "result")
	unpackedTotal = metrics.Describe("key_cache_unpacked_total", "Keys in memory that were packed and made ready for requests.")
	cachedKeys    = metrics.Describe("key_cache_entries", "Keys in memory.", "kind")
)

// Metrics returns the metrics of the key cache.
func (s *Sessions) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		now := s.Stats()
		ch <- metrics.Counter(lookupsTotal, now.Hits, "hit")
		ch <- metrics.Counter(lookupsTotal, now.Misses, "miss")
		ch <- metrics.Counter(lookupsTotal, now.Unknown, "unknown")
		ch <- metrics.Counter(lookupsTotal, now.Malformed, "malformed")
		ch <- metrics.Counter(lookupsTotal, now.Stale, "stale")
		ch <- metrics.Counter(lookupsTotal, now.Busy, "busy")
		ch <- metrics.Counter(unpackedTotal, 0) // kept for dashboards: cached keys are not packed
		ch <- metrics.Gauge(cachedKeys, float64(now.Entries), "session")
		ch <- metrics.Gauge(cachedKeys, float64(now.Unknowns), "unknown")
	}, lookupsTotal, unpackedTotal, cachedKeys)
}
