package limit

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var requestsThrottled = metrics.Describe("throttled_requests", "Requests over the rate of their key that wait for it.")

// Metrics returns the metrics of limits.
func (l *Limiter) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		ch <- metrics.Gauge(requestsThrottled, float64(l.Waiting()))
	}, requestsThrottled)
}
