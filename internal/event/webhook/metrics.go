package webhook

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var (
	messagesTotal   = metrics.Describe("webhook_messages_total", "Messages to webhooks, by what became of them.", "outcome")
	messagesWaiting = metrics.Describe("webhook_messages_waiting", "Messages that are on their way to webhooks.")
)

// Metrics returns the metrics of messages.
func (s *Sender) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		now := s.Stats()
		ch <- metrics.Counter(messagesTotal, now.Sent, "sent")
		ch <- metrics.Counter(messagesTotal, now.Failed, "failed")
		ch <- metrics.Counter(messagesTotal, now.Dropped, "dropped")
		ch <- metrics.Counter(messagesTotal, now.Same, "same")
		ch <- metrics.Gauge(messagesWaiting, float64(now.Waiting))
	}, messagesTotal, messagesWaiting)
}
