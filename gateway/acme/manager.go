// Package acme obtains the gateway's own certificates from an authority that speaks ACME
// (RFC 8555), answers its challenges, and renews the certificates. All gateways of an admin
// share one account, and the certificates.
package acme

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"

	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/sleep"

	shown "github.com/sluicegate/sluice/gateway/certs"
)

// Options are the settings of a Manager. All but Email, Transport and Copy are required.
type Options struct {
	Domains    []string // in lower case; no other certificates are ordered
	Email      string   // for messages of the authority; "": none
	Directory  string   // URL of the authority
	Challenges []string // "tls-alpn-01" and "http-01", in the order in which they are tried
	Transport  http.RoundTripper
	Vault      Vault
	Copy       *Folder      // of the certificates, for a start without the vault; nil: there is none
	Issued     *shown.Store // receives the certificates, by domain
	Log        *slog.Logger
}

// Manager keeps the certificates of its domains valid. It is safe for concurrent use.
type Manager struct {
	opts   Options
	prefix string // of entries: those of another authority are not used
	orders chan struct{}
	lookUp chan struct{}

	accounts sync.Mutex
	client   *acme.Client // nil before the first order

	mu      sync.Mutex
	domains map[string]*domain
	answers map[string][]byte // to challenges that this gateway has begun

	issued, failed atomic.Uint64
}

// domain is the state of one certificate.
type domain struct {
	current *certs.Certificate // nil: none
	pending bool               // an order is due, or was made a moment ago
	failure string             // why the last attempt failed; "" if it did not
	away    bool               // the vault did not answer, which is logged once
	junk    bool               // the vault held what cannot be used, which is logged once
	waits   int                // looks since a lease was not granted
}

// Bounds of the work that is done at the same time.
const (
	maxOrders  = 4
	maxLookUps = 8 // of challenges that another gateway has begun
)

// New returns a Manager that serves the certificates of its copy.
func New(o Options) *Manager {
	sum := sha256.Sum256([]byte(o.Directory))
	m := &Manager{
		opts: o, prefix: hex.EncodeToString(sum[:8]) + ".", orders: make(chan struct{}, maxOrders), lookUp: make(chan struct{}, maxLookUps),
		domains: make(map[string]*domain), answers: make(map[string][]byte),
	}
	for _, name := range o.Domains {
		m.domains[name] = &domain{pending: true}
		if o.Copy == nil {
			continue
		}
		c, err := m.read(context.Background(), o.Copy, name)
		switch {
		case err == nil:
			m.show(name, c)
		case !errors.Is(err, ErrNotFound):
			o.Log.Error("the copy of an ACME certificate cannot be used", "domain", name, "err", err)
		}
	}
	return m
}

// Run keeps the certificates valid until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, name := range m.opts.Domains {
		all.Go(func() {
			for {
				pause := m.look(ctx, name)
				if sleep.For(ctx, pause/2+rand.N(pause/2)) != nil {
					return
				}
			}
		})
	}
	all.Wait()
}

// How long after a look at a domain the next one follows, at most.
const (
	lookEvery  = 5 * time.Minute  // at a valid certificate, which another gateway may have renewed
	awayEvery  = 10 * time.Second // while the vault does not answer
	awaitFirst = 2 * time.Second  // while another gateway orders it, or a failure is waited out; then doubled
	awaitMost  = time.Minute
)

// look takes a domain's certificate from the vault, and orders one if it is due. It returns
// when to look again.
func (m *Manager) look(ctx context.Context, name string) time.Duration {
	due, err := m.refresh(ctx, name)
	switch {
	case ctx.Err() != nil:
		return lookEvery
	case err != nil:
		return awayEvery
	case !due:
		return lookEvery
	}
	select {
	case m.orders <- struct{}{}:
		defer func() { <-m.orders }()
	case <-ctx.Done():
		return lookEvery
	}
	return m.attempt(ctx, name)
}

