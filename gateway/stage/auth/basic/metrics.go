package basic

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var (
	hashesTotal     = metrics.Describe("password_hashes_total", "Passwords of users that were hashed.")
	refusalsTotal   = metrics.Describe("password_refusals_total", "Passwords of users that were refused, by why.", "result")
	cachedPasswords = metrics.Describe("password_cache_entries", "Passwords of users that are known to be right.")
)

// Metrics returns the metrics of passwords.
func (v *Verifier) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		now := v.Stats()
		ch <- metrics.Counter(hashesTotal, now.Hashes)
		ch <- metrics.Counter(refusalsTotal, now.Wrong, "wrong")
		ch <- metrics.Counter(refusalsTotal, now.Throttled, "throttled")
		ch <- metrics.Counter(refusalsTotal, now.Busy, "busy")
		ch <- metrics.Gauge(cachedPasswords, float64(now.Entries))
	}, hashesTotal, refusalsTotal, cachedPasswords)
}
