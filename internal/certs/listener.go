package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// ListenerOptions are the settings of a Listener.
type ListenerOptions struct {
	Setting    string // such as admin.tls; errors and log records have it
	Pair       Pair
	ClientCA   string // PEM file of the authorities of client certificates, which clients must have then; "": none is requested
	MinVersion uint16 // of TLS
	Log        *slog.Logger
}

// A Listener configures the TLS of a listener with one certificate, of the admin for
// example. Files are read again when they change; an invalid file does not replace the
// content before. It is safe for concurrent use.
type Listener struct {
	opts     ListenerOptions
	base     *tls.Config
	current  atomic.Pointer[tls.Config]
	looked   atomic.Int64 // when files were last looked at, as Unix nanoseconds
	failures Failures

	mu      sync.Mutex // held while files are read
	own     *Watched[*Certificate]
	clients *Watched[*x509.CertPool] // nil: there is no such file
}

// NewListener reads the files, all of which must be valid.
func NewListener(o ListenerOptions) (*Listener, error) {
	l := &Listener{opts: o, own: o.Pair.Watch()}
	l.base = &tls.Config{MinVersion: o.MinVersion, GetConfigForClient: l.config}
	if o.ClientCA != "" {
		l.clients = WatchAuthorities(o.ClientCA)
	}
	if err := l.reload(true); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Setting, err)
	}
	return l, nil
}

// lookEvery is the shortest interval in which files are looked at.
const lookEvery = 2 * time.Second

// config returns the configuration of a handshake.
func (l *Listener) config(*tls.ClientHelloInfo) (*tls.Config, error) {
	now := time.Now().UnixNano()
	if last := l.looked.Load(); now-last >= int64(lookEvery) && l.looked.CompareAndSwap(last, now) {
		if err := l.reload(false); err != nil {
			l.opts.Log.Error("certificates that changed cannot be used; those there were stay in use", "setting", l.opts.Setting, "err", err)
		}
	}
	return l.current.Load(), nil
}

// reload reads files that have changed, or all with force. The error lists files that cannot
// be used, whose old content stays in use.
func (l *Listener) reload(force bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh, err := l.own.Refresh(force)
	if l.clients != nil {
		more, wrong := l.clients.Refresh(force)
		fresh, err = fresh || more, errors.Join(err, wrong)
	}
	if !fresh || l.own.Now == nil || l.clients != nil && l.clients.Now == nil {
		return err
	}
	next := &tls.Config{
		MinVersion: l.opts.MinVersion, Certificates: []tls.Certificate{*l.own.Now.TLS()}, NextProtos: []string{"http/1.1"},
		SessionTicketsDisabled: true, // a session would outlive the authority that it was begun under
	}
	if l.clients != nil {
		next.ClientAuth, next.ClientCAs = tls.RequireAndVerifyClientCert, l.clients.Now
	}
	if l.current.Swap(next) != nil {
		l.opts.Log.Info("certificates read", "setting", l.opts.Setting)
	}
	l.own.Now.WarnOfEnd(l.opts.Log, time.Now())
	return err
}

// Config returns the configuration of new connections.
func (l *Listener) Config() *tls.Config { return l.base }

// Failed counts a failed handshake, and logs it at most once a second.
func (l *Listener) Failed(peer fmt.Stringer, err error) {
	l.failures.Log(l.opts.Log, err, "setting", l.opts.Setting, "peer", peer.String())
}

// Over returns a listener whose connections are those of another one, over TLS. The
// handshake of a connection runs when it is first read.
func (l *Listener) Over(ln net.Listener) *Secured { return &Secured{ln, l} }

// Secured is a listener over TLS.
type Secured struct {
	net.Listener
	tls *Listener
}

// Split returns the listener below, and the TLS of its connections, for a server that runs the
// handshakes itself.
func (s *Secured) Split() (net.Listener, *Listener) { return s.Listener, s.tls }

// Accept implements net.Listener.
func (s *Secured) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &securedConn{tls.Server(conn, s.tls.Config()), s.tls}, nil
}

// SetDeadline bounds Accept.
func (s *Secured) SetDeadline(at time.Time) error {
	if d, ok := s.Listener.(interface{ SetDeadline(t time.Time) error }); ok {
		return d.SetDeadline(at)
	}
	return nil
}

// securedConn reports why its handshake has failed.
type securedConn struct {
	*tls.Conn
	of *Listener
}

// Read implements net.Conn.
func (c *securedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && !c.ConnectionState().HandshakeComplete {
		c.of.Failed(c.RemoteAddr(), err)
	}
	return n, err
}

// Failures logs failed handshakes at most once a second, since any client can cause them.
type Failures struct {
	last  atomic.Int64 // Unix seconds
	since atomic.Uint64
}

// Log counts a failed handshake. args are attributes of the log record.
func (f *Failures) Log(to *slog.Logger, err error, args ...any) {
	if errors.Is(err, io.EOF) {
		return // a port check, as by load balancers
	}
	f.since.Add(1)
	now := time.Now().Unix()
	if last := f.last.Load(); last >= now || !f.last.CompareAndSwap(last, now) {
		return
	}
	to.Warn("TLS handshake failed", append(args, "failed", f.since.Swap(0), "err", err)...)
}

// WarnWithin is how long before its end a certificate is warned of.
const WarnWithin = 14 * 24 * time.Hour

// WarnOfEnd logs that a certificate expires within WarnWithin of a time, or has expired.
func (c *Certificate) WarnOfEnd(to *slog.Logger, now time.Time) {
	if c.Leaf.NotAfter.Sub(now) >= WarnWithin {
		return
	}
	to.Warn("a certificate that clients get to see expires soon, or has expired", "certificate", fmt.Sprint(c.Names()),
		"fingerprint", c.Sum[:12], "expires", c.Leaf.NotAfter.UTC().Format(time.RFC3339))
}
