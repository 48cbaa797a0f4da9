package explain

import (
	"crypto/x509"

	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/certs"
)

// checkCertificate parses the client's certificate, which needs TLS.
func (r *Request) checkCertificate(add func(path, message string)) {
	if r.Certificate == "" {
		return
	}
	if r.TLS != nil && !*r.TLS {
		add("certificate", "is shown over TLS only; leave tls out")
		return
	}
	c, err := certs.Parse([]byte(r.Certificate))
	if err != nil {
		add("certificate", err.Error())
		return
	}
	chain := make([]*x509.Certificate, 0, len(c.Chain))
	for _, der := range c.Chain {
		if one, err := x509.ParseCertificate(der); err == nil { // each was parsed before
			chain = append(chain, one)
		}
	}
	r.secure, r.shown = true, wire.NewCertificate(chain)
}

// Shown returns the client's certificate, or nil.
func (r *Request) Shown() *wire.Certificate { return r.shown }
