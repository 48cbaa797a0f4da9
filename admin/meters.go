package admin

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// meters are what the admin counts of its calls.
type meters struct {
	requests *prometheus.CounterVec
	seconds  prometheus.Histogram
}

// newMeters registers the meters; registry may be nil.
func newMeters(registry prometheus.Registerer) (*meters, error) {
	m := &meters{
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

// observe counts one call. Routes are few and fixed, so that no caller can make
// series.
func (m *meters) observe(route *route, code int, took time.Duration) {
	m.requests.WithLabelValues(route.name(), strconv.Itoa(code)).Inc()
	if !route.waits {
		m.seconds.Observe(took.Seconds())
	}
}
