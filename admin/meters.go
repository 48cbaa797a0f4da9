package admin

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// meters are what the admin counts.
type meters struct {
	requests *prometheus.CounterVec
	seconds  prometheus.Histogram
	revision prometheus.Gauge
	waiting  prometheus.Gauge
	refilled prometheus.Counter
}

// newMeters registers the meters; registry may be nil.
func newMeters(registry prometheus.Registerer, s *Server) (*meters, error) {
	m := &meters{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_admin_requests_total", Help: "Calls of the admin by route and status.",
		}, []string{"route", "code"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_admin_request_seconds", Help: "Time to answer a call of the admin, long-polls not counted.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}),
		revision: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sluice_admin_bundle_revision", Help: "Revision that the admin hands to gateways.",
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sluice_admin_bundle_waiting", Help: "Gateways that wait for a change.",
		}),
		refilled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_key_refill_total", Help: "Keys put into a key store that lacked them.",
		}),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.revision, m.waiting, m.refilled, newBacklog(s)} {
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

// backlog measures the outbox when it is asked for.
type backlog struct {
	server  *Server
	waiting *prometheus.Desc
	seconds *prometheus.Desc
}

func newBacklog(s *Server) *backlog {
	return &backlog{
		server:  s,
		waiting: prometheus.NewDesc("sluice_outbox_pending", "Changed keys that the key store does not have yet.", nil, nil),
		seconds: prometheus.NewDesc("sluice_outbox_oldest_seconds", "How long the first of them has waited.", nil, nil),
	}
}

// Describe names what Collect measures.
func (b *backlog) Describe(out chan<- *prometheus.Desc) {
	out <- b.waiting
	out <- b.seconds
}

// Collect asks the database; without an answer there is no measurement.
func (b *backlog) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	waiting, seconds, err := b.server.deps.Store.Backlog(ctx)
	if err != nil {
		return
	}
	out <- prometheus.MustNewConstMetric(b.waiting, prometheus.GaugeValue, float64(waiting))
	out <- prometheus.MustNewConstMetric(b.seconds, prometheus.GaugeValue, seconds)
}
