package acme

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var (
	orders = metrics.Describe("acme_orders_total", "Certificates that this gateway ordered by ACME, by result: issued or failed.", "result")
	lacks  = metrics.Describe("acme_domains_without_certificate", "Domains in gateway.acme.domains without a valid certificate.")
)

// Metrics returns the metrics of orders.
func (m *Manager) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		without, _ := m.Status()
		ch <- metrics.Counter(orders, m.issued.Load(), "issued")
		ch <- metrics.Counter(orders, m.failed.Load(), "failed")
		ch <- metrics.Gauge(lacks, float64(without))
	}, orders, lacks)
}