// refresh takes a certificate from the vault, and reports whether a new one is to be ordered.
func (m *Manager) refresh(ctx context.Context, name string) (due bool, err error) {
	c, err := m.read(ctx, m.opts.Vault, name)
	_, malformed := errors.AsType[*entryError](err)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case malformed:
		if m.firstJunk(name) {
			m.opts.Log.Error("a stored ACME certificate cannot be used; another one is ordered", "domain", name, "err", err)
		}
		c = nil
	case errors.Is(err, ErrNotFound):
		c = nil
	case err != nil:
		m.vaultAway(name, err)
		return false, err
	}
	m.show(name, c)
	if c != nil {
		m.keep(ctx, name, c)
	}
	due = c == nil || dueAt(c).Before(time.Now())
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.domains[name]
	d.pending, d.away = due, false
	if !due {
		d.failure = ""
	}
	return due, nil
}

// firstJunk reports whether no other look at the domain has found an entry that cannot be used.
func (m *Manager) firstJunk(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.domains[name]
	first := !d.junk
	d.junk = true
	return first
}

func (m *Manager) vaultAway(name string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := m.domains[name]; !d.away {
		d.away = true
		m.opts.Log.Warn("an ACME certificate cannot be read from the shared store; one that is in use stays", "domain", name, "err", err)
	}
}

// dueAt returns when a certificate is renewed: in the last third of its time.
func dueAt(c *certs.Certificate) time.Time {
	return c.Leaf.NotAfter.Add(-c.Leaf.NotAfter.Sub(c.Leaf.NotBefore) / 3)
}

// An entryError is a problem of the text of an entry.
type entryError struct{ problem string }

// Error returns the problem.
func (e *entryError) Error() string { return e.problem }

func (m *Manager) entry(kind, name string) string { return m.prefix + kind + "." + name }

// read reads the certificate of a domain from a vault. The error of one that cannot be used
// is an *entryError.
func (m *Manager) read(ctx context.Context, from Vault, name string) (*certs.Certificate, error) {
	text, err := from.Get(ctx, m.entry("certificate", name))
	if err != nil {
		return nil, err
	}
	return parse(text, name)
}

func parse(text []byte, name string) (*certs.Certificate, error) {
	c, err := certs.Parse(text)
	switch {
	case err != nil:
		return nil, &entryError{"the certificate " + err.Error()}
	case !c.MayServe():
		return nil, &entryError{"the certificate is not one of a server with its private key"}
	case c.Leaf.VerifyHostname(name) != nil:
		return nil, &entryError{fmt.Sprintf("the certificate is for %.200q", c.Names())}
	}
	return c, nil
}

// show has a certificate served. With nil the current one stays.
func (m *Manager) show(name string, c *certs.Certificate) {
	if c == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.domains[name]
	if d.current != nil && d.current.Sum == c.Sum {
		return
	}
	d.current = c
	m.opts.Issued.Put(name, c)
}

// keep stores a certificate in the copy, unless it is there.
func (m *Manager) keep(ctx context.Context, name string, c *certs.Certificate) {
	if m.opts.Copy == nil {
		return
	}
	if kept, err := m.read(ctx, m.opts.Copy, name); err == nil && kept.Sum == c.Sum {
		return
	}
	text, err := textOf(c)
	if err == nil {
		err = m.opts.Copy.Put(ctx, m.entry("certificate", name), text, 0)
	}
	if err != nil {
		m.opts.Log.Error("keeping a copy of an ACME certificate", "domain", name, "err", err)
	}
}

// textOf returns a certificate as entries have it.
func textOf(c *certs.Certificate) ([]byte, error) {
	key, err := c.KeyPEM()
	return append(c.PublicPEM(), key...), err
}

// Status returns how many domains have no certificate, and of how many others the renewal
// failed.
func (m *Manager) Status() (without, failing int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.domains {
		switch {
		case d.current == nil || time.Now().After(d.current.Leaf.NotAfter):
			without++
		case d.failure != "":
			failing++
		}
	}
	return without, failing
}
