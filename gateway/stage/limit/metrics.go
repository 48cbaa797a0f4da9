package limit

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var eventsOver = metrics.Describe("subscription_events_over_limit_total", "Events of subscriptions that were over a limit of their key, by what happened: dropped, delayed, or the subscription ended.", "outcome")

var requestsThrottled = metrics.Describe("throttled_requests", "Requests over the rate of their key that wait for it.")

// Metrics returns the metrics of limits.
func (l *Limiter) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		ch <- metrics.Gauge(requestsThrottled, float64(l.Waiting()))
		for i, outcome := range [...]string{"dropped", "delayed", "ended"} {
			ch <- metrics.Counter(eventsOver, l.events[i].Load(), outcome)
		}
	}, requestsThrottled, eventsOver)
}
