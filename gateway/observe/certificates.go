package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TLS is what there is to know of the certificates that clients get to see.
type TLS struct {
	Broken  uint64 // times that files that had changed could not be used
	Expires []Expiry
}

// Expiry is when a certificate ends.
type Expiry struct {
	Name        string // the first of the certificate's
	Fingerprint string // its beginning, another one for each certificate
	At          time.Time
}

var (
	tlsBroken  = describe("tls_reload_failures_total", "Times that changed files of certificates could not be used; what there was stayed in use.")
	tlsExpires = describe("tls_certificate_expiry_timestamp_seconds", "When a certificate that clients get to see ends.", "name", "fingerprint")
	tlsFailed  = describe("tls_handshake_failures_total", "TLS handshakes of clients that came to nothing.")
	tlsPending = describe("tls_handshakes", "TLS handshakes of clients that are being made.")
	tlsMetrics = []*prometheus.Desc{tlsBroken, tlsExpires, tlsFailed, tlsPending}
)

func (t TLS) collect(ch chan<- prometheus.Metric) {
	ch <- total(tlsBroken, t.Broken)
	for _, e := range t.Expires {
		ch <- gauge(tlsExpires, float64(e.At.Unix()), validLabel(e.Name), e.Fingerprint)
	}
}

func (c Clients) collectTLS(ch chan<- prometheus.Metric) {
	ch <- total(tlsFailed, c.FailedHandshakes)
	ch <- gauge(tlsPending, float64(c.Handshakes))
}
