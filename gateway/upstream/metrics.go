package upstream

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var upstreamConns = metrics.Describe("upstream_connections", "Connections to upstreams.", "state")

// Metrics returns the metrics of connections to upstreams, and of data sources.
func (s *Pools) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		now := s.Stats()
		ch <- metrics.Gauge(upstreamConns, float64(now.Open-now.Idle), "busy")
		ch <- metrics.Gauge(upstreamConns, float64(now.Idle), "idle")
		s.collectSources(ch)
	}, upstreamConns, sourceRequests, sourceSeconds)
}
