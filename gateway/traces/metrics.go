package traces

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var spansTotal = metrics.Describe("trace_spans_total", "Spans for the collector of traces, by what became of them; of dropped requests one each.", "outcome")

// Metrics returns the metrics of spans.
func (r *Recorder) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		now := r.Stats()
		ch <- metrics.Counter(spansTotal, now.Sent, "sent")
		ch <- metrics.Counter(spansTotal, now.Failed, "failed")
		ch <- metrics.Counter(spansTotal, now.Dropped, "dropped")
	}, spansTotal)
}
