package delivery

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/admin/store"
)

// meters are the metrics of a Queue.
type meters struct {
	attempts *prometheus.CounterVec
	refused  *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

// newMeters registers the metrics; registry may be nil.
func newMeters(registry prometheus.Registerer, st *store.Store) (*meters, error) {
	m := &meters{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_deliveries_total", Help: "Attempts to send messages, by kind and by what came of them.",
		}, []string{"kind", "result"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_deliveries_refused_total", Help: "Messages that were not queued because too many wait for their target.",
		}, []string{"kind"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sluice_delivery_seconds", Help: "Time that an attempt to send a message takes.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, []string{"kind"}),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.attempts, m.refused, m.seconds, newBacklog(st)} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// backlog measures the waiting messages on each scrape.
type backlog struct {
	store                 *store.Store
	waiting, oldest, late *prometheus.Desc
}

func newBacklog(st *store.Store) *backlog {
	kind := []string{"kind"}
	return &backlog{
		store:   st,
		waiting: prometheus.NewDesc("sluice_deliveries_pending", "Messages that wait to be sent, for the first time or again.", kind, nil),
		oldest:  prometheus.NewDesc("sluice_deliveries_oldest_seconds", "Age of the oldest of them.", kind, nil),
		late:    prometheus.NewDesc("sluice_deliveries_late_seconds", "For how long the one has been due that waits longest for an attempt.", kind, nil),
	}
}

// Describe implements prometheus.Collector.
func (b *backlog) Describe(out chan<- *prometheus.Desc) {
	out <- b.waiting
	out <- b.oldest
	out <- b.late
}

// Collect implements prometheus.Collector. Without an answer of the database there are
// no samples.
func (b *backlog) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	rows, err := b.store.MessageBacklogs(ctx)
	if err != nil {
		return
	}
	known := make(map[string]store.MessageBacklog, len(rows))
	for _, row := range rows {
		known[row.Kind] = row
	}
	for _, kind := range []string{Webhook, Hook, Letter} {
		row := known[kind]
		out <- prometheus.MustNewConstMetric(b.waiting, prometheus.GaugeValue, float64(row.Waiting), kind)
		out <- prometheus.MustNewConstMetric(b.oldest, prometheus.GaugeValue, row.Oldest, kind)
		out <- prometheus.MustNewConstMetric(b.late, prometheus.GaugeValue, row.Late, kind)
	}
}
