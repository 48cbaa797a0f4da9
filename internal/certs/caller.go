package certs

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// CallerOptions say what a Caller trusts, and how it authenticates.
type CallerOptions struct {
	CA   string       // PEM file of the authorities that are trusted; "": the system's
	Pair Pair         // client certificate; the zero value: none
	Name string       // that the server's certificate must have; "": the host that is called
	Log  *slog.Logger // of changed files that cannot be used; nil: they are not logged
}

// IsZero reports whether there are neither authorities nor a certificate.
func (o CallerOptions) IsZero() bool { return o.CA == "" && o.Pair == Pair{} && o.Name == "" }

// A Caller makes connections to servers over TLS with authorities and a client certificate of
// its own. Files that have changed are read again for the next connection; an invalid file
// does not replace the content before.
type Caller struct {
	mu          sync.Mutex
	authorities *Watched[*x509.CertPool] // nil: the system's
	own         *Watched[*Certificate]   // nil: none
	name        string
	log         *slog.Logger
}

// NewCaller reads the files, all of which must be valid.
func NewCaller(o CallerOptions) (*Caller, error) {
	c := &Caller{name: o.Name, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler))}
	if o.CA != "" {
		c.authorities = WatchAuthorities(o.CA)
	}
	if o.Pair != (Pair{}) {
		c.own = o.Pair.Watch()
	}
	return c, c.refresh(true)
}

func (c *Caller) refresh(force bool) (err error) {
	if c.authorities != nil {
		_, err = c.authorities.Refresh(force)
	}
	if c.own != nil {
		_, wrong := c.own.Refresh(force)
		err = errors.Join(err, wrong)
	}
	return err
}

// config returns the configuration of the next connection.
func (c *Caller) config() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(false); err != nil {
		c.log.Error("files for calls over TLS that changed cannot be used; what they held stays in use", "err", err)
	}
	conf := &tls.Config{ServerName: c.name, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if c.authorities != nil {
		conf.RootCAs = c.authorities.Now
	}
	if c.own != nil {
		own := c.own.Now.TLS()
		// It is sent in any case, so that a server that does not trust it says so.
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil }
	}
	return conf
}

// connectWithin bounds connecting and the handshake.
const connectWithin = 10 * time.Second

// Transport returns a transport for calls by HTTP.
func (c *Caller) Transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: connectWithin}).DialContext
	t.TLSHandshakeTimeout, t.MaxIdleConnsPerHost = connectWithin, 16
	t.DialTLSContext, t.TLSClientConfig = c.dial, c.config() // the second one for calls through a proxy
	return t
}

func (c *Caller) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	d := tls.Dialer{NetDialer: new(net.Dialer), Config: c.config()}
	return d.DialContext(ctx, network, address)
}
