// Package meters counts the calls of the admin.
package meters

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Meters are what the admin counts of its calls.
type Meters struct {
	requests *prometheus.CounterVec
	seconds  prometheus.Histogram
}

// New registers the meters; registry may be nil.
func New(registry prometheus.Registerer) (*Meters, error) {
	m := &Meters{
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

// Observe counts one call of a route, which may be one that waits. Routes are few
// and fixed, so that no caller can make series.
func (m *Meters) Observe(route string, waits bool, code int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(code)).Inc()
	if !waits {
		m.seconds.Observe(took.Seconds())
	}
}
