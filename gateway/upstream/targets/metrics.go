package targets

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var (
	targetUp      = metrics.Describe("target_up", "Whether a target is called: 1, or 0 when it is left out.", "api", "target")
	targetEjected = metrics.Describe("target_ejections_total", "How often a target was left out because calls to it failed.", "api", "target")
	breakerOpen   = metrics.Describe("breaker_open", "Whether a circuit breaker refuses calls: 1 or 0.", "api", "path")
	breakerTrips  = metrics.Describe("breaker_trips_total", "How often a circuit breaker began to refuse calls.", "api", "path")
)

// Metrics returns the metrics of targets and circuit breakers.
func (c *Registry) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		for _, t := range c.Targets() {
			api, url := metrics.Label(t.API), metrics.Label(t.URL)
			ch <- metrics.Flag(targetUp, t.Up, api, url)
			ch <- metrics.Counter(targetEjected, t.Ejected, api, url)
		}
		for _, b := range c.Breakers() {
			api, path := metrics.Label(b.API), metrics.Label(b.Path)
			ch <- metrics.Flag(breakerOpen, b.Open, api, path)
			ch <- metrics.Counter(breakerTrips, b.Trips, api, path)
		}
	}, targetUp, targetEjected, breakerOpen, breakerTrips)
}
