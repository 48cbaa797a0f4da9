package auth

import (
	"errors"
	"strings"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/certificate"
	"github.com/sluicegate/sluice/internal/keystore"
)

var (
	noCertificate      = pipeline.NewRejection(pipeline.ReasonCertificateMissing, 401, "Client certificate required").Named(pipeline.TextCertRequired)
	oldCertificate     = pipeline.NewRejection(pipeline.ReasonCertificateExpired, 403, "Certificate has expired").Named(pipeline.TextCertExpired)
	youngCertificate   = pipeline.NewRejection(pipeline.ReasonCertificateExpired, 403, "Certificate is not valid yet")
	unknownCertificate = pipeline.NewRejection(pipeline.ReasonCertificateDenied, 401, noAccess).Named(pipeline.TextCertNotFound)
	otherCertificate   = pipeline.NewRejection(pipeline.ReasonCertificateDenied, 401, noAccess).Named(pipeline.TextCertMismatch)
)

// certificateMode takes the certificate of the client for a key's: the key is
// called by its organisation and the certificate's SHA-256. A key that is bound
// to the certificate may be shown as a token beside it.
type certificateMode struct {
	*tokenMode
	org string
}

// Handle finds the session of the client's certificate.
func (m *certificateMode) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if r := certified(ex); r != nil {
		return ex.Reject(r)
	}
	if token := withoutScheme(m.find(ex)); m.mayBeKey(token) {
		e, err := m.lookUp(ex, &m.scope, token)
		switch {
		case err == nil && !isBound(e.session):
			return ex.Reject(otherCertificate)
		case err == nil:
			return admit(ex, token, e)
		case !errors.Is(err, keystore.ErrNotFound):
			return refuse(ex, err, unknownCertificate)
		}
	}
	sum := ex.Call.Cert.Sum
	e, err := m.lookUp(ex, &m.scope, sum)
	if err != nil {
		return refuse(ex, err, unknownCertificate)
	}
	return admit(ex, sum, e)
}

// mayBeKey tells whether a token is looked up. One in the form of a certificate's
// id is not: certificates are no secrets.
func (m *certificateMode) mayBeKey(token []byte) bool {
	if len(token) < m.least || len(token) > maxToken {
		return false
	}
	at := len(token) - certificate.SumLength
	return at < 0 || at > 0 && string(token[:at]) != m.org || !isHex(token[at:])
}

func isHex(text []byte) bool {
	for _, c := range text {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// certified refuses a client without a certificate that is valid now.
func certified(ex *pipeline.Exchange) *pipeline.Rejection {
	switch cert := ex.Call.Cert; {
	case cert == nil:
		// On this connection none can come any more.
		ex.Answer.Close = ex.Call.TLS
		return noCertificate
	case ex.Moment().After(cert.Leaf.NotAfter):
		return oldCertificate
	case ex.Moment().Before(cert.Leaf.NotBefore):
		return youngCertificate
	}
	return nil
}

// isBound tells whether a key works with some certificates only.
func isBound(s *definition.Session) bool {
	return s.Extra != nil && (s.Extra.Certificate != "" || len(s.Extra.CertificateBindings) > 0)
}

// unbound refuses a key that comes without a certificate which it is bound to.
func unbound(ex *pipeline.Exchange, s *definition.Session) *pipeline.Rejection {
	if !isBound(s) {
		return nil
	}
	if r := certified(ex); r != nil {
		return r
	}
	sum := ex.Call.Cert.Sum
	if certificate.Names(s.Extra.Certificate, sum) {
		return nil
	}
	for _, id := range s.Extra.CertificateBindings {
		if certificate.Names(id, sum) {
			return nil
		}
	}
	return otherCertificate
}

// Explain tells which certificate was looked for.
func (m *certificateMode) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	m.source.explain(ex, f)
	f.Fact("use_certificate", "true", shownBy(ex), "definition")
	switch ex.Rejection {
	case unknownCertificate:
		f.Fix = fixFor(ex, "make a key whose certificate is the client's ("+shownBy(ex)+")",
			"key_hash must be that of a key whose certificate is the client's ("+shownBy(ex)+")")
	default:
		explainEnd(ex, f)
	}
}

// explainBinding tells what a key is bound to.
func explainBinding(ex *pipeline.Exchange, f *pipeline.Finding) {
	if s := ex.Session; s != nil && isBound(s) {
		ids := append([]string{s.Extra.Certificate}, s.Extra.CertificateBindings...)
		f.Fact("mtls_static_certificate_bindings", strings.Trim(strings.Join(ids, ", "), ", "), shownBy(ex), "key")
	}
	f.Fix = "connect over TLS with a certificate that the key is bound to, and that is valid now"
}

// shownBy names the certificate of the client.
func shownBy(ex *pipeline.Exchange) string {
	switch cert := ex.Call.Cert; {
	case cert != nil:
		return string(cert.Sum) + ", valid until " + cert.Leaf.NotAfter.UTC().Format(time.RFC3339)
	case ex.Call.TLS:
		return "no certificate"
	}
	return "no TLS"
}
