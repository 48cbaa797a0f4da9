package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/certs"
)

// ServerOptions say what a gateway shows to its clients, and asks of them.
type ServerOptions struct {
	Files      []Pair // the first is for clients that ask for no name
	ClientCA   string // PEM file of the authorities of clients' certificates; others are refused. "": APIs alone decide
	AlwaysAsk  bool   // clients are asked for a certificate also where no API wants one
	Domains    bool   // APIs with a domain answer there only
	MinVersion uint16 // of TLS
	Store      *Store
	Log        *slog.Logger
}

// Server has what handshakes need. It is safe for concurrent use.
type Server struct {
	opts  ServerOptions
	asked asked
	base  *tls.Config // chooses one of the others for each client; its keys seal all tickets

	mu      sync.Mutex // held by who reads files
	files   []*watched[*certs.Certificate]
	clients *watched[*x509.CertPool] // nil: there is no such file

	index   atomic.Pointer[index]
	choices atomic.Pointer[choices]

	failures failures
	broken   atomic.Uint64 // times that a file that had changed could not be used
}

// choices are the configurations that clients get.
type choices struct{ asking, plain *tls.Config }

// NewServer reads the files, each of which must be good.
func NewServer(o ServerOptions) (*Server, error) {
	s := &Server{opts: o, asked: asked{domains: o.Domains}}
	s.base = &tls.Config{MinVersion: o.MinVersion, GetConfigForClient: s.choose}
	for _, pair := range o.Files {
		s.files = append(s.files, &watched[*certs.Certificate]{paths: pair.paths(), load: pair.succeed})
	}
	if o.ClientCA != "" {
		s.clients = &watched[*x509.CertPool]{paths: []string{o.ClientCA}, load: func(*x509.CertPool) (*x509.CertPool, error) { return readPool(o.ClientCA) }}
	}
	if err := s.reload(true); err != nil {
		return nil, err
	}
	s.warn(time.Now())
	o.Store.OnChange(s.reindex)
	return s, nil
}

func (p Pair) paths() []string {
	if p.Key == "" {
		return []string{p.Cert}
	}
	return []string{p.Cert, p.Key}
}

// Config returns the configuration of a connection that begins.
func (s *Server) Config() *tls.Config { return s.base }

// choose asks a client for its certificate where an API wants one.
func (s *Server) choose(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	c := s.choices.Load()
	if s.opts.AlwaysAsk || s.opts.ClientCA != "" || s.asked.wants(normalName(hello.ServerName)) {
		return c.asking, nil
	}
	return c.plain, nil
}

// askedMark is in the tickets of clients that were asked for a certificate. One
// that was not, because no API wanted one then, begins anew.
var askedMark = []byte("sluice asked")

func (s *Server) newChoices(authorities *x509.CertPool) *choices {
	plain := &tls.Config{MinVersion: s.opts.MinVersion, NextProtos: []string{"http/1.1"}, GetCertificate: s.certificate}
	asking := plain.Clone()
	asking.ClientAuth, asking.VerifyPeerCertificate = tls.RequestClientCert, isBrief
	if authorities != nil {
		asking.ClientAuth, asking.ClientCAs = tls.VerifyClientCertIfGiven, authorities
	}
	asking.WrapSession = func(cs tls.ConnectionState, ss *tls.SessionState) ([]byte, error) {
		ss.Extra = append(ss.Extra, askedMark)
		return s.base.EncryptTicket(cs, ss)
	}
	asking.UnwrapSession = func(identity []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
		ss, err := s.base.DecryptTicket(identity, cs)
		if err != nil || ss == nil {
			return nil, err
		}
		for _, extra := range ss.Extra {
			if string(extra) == string(askedMark) {
				return ss, nil
			}
		}
		return nil, nil
	}
	return &choices{asking: asking, plain: plain}
}

// maxShown bounds what a client may show as its certificate and those that lead to
// its authority, in bytes: anybody can show some, and they are kept for as long as
// the connection lasts.
const maxShown = 32 << 10

// isBrief refuses certificates of more than maxShown.
func isBrief(shown [][]byte, _ [][]*x509.Certificate) error {
	size := 0
	for _, der := range shown {
		size += len(der)
	}
	if size > maxShown {
		return fmt.Errorf("the client shows %d bytes of certificates; at most %d are looked at", size, maxShown)
	}
	return nil
}

func (s *Server) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return s.index.Load().certificate(hello, time.Now())
}

