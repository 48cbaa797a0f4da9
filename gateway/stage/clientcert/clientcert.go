// Package clientcert admits clients whose TLS certificate is listed by the API, or
// signed by an authority that the API lists (mutual TLS).
//
// The handshake proves that the client owns its certificate; each API decides here
// whether it admits it. Decisions are cached for the life of the connection.
package clientcert

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/definition"
)

var (
	plain   = pipeline.NewRejection(pipeline.ReasonTLSRequired, 403, "TLS not enabled")
	missing = pipeline.NewRejection(pipeline.ReasonCertificateMissing, 403, "Client TLS certificate is required")
	expired = pipeline.NewRejection(pipeline.ReasonCertificateExpired, 403, "Certificate has expired")
	early   = pipeline.NewRejection(pipeline.ReasonCertificateExpired, 403, "Certificate is not valid yet")
)

// Certificates is the store of certificates that definitions name by id.
type Certificates interface {
	// Find returns a certificate, or nil.
	Find(id string) *certs.Certificate

	// Generation returns a number that changes with the store.
	Generation() uint64
}

// Compile returns the stage of an API, or nil when it requires no certificates. PEM
// files that it names are read now; ids are looked up again whenever store changes. A
// nil store is empty.
func Compile(def *definition.API, store Certificates) (pipeline.Stage, error) {
	if !def.UseMutualTLS {
		return nil, nil
	}
	if store == nil {
		store = none{}
	}
	s := &stage{store: store}
	for i, entry := range def.ClientCertificates {
		if _, _, ok := certs.SplitID(entry); ok {
			s.ids = append(s.ids, entry)
			continue
		}
		found, err := readFile(entry)
		if err != nil {
			return nil, fmt.Errorf("client_certificates[%d]: %w", i, err)
		}
		s.files = append(s.files, found...)
	}
	return s, nil
}

// none is a store without certificates.
type none struct{}

// Find implements Certificates.
func (none) Find(string) *certs.Certificate { return nil }

// Generation implements Certificates.
func (none) Generation() uint64 { return 0 }

// readFile reads every certificate in a file.
func readFile(path string) ([]*x509.Certificate, error) {
	if !strings.ContainsAny(path, "/.") {
		return nil, fmt.Errorf("%.100q is neither the id of a certificate (organisation and the 64 hexadecimal digits of its SHA-256) nor the path of a PEM file", path)
	}
	text, err := certs.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: certificate %d is malformed: %w", path, len(all)+1, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: %w", path, certs.ErrNoCertificate)
	}
	return all, nil
}

type stage struct {
	store Certificates
	ids   []string
	files []*x509.Certificate
	list  atomic.Pointer[list]
}

// list is the certificates that are admitted, as of one generation of the store.
type list struct {
	generation uint64
	sums       map[string]bool // of the certificates themselves
	roots      *x509.CertPool  // listed authorities; nil: none
	absent     []string        // ids that the store does not have
}

// A verdict is the decision on a client's certificate. It has all that a request
// needs: reading the certificate would touch several cache lines.
type verdict struct {
	refusal     *pipeline.Rejection // nil: it is admitted
	from, until time.Time           // while the certificate, and those of its authorities, are valid
}

func (v *verdict) holds(now time.Time) bool { return !now.Before(v.from) && !now.After(v.until) }

// Handle implements pipeline.Stage.
func (s *stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if r := s.refusal(ex); r != nil {
		return ex.Reject(r)
	}
	return pipeline.Next
}

func (s *stage) refusal(ex *pipeline.Exchange) *pipeline.Rejection {
	cert := ex.Call.Cert
	switch {
	case !ex.Call.TLS:
		return plain
	case ex.IsRecorded():
		return nil
	case cert == nil:
		// This connection cannot present a certificate any more.
		ex.Answer.Close = true
		return missing
	}
	l, now := s.current(), ex.Moment()
	if v, ok := cert.Recall(l).(*verdict); ok && v.holds(now) {
		return v.refusal
	}
	switch {
	case now.After(cert.Leaf.NotAfter):
		return expired
	case now.Before(cert.Leaf.NotBefore):
		return early
	}
	v := l.decide(cert, now)
	cert.Remember(l, v)
	return v.refusal
}

// current returns the list of the current generation.
func (s *stage) current() *list {
	generation := s.store.Generation()
	l := s.list.Load()
	if l == nil || l.generation != generation {
		l = s.make(generation)
		s.list.Store(l)
	}
	return l
}

func (s *stage) make(generation uint64) *list {
	l := &list{generation: generation, sums: make(map[string]bool)}
	for _, id := range s.ids {
		if c := s.store.Find(id); c != nil {
			l.add(c.Leaf)
		} else {
			l.absent = append(l.absent, id)
		}
	}
	for _, c := range s.files {
		l.add(c)
	}
	return l
}

func (l *list) add(c *x509.Certificate) {
	l.sums[certs.SumOf(c.Raw)] = true
	if !c.IsCA {
		return
	}
	if l.roots == nil {
		l.roots = x509.NewCertPool()
	}
	l.roots.AddCert(c)
}

// decide returns the verdict on a certificate that is valid by its dates.
func (l *list) decide(cert *wire.Certificate, now time.Time) *verdict {
	v := &verdict{from: cert.Leaf.NotBefore, until: cert.Leaf.NotAfter}
	if l.sums[string(cert.Sum)] {
		return v
	}
	if until, err := l.signed(cert, now); err == nil {
		v.until = until
		return v
	}
	v.refusal = pipeline.NewRejection(pipeline.ReasonCertificateDenied, 403, "Certificate with SHA256 "+string(cert.Sum)+" not allowed")
	return v
}

var errNoAuthority = errors.New("no authority is listed")

// signed returns until when a certificate is valid as signed by a listed authority.
func (l *list) signed(cert *wire.Certificate, now time.Time) (until time.Time, err error) {
	if l.roots == nil {
		return until, errNoAuthority
	}
	between := x509.NewCertPool()
	for _, c := range cert.Chain[1:] {
		between.AddCert(c)
	}
	chains, err := cert.Leaf.Verify(x509.VerifyOptions{
		Roots: l.roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return until, err
	}
	until = cert.Leaf.NotAfter
	for _, c := range chains[0] {
		if c.NotAfter.Before(until) {
			until = c.NotAfter
		}
	}
	return until, nil
}

// Explain implements pipeline.Explainer.
func (s *stage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	l := s.current()
	seen := "no TLS"
	if cert := ex.Call.Cert; cert != nil {
		seen = string(cert.Sum) + ", valid until " + cert.Leaf.NotAfter.UTC().Format(time.RFC3339)
	} else if ex.Call.TLS {
		seen = "no certificate"
	}
	listed := append([]string(nil), ex.API.Definition.ClientCertificates...)
	f.Fact("client_certificates", strings.Join(listed, ", "), seen, "definition")
	f.Said = "the client's certificate is listed, or signed by an authority that is"
	if f.Verdict != pipeline.Rejected {
		return
	}
	f.Said = s.refusal(ex).Message
	f.Fix = "connect over TLS with a certificate that client_certificates lists, or one signed by an authority that it lists"
	switch {
	case len(listed) == 0:
		f.Fix = "list certificates or their authority in client_certificates: it is empty, so that nobody is let in"
	case len(l.absent) > 0:
		f.Fix += "; these are listed and not in the store: " + strings.Join(l.absent, ", ")
	}
}
