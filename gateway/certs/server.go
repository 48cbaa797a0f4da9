package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/certs"
)

// ServerOptions are the settings of a Server.
type ServerOptions struct {
	Files      []certs.Pair // the first is for clients without a server name
	ClientCA   string       // PEM file of the authorities that sign clients' certificates; others are refused. "": APIs decide
	AlwaysAsk  bool         // ask all clients for a certificate
	Domains    bool         // APIs with a domain are served there only
	MinVersion uint16       // of TLS
	Store      *Store
	Issued     *Store // certificates from ACME; for the same name those of Files and Store are preferred. May be nil
	// Challenge returns the configuration for a handshake in which an authority validates a
	// name (RFC 8737), and nil for any other handshake. It may be nil.
	Challenge func(hello *tls.ClientHelloInfo) *tls.Config
	Log       *slog.Logger
}

// Server configures TLS handshakes. It is safe for concurrent use.
type Server struct {
	opts       ServerOptions
	clientAuth clientAuth
	base       *tls.Config // selects one of the choices for each client; its keys encrypt all tickets

	mu      sync.Mutex // held while files are read
	files   []*certs.Watched[*certs.Certificate]
	clients *certs.Watched[*x509.CertPool] // nil: there is no such file

	index   atomic.Pointer[index]
	choices atomic.Pointer[choices]

	failures certs.Failures
	broken   atomic.Uint64 // failures to reload a changed file
}

// choices are the configurations for clients.
type choices struct{ asking, plain *tls.Config }

// NewServer reads the files, all of which must be valid.
func NewServer(o ServerOptions) (*Server, error) {
	s := &Server{opts: o, clientAuth: clientAuth{domains: o.Domains}}
	s.base = &tls.Config{MinVersion: o.MinVersion, GetConfigForClient: s.choose}
	for _, pair := range o.Files {
		s.files = append(s.files, pair.Watch())
	}
	if o.ClientCA != "" {
		s.clients = certs.WatchAuthorities(o.ClientCA)
	}
	if err := s.reload(true); err != nil {
		return nil, err
	}
	s.warn(time.Now())
	o.Store.OnChange(s.reindex)
	if o.Issued != nil {
		o.Issued.OnChange(s.reindex)
	}
	return s, nil
}

// Config returns the configuration of a new connection.
func (s *Server) Config() *tls.Config { return s.base }

// choose selects the configuration that asks for a client certificate where an API uses
// it.
func (s *Server) choose(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if s.opts.Challenge != nil {
		if challenge := s.opts.Challenge(hello); challenge != nil {
			return challenge, nil
		}
	}
	c := s.choices.Load()
	if s.opts.AlwaysAsk || s.opts.ClientCA != "" || s.clientAuth.wants(normalName(hello.ServerName)) {
		return c.asking, nil
	}
	return c.plain, nil
}

// askedMark is in the tickets of clients that were asked for a certificate. Sessions
// without it are not resumed where one is asked for.
var askedMark = []byte("sluice asked")

func (s *Server) newChoices(authorities *x509.CertPool) *choices {
	plain := &tls.Config{MinVersion: s.opts.MinVersion, NextProtos: []string{"http/1.1"}, GetCertificate: s.certificate}
	asking := plain.Clone()
	asking.ClientAuth, asking.VerifyPeerCertificate = tls.RequestClientCert, checkChainSize
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

// maxShown bounds a client's certificate with its chain, in bytes. They are not
// authenticated yet, and are kept as long as the connection.
const maxShown = 32 << 10

// checkChainSize refuses chains of more than maxShown bytes.
func checkChainSize(shown [][]byte, _ [][]*x509.Certificate) error {
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

// Came adds APIs before they are in service.
func (s *Server) Came(apis []*pipeline.API) { s.clientAuth.change(apis, nil) }

// Gone removes APIs that are not in service any more.
func (s *Server) Gone(apis []*pipeline.API) { s.clientAuth.change(nil, apis) }

// Reload reads all files again. The error lists files that cannot be used, whose old
// content stays in use.
func (s *Server) Reload() error { return s.reload(true) }

func (s *Server) reload(force bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	changed := false
	for _, f := range s.files {
		fresh, err := f.Refresh(force)
		if changed = changed || fresh; err != nil {
			errs = append(errs, err)
		}
	}
	if s.clients != nil {
		_, err := s.clients.Refresh(force)
		if err != nil {
			errs = append(errs, err)
		}
		s.setChoices(s.clients.Now)
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

// reindex indexes the store after a change.
func (s *Server) reindex() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rebuild()
}

// rebuild needs mu.
func (s *Server) rebuild() {
	var files []*certs.Certificate
	for _, f := range s.files {
		if f.Now != nil {
			files = append(files, f.Now)
		}
	}
	var issued map[string]*certs.Certificate
	if s.opts.Issued != nil {
		issued = s.opts.Issued.All()
	}
	s.index.Store(newIndex(files, s.opts.Store.All(), issued))
}

// How often files and expiries are checked.
const (
	lookEvery = 2 * time.Second
	warnEvery = 24 * time.Hour
)

// Run reloads files that have changed, and warns of certificates that expire soon, until
// ctx ends.
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

func (s *Server) warn(now time.Time) {
	for _, c := range s.index.Load().all {
		c.WarnOfEnd(s.opts.Log, now)
	}
}

// Failed counts a failed handshake, and logs it at most once a second.
func (s *Server) Failed(peer netip.Addr, err error) {
	s.failures.Log(s.opts.Log, err, "peer", peer)
}

// Stats describes the certificates in use.
type Stats struct {
	Broken  uint64 // failures to reload changed files
	Expires []Expiry
}

// Expiry is when a certificate expires.
type Expiry struct {
	Name        string // the first name of the certificate
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
