package auth

import (
	"errors"
	"strings"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

var (
	noCertificate      = pipeline.NewRejection(pipeline.ReasonCertificateMissing, 401, "Client certificate required").Named(pipeline.TextCertRequired)
	expiredCertificate = pipeline.NewRejection(pipeline.ReasonCertificateExpired, 403, "Certificate has expired").Named(pipeline.TextCertExpired)
	earlyCertificate   = pipeline.NewRejection(pipeline.ReasonCertificateExpired, 403, "Certificate is not valid yet")
	unknownCertificate = pipeline.NewRejection(pipeline.ReasonCertificateDenied, 401, noAccess).Named(pipeline.TextCertNotFound)
	otherCertificate   = pipeline.NewRejection(pipeline.ReasonCertificateDenied, 401, noAccess).Named(pipeline.TextCertMismatch)
)

// certificateMode authenticates by the client's certificate: the session's key is the
// organisation followed by the SHA-256 of the certificate. A key that is bound to the
// certificate may be sent as a token instead.
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
		case err == nil && !isBound(&e.session):
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

// mayBeKey reports whether a token is looked up. One that looks like the id of a
// certificate is not, because certificates are not secret.
func (m *certificateMode) mayBeKey(token []byte) bool {
	if len(token) < m.minLength || len(token) > maxToken {
		return false
	}
	at := len(token) - definition.CertificateSumLength
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

// certified refuses a client that has no valid certificate.
func certified(ex *pipeline.Exchange) *pipeline.Rejection {
	switch cert := ex.Call.Cert; {
	case cert == nil:
		// The client cannot send a certificate on this connection any more.
		ex.Answer.Close = ex.Call.TLS
		return noCertificate
	case ex.Moment().After(cert.Leaf.NotAfter):
		return expiredCertificate
	case ex.Moment().Before(cert.Leaf.NotBefore):
		return earlyCertificate
	}
	return nil
}

// isBound reports whether a key is bound to certificates.
func isBound(s *definition.Session) bool {
	return s.Extra != nil && (s.Extra.Certificate != "" || len(s.Extra.CertificateBindings) > 0)
}

// unbound refuses a key that is bound to other certificates than the client's.
func unbound(ex *pipeline.Exchange, s *definition.Session) *pipeline.Rejection {
	if !isBound(s) || ex.IsRecorded() {
		return nil
	}
	if r := certified(ex); r != nil {
		return r
	}
	sum := ex.Call.Cert.Sum
	if definition.NamesCertificate(s.Extra.Certificate, sum) {
		return nil
	}
	for _, id := range s.Extra.CertificateBindings {
		if definition.NamesCertificate(id, sum) {
			return nil
		}
	}
	return otherCertificate
}

// Explain says which certificate was expected.
func (m *certificateMode) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	m.source.explain(ex, f)
	f.Fact("use_certificate", "true", certificateOf(ex), "definition")
	switch ex.Rejection {
	case unknownCertificate:
		f.Fix = fixFor(ex, "make a key whose certificate is the client's ("+certificateOf(ex)+")",
			"key_hash must be that of a key whose certificate is the client's ("+certificateOf(ex)+")")
	default:
		explainEnd(ex, f)
	}
}

// explainBinding says which certificates a key is bound to.
func explainBinding(ex *pipeline.Exchange, f *pipeline.Finding) {
	if s := ex.Session; s != nil && isBound(s) {
		ids := append([]string{s.Extra.Certificate}, s.Extra.CertificateBindings...)
		f.Fact("mtls_static_certificate_bindings", strings.Trim(strings.Join(ids, ", "), ", "), certificateOf(ex), "key")
	}
	f.Fix = "connect over TLS with a certificate that the key is bound to, and that is valid now"
}

// certificateOf describes the client's certificate.
func certificateOf(ex *pipeline.Exchange) string {
	switch cert := ex.Call.Cert; {
	case cert != nil:
		return string(cert.Sum) + ", valid until " + cert.Leaf.NotAfter.UTC().Format(time.RFC3339)
	case ex.Call.TLS:
		return "no certificate"
	}
	return "no TLS"
}
