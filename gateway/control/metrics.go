package control

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var refusedCalls = metrics.Describe("control_refused_total", "Calls of the gateway API without the right secret.")

// Metrics returns the metrics of the gateway API.
func (a *API) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		ch <- metrics.Counter(refusedCalls, a.refused.Load())
	}, refusedCalls)
}
