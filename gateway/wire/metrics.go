package wire

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var (
	clientConns       = metrics.Describe("client_connections", "Open connections of clients.")
	clientRefused     = metrics.Describe("client_connections_refused_total", "Connections of clients that a limit turned away.")
	clientRequests    = metrics.Describe("client_requests", "Requests of clients that were begun, or wait to be read until others are done.", "state")
	proxyHeaders      = metrics.Describe("client_proxy_headers_refused_total", "Connections that were closed because they did not begin with a header of the PROXY protocol.")
	panicsTotal       = metrics.Describe("panics_total", "Requests that ended in a fault of the gateway's.")
	handshakesFailed  = metrics.Describe("tls_handshake_failures_total", "TLS handshakes of clients that came to nothing.")
	handshakesPending = metrics.Describe("tls_handshakes", "TLS handshakes of clients that are being made.")
)

// Metrics returns the metrics of connections and requests.
func (s *Server) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		now := s.Stats()
		ch <- metrics.Gauge(clientConns, float64(now.Open))
		ch <- metrics.Gauge(clientRequests, float64(now.Begun), "begun")
		ch <- metrics.Gauge(clientRequests, float64(now.Waiting), "waiting")
		ch <- metrics.Counter(clientRefused, now.Refused)
		ch <- metrics.Counter(proxyHeaders, now.Unintroduced)
		ch <- metrics.Counter(panicsTotal, now.Panics)
	}, clientConns, clientRefused, clientRequests, proxyHeaders, panicsTotal)
}

// HandshakeMetrics returns the metrics of TLS handshakes.
func (s *Server) HandshakeMetrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		now := s.Stats()
		ch <- metrics.Counter(handshakesFailed, now.FailedHandshakes)
		ch <- metrics.Gauge(handshakesPending, float64(now.Handshakes))
	}, handshakesFailed, handshakesPending)
}
