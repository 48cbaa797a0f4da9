package tunnels

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var (
	tunnelsOpen = metrics.Describe("tunnels", "Connections that have left HTTP, such as those of WebSocket, and event streams of subscriptions.", "api")
	tunnelsCut  = metrics.Describe("tunnels_cut_total", "Connections that had left HTTP, and event streams, that were cut: what allowed them was gone.")
)

// Metrics returns the metrics of tunnels.
func (r *Registry) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		now := r.Stats()
		for api, n := range now.Open {
			ch <- metrics.Gauge(tunnelsOpen, float64(n), metrics.Label(api))
		}
		ch <- metrics.Counter(tunnelsCut, now.Cut)
	}, tunnelsOpen, tunnelsCut)
}
