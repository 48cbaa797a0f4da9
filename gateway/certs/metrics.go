package certs

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var (
	reloadsFailed     = metrics.Describe("tls_reload_failures_total", "Times that changed files of certificates could not be used; what there was stayed in use.")
	certificateExpiry = metrics.Describe("tls_certificate_expiry_timestamp_seconds", "When a certificate that clients get to see ends.", "name", "fingerprint")
)

// Metrics returns the metrics of the certificates that clients see.
func (s *Server) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		now := s.Stats()
		ch <- metrics.Counter(reloadsFailed, now.Broken)
		for _, e := range now.Expires {
			ch <- metrics.Gauge(certificateExpiry, float64(e.At.Unix()), metrics.Label(e.Name), e.Fingerprint)
		}
	}, reloadsFailed, certificateExpiry)
}
