package amqp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

// timing are the pauses and limits of a pool, which tests shorten.
type timing struct {
	dial     time.Duration // for a connection with its handshake
	answer   time.Duration // for an answer of the broker, such as that to a declaration
	confirm  time.Duration // for the confirmation of a message
	check    time.Duration // between checks for messages that were not confirmed
	first    time.Duration // pause after the first failure; it doubles
	longest  time.Duration // the longest pause
	lasting  time.Duration // pause after a failure that does not mend without a change
	stable   time.Duration // an epoch that lasted longer makes the next pause the first again
	idle     time.Duration // without demand until a consumer is cancelled
	ack      time.Duration // until what is settled is acknowledged
	lag      time.Duration // between measurements of the lag
	empty    time.Duration // until a log of which the broker counts no messages is held to have none
	locate   time.Duration // until a position in a log is held to be not there
	channels int           // of a connection
}

func usual() timing {
	return timing{
		dial: 10 * time.Second, answer: 15 * time.Second, confirm: 30 * time.Second, check: time.Second,
		first: 200 * time.Millisecond, longest: 15 * time.Second, lasting: time.Minute, stable: 10 * time.Second,
		idle: 2 * time.Second, ack: 10 * time.Millisecond, lag: 15 * time.Second, empty: 250 * time.Millisecond, locate: 5 * time.Second, channels: 1000,
	}
}

// pause returns how long to wait after a number of failures, with jitter.
func (t *timing) pause(failures int) time.Duration {
	d := t.longest
	if failures < 20 {
		d = min(d, t.first<<max(failures-1, 0))
	}
	return d/2 + rand.N(d/2+1)
}

// A Pool shares connections to message brokers among the connectors of a gateway.
type Pool struct {
	timing timing
	trust  *tls.Config // nil: what the machine trusts

	mu      sync.Mutex
	groups  map[groupKey]*group
	running sync.WaitGroup // goroutines of connections
}

// NewPool returns a pool. Connections are opened when connectors start.
func NewPool() *Pool { return &Pool{timing: usual(), groups: make(map[groupKey]*group)} }

