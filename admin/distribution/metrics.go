package distribution

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/admin/store"
)

// meters are the metrics of a Service.
type meters struct {
	revision prometheus.Gauge
	waiting  prometheus.Gauge
	refilled prometheus.Counter
}

// newMeters registers the meters; registry may be nil.
func newMeters(registry prometheus.Registerer, st *store.Store) (*meters, error) {
	m := &meters{
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
	for _, c := range []prometheus.Collector{m.revision, m.waiting, m.refilled, newBacklog(st)} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// backlog measures the outbox on each scrape.
type backlog struct {
	store   *store.Store
	waiting *prometheus.Desc
	seconds *prometheus.Desc
}

func newBacklog(st *store.Store) *backlog {
	return &backlog{
		store:   st,
		waiting: prometheus.NewDesc("sluice_outbox_pending", "Changed keys that the key store does not have yet.", nil, nil),
		seconds: prometheus.NewDesc("sluice_outbox_oldest_seconds", "How long the first of them has waited.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (b *backlog) Describe(out chan<- *prometheus.Desc) {
	out <- b.waiting
	out <- b.seconds
}

// Collect implements prometheus.Collector. Without an answer of the database there is
// no sample.
func (b *backlog) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	waiting, seconds, err := b.store.Backlog(ctx)
	if err != nil {
		return
	}
	out <- prometheus.MustNewConstMetric(b.waiting, prometheus.GaugeValue, float64(waiting))
	out <- prometheus.MustNewConstMetric(b.seconds, prometheus.GaugeValue, seconds)
}
