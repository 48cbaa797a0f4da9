package jwt

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var (
	verifiedTotal = metrics.Describe("token_verifications_total", "JSON Web Tokens whose signature was checked.")
	cachedTokens  = metrics.Describe("token_cache_entries", "JSON Web Tokens in memory.")
)

// Metrics returns the metrics of tokens.
func (t *Tokens) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		now := t.Stats()
		ch <- metrics.Counter(verifiedTotal, now.Verified)
		ch <- metrics.Gauge(cachedTokens, float64(now.Entries))
	}, verifiedTotal, cachedTokens)
}
