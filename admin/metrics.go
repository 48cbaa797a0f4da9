package admin

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// callMetrics are the metrics of the calls of the admin.
type callMetrics struct {
	requests *prometheus.CounterVec
	seconds  prometheus.Histogram
}

// newCallMetrics registers the metrics; registry may be nil.
func newCallMetrics(registry prometheus.Registerer) (*callMetrics, error) {
	m := &callMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_admin_requests_total", Help: "Calls of the admin by route and status.",
		}, []string{"route", "code"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_admin_request_seconds", Help: "Time to answer a call of the admin, long-polls not counted.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// observe counts one call of a route. The duration of a long-poll is not counted.
// Routes are few and fixed: callers cannot add series.
func (m *callMetrics) observe(route string, waits bool, code int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(code)).Inc()
	if !waits {
		m.seconds.Observe(took.Seconds())
	}
}