// Came is told of APIs before they are in service.
func (s *Server) Came(apis []*pipeline.API) { s.asked.change(apis, nil) }

// Gone is told of APIs that are not in service any more.
func (s *Server) Gone(apis []*pipeline.API) { s.asked.change(nil, apis) }

// Reload reads every file again. What is wrong with one is returned; what it held
// stays in use.
func (s *Server) Reload() error { return s.reload(true) }

func (s *Server) reload(force bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	changed := false
	for _, f := range s.files {
		fresh, err := f.refresh(force)
		if changed = changed || fresh; err != nil {
			errs = append(errs, err)
		}
	}
	if s.clients != nil {
		_, err := s.clients.refresh(force)
		if err != nil {
			errs = append(errs, err)
		}
		s.setChoices(s.clients.now)
	} else if s.choices.Load() == nil {
		s.setChoices(nil)
	}
	if changed || s.index.Load() == nil {
		s.rebuild()
	}
	return errors.Join(errs...)
}

func (s *Server) setChoices(authorities *x509.CertPool) {
	if now := s.choices.Load(); now == nil || now.asking.ClientCAs != authorities {
		s.choices.Store(s.newChoices(authorities))
	}
}

// reindex takes note of a change of the store.
func (s *Server) reindex() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rebuild()
}

// rebuild needs mu.
func (s *Server) rebuild() {
	var files []*certs.Certificate
	for _, f := range s.files {
		if f.now != nil {
			files = append(files, f.now)
		}
	}
	s.index.Store(newIndex(files, s.opts.Store.All()))
}

// How often files are looked at, and how often expiries.
const (
	lookEvery = 2 * time.Second
	warnEvery = 24 * time.Hour
)

// Run reads files again that change, and warns of certificates that are about to
// expire, until ctx ends.
func (s *Server) Run(ctx context.Context) {
	look, warn := time.NewTicker(lookEvery), time.NewTicker(warnEvery)
	defer look.Stop()
	defer warn.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-warn.C:
			s.warn(now)
		case <-look.C:
			before := s.index.Load()
			if err := s.reload(false); err != nil {
				s.broken.Add(1)
				s.opts.Log.Error("certificates that changed cannot be used; those there were stay in use", "err", err)
			}
			if after := s.index.Load(); after != before {
				s.opts.Log.Info("certificates read", "certificates", len(after.all))
				s.warn(time.Now())
			}
		}
	}
}

// warnWithin is how long before its end a certificate is warned of.
const warnWithin = 14 * 24 * time.Hour

func (s *Server) warn(now time.Time) {
	for _, c := range s.index.Load().all {
		if left := c.Leaf.NotAfter.Sub(now); left < warnWithin {
			s.opts.Log.Warn("a certificate that clients get to see expires soon, or has expired", "certificate", fmt.Sprint(c.Names()),
				"fingerprint", c.Sum[:12], "expires", c.Leaf.NotAfter.UTC().Format(time.RFC3339))
		}
	}
}

// failures says once a second why handshakes fail: anybody can make them fail.
type failures struct {
	last  atomic.Int64 // Unix seconds
	since atomic.Uint64
}

// Failed takes note of a handshake that came to nothing.
func (s *Server) Failed(peer netip.Addr, err error) {
	if errors.Is(err, io.EOF) {
		return // a look whether somebody listens, as load balancers take it
	}
	f := &s.failures
	f.since.Add(1)
	now := time.Now().Unix()
	if last := f.last.Load(); last >= now || !f.last.CompareAndSwap(last, now) {
		return
	}
	s.opts.Log.Warn("TLS handshake failed", "peer", peer, "failed", f.since.Swap(0), "err", err)
}

// Stats is what there is to know of the certificates that clients get to see.
type Stats struct {
	Broken  uint64 // times that files that had changed could not be used
	Expires []Expiry
}

// Expiry is when a certificate ends.
type Expiry struct {
	Name        string // the first of the certificate's
	Fingerprint string // 12 digits
	At          time.Time
}

// Stats returns current numbers.
func (s *Server) Stats() Stats {
	st := Stats{Broken: s.broken.Load()}
	for _, c := range s.index.Load().all {
		e := Expiry{Fingerprint: c.Sum[:12], At: c.Leaf.NotAfter}
		if names := c.Names(); len(names) > 0 {
			e.Name = names[0]
		}
		st.Expires = append(st.Expires, e)
	}
	return st
}