// Close waits until the connections of connectors that are closed have ended, at most as
// long as ctx lasts.
func (p *Pool) Close(ctx context.Context) {
	done := make(chan struct{})
	go func() { p.running.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// A groupKey is what connectors must have in common to share connections.
type groupKey struct {
	addresses, vhost, client string
	user                     string
	password                 streams.Secret
	tls, unverified          bool // unverified: the certificate of the server is not checked
	publishes                bool
}

// A group are the connections of one key.
type group struct {
	pool      *Pool
	key       groupKey
	addresses []string

	mu       sync.Mutex
	links    []*link
	attempt  *attempt // to open another connection; nil: none
	failures int      // in a row
	earliest time.Time
	good     string // the address that worked last
}

// An attempt to open a connection, which several connectors wait for.
type attempt struct {
	done    chan struct{}
	cancel  context.CancelFunc
	err     error // after done
	link    *link // after done
	waiters int
}

func (p *Pool) group(s *streams.Servers, publishes bool) *group {
	key := groupKey{
		addresses: strings.Join(s.Addresses, ","), vhost: s.VHost, client: s.ClientID,
		user: s.User, password: s.Password, tls: s.TLS, unverified: s.SkipVerify, publishes: publishes,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.groups[key]
	if g == nil {
		g = &group{pool: p, key: key, addresses: s.Addresses}
		p.groups[key] = g
	}
	return g
}

// take returns a connection with room for another channel. It waits for one that is being
// opened, and opens one if there is none.
func (g *group) take(ctx context.Context, dial stream.Dialer) (*link, error) {
	for {
		g.mu.Lock()
		if l := g.roomy(); l != nil {
			l.users++
			g.mu.Unlock()
			return l, nil
		}
		a := g.attempt
		if a == nil {
			a = g.try(dial)
		}
		a.waiters++
		g.mu.Unlock()
		select {
		case <-a.done:
		case <-ctx.Done():
		}
		if l, err := g.granted(ctx, a); l != nil || err != nil {
			return l, err
		}
	}
}

// granted ends the wait for an attempt. It returns nothing if there is no room on its
// connection.
func (g *group) granted(ctx context.Context, a *attempt) (*link, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a.waiters--
	if err := ctx.Err(); err != nil {
		if a.waiters == 0 {
			a.cancel()
			if g.attempt == a {
				g.attempt = nil // nobody else joins it
			}
			if a.link != nil && a.link.users == 0 {
				g.drop(a.link)
			}
		}
		return nil, err
	}
	if a.err != nil {
		return nil, a.err
	}
	if a.link.has() {
		a.link.users++
		return a.link, nil
	}
	return nil, nil
}

// roomy is called with mu.
func (g *group) roomy() *link {
	for _, l := range g.links {
		if l.has() {
			return l
		}
	}
	return nil
}

// try is called with mu.
func (g *group) try(dial stream.Dialer) *attempt {
	ctx, cancel := context.WithCancel(context.Background())
	a := &attempt{done: make(chan struct{}), cancel: cancel}
	g.attempt = a
	wait := time.Until(g.earliest)
	g.pool.running.Go(func() {
		defer cancel()
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		l, err := g.dial(ctx, dial)
		g.mu.Lock()
		defer g.mu.Unlock()
		defer close(a.done)
		a.link, a.err = l, err
		if g.attempt == a {
			g.attempt = nil
		}
		switch {
		case err == nil && a.waiters > 0:
			g.failures, g.earliest = 0, time.Time{}
			g.links = append(g.links, l)
			g.pool.running.Go(l.watch)
		case err == nil:
			g.pool.running.Go(l.close)
		case ctx.Err() == nil:
			g.failures++
			g.earliest = time.Now().Add(g.pool.timing.pause(g.failures))
		}
	})
	return a
}

// release gives back a connection that take returned. The last one closes it.
func (g *group) release(l *link) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l.users--
	if l.users == 0 {
		g.drop(l)
	}
}

// drop takes a connection out of the group and closes it. It is called with mu.
func (g *group) drop(l *link) {
	for i, one := range g.links {
		if one == l {
			g.links = append(g.links[:i:i], g.links[i+1:]...)
			g.pool.running.Go(l.close)
			return
		}
	}
}

// dial opens a connection: to the address that worked last, or else to one of the others.
func (g *group) dial(ctx context.Context, dial stream.Dialer) (*link, error) {
	g.mu.Lock()
	good := g.good
	g.mu.Unlock()
	var all []error
	for i, n := range append([]int{-1}, rand.Perm(len(g.addresses))...) {
		address := good
		if i > 0 {
			address = g.addresses[n]
		}
		if address == "" || i > 0 && address == good {
			continue
		}
		l, err := g.dialOne(ctx, dial, address)
		if err == nil {
			g.mu.Lock()
			g.good = address
			g.mu.Unlock()
			return l, nil
		}
		all = append(all, fmt.Errorf("%s: %w", address, err))
	}
	return nil, errors.Join(all...)
}

func (g *group) dialOne(ctx context.Context, dial stream.Dialer, address string) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, g.pool.timing.dial)
	defer cancel()
	raw, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	if g.key.tls {
		raw, err = g.secure(ctx, raw, address)
		if err != nil {
			return nil, err
		}
	}
	w := &wire{Conn: raw}
	conn, err := amqp.Open(w, g.config())
	if err != nil {
		raw.Close()
		if ctx.Err() != nil {
			err = fmt.Errorf("no handshake within %s", g.pool.timing.dial)
		}
		return nil, err
	}
	return newLink(g, conn, w), nil
}

func (g *group) secure(ctx context.Context, raw net.Conn, address string) (net.Conn, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if g.pool.trust != nil {
		config = g.pool.trust.Clone()
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		raw.Close()
		return nil, err
	}
	config.ServerName, config.InsecureSkipVerify = host, g.key.unverified
	client := tls.Client(raw, config)
	if err := client.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	return client, nil
}

func (g *group) config() amqp.Config {
	user, password := g.key.user, string(g.key.password)
	if user == "" {
		user, password = "guest", "guest" // as in an address of AMQP without a user
	}
	properties := amqp.NewConnectionProperties()
	properties["product"] = "Sluice"
	if g.key.client != "" {
		properties.SetClientConnectionName(g.key.client)
	}
	vhost := g.key.vhost
	if vhost == "" {
		vhost = "/"
	}
	return amqp.Config{
		SASL:  []amqp.Authentication{&amqp.PlainAuth{Username: user, Password: password}},
		Vhost: vhost, Properties: properties, Locale: "en_US", Heartbeat: 10 * time.Second, FrameSize: 128 << 10,
	}
}
