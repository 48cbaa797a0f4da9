package overload

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var (
	sheddingNow   = metrics.Describe("overload_shedding", "Whether calls are refused because there are too many: 1 or 0.")
	delaySeconds  = metrics.Describe("overload_delay_seconds", "How long requests wait at least until the gateway gets to them.")
	limitNow      = metrics.Describe("overload_limit", "Calls per second that may pass, while calls are refused because there are too many.")
	sheddingTotal = metrics.Describe("overload_total", "How often calls began to be refused because there were too many.")
)

// Metrics returns the metrics of overload.
func (g *Guard) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		now := g.Stats()
		if now.Shedding {
			ch <- metrics.Gauge(limitNow, now.Limit)
		}
		ch <- metrics.Flag(sheddingNow, now.Shedding)
		ch <- metrics.Gauge(delaySeconds, now.Delay.Seconds())
		ch <- metrics.Counter(sheddingTotal, now.Times)
	}, sheddingNow, delaySeconds, limitNow, sheddingTotal)
}
