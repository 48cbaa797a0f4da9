// Package tunnels watches over connections that have left HTTP: what allowed
// them is looked at again when it may have changed, and those that would not be
// allowed any more are cut.
package tunnels

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Permit is what allowed a tunnel. Nobody calls it twice at the same time.
type Permit interface {
	// Stale tells, at little cost, whether Check may say something else than it
	// did. It does so before the first Check.
	Stale() bool

	// Check returns why the tunnel is not allowed any more; nil while it is, and
	// while that cannot be known.
	Check() error
}

// Options says how tunnels are watched.
type Options struct {
	Interval time.Duration // between two looks at all tunnels; 0: they are only counted
	Log      *slog.Logger
}

// Registry knows the tunnels that are open. It is safe for concurrent use.
type Registry struct {
	opts Options
	wake chan struct{}
	cut  atomic.Uint64

	mu   sync.Mutex
	open map[*tunnel]struct{}
}

// tunnel is one that is open.
type tunnel struct {
	about  About
	client net.Conn
	permit Permit
	gone   atomic.Bool // it was cut
}

// About says whose a tunnel is.
type About struct {
	API string // id
	Key string // what logs call it; "" for none
}

// New returns a registry that knows of no tunnels.
func New(o Options) *Registry {
	return &Registry{opts: o, wake: make(chan struct{}, 1), open: make(map[*tunnel]struct{})}
}

// A Takeover has a client's connection, until it returns. The client is nil when
// nobody is there any more.
type Takeover func(client net.Conn, received []byte)

// Hold returns over with the registry knowing of the connection meanwhile.
func (r *Registry) Hold(over Takeover, about About, permit Permit) Takeover {
	return func(client net.Conn, received []byte) {
		if client == nil {
			over(nil, received)
			return
		}
		t := &tunnel{about: about, client: client, permit: permit}
		r.add(t)
		defer r.remove(t)
		over(client, received)
	}
}

// add takes note of a tunnel. What allowed it may have changed while it began.
func (r *Registry) add(t *tunnel) {
	r.mu.Lock()
	r.open[t] = struct{}{}
	r.mu.Unlock()
	r.Wake()
}

func (r *Registry) remove(t *tunnel) {
	r.mu.Lock()
	delete(r.open, t)
	r.mu.Unlock()
}

// Wake makes Run look at all tunnels soon. It does not wait.
func (r *Registry) Wake() {
	select {
	case r.wake <- struct{}{}:
	default: // it will
	}
}

// Stats is what a registry knows.
type Stats struct {
	Open map[string]int // by API
	Cut  uint64         // tunnels that were not allowed any more
}

// Stats returns current numbers.
func (r *Registry) Stats() Stats {
	s := Stats{Open: make(map[string]int), Cut: r.cut.Load()}
	r.mu.Lock()
	defer r.mu.Unlock()
	for t := range r.open {
		s.Open[t.about.API]++
	}
	return s
}

// restPart is the part of the interval that passes between two looks at least,
// however often somebody wakes.
const restPart = 10

// Run looks at tunnels until ctx ends. It must run once.
func (r *Registry) Run(ctx context.Context) {
	if r.opts.Interval <= 0 {
		return
	}
	tick := time.NewTicker(r.opts.Interval)
	defer tick.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select { // those who wake often have it done at once
		case <-ctx.Done():
			return
		case <-rest.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-r.wake:
		}
		r.look()
		rest.Reset(r.opts.Interval / restPart)
	}
}

// checksAtOnce is how many tunnels are checked at the same time: a check may wait
// for the store of keys.
const checksAtOnce = 8

// look checks every tunnel that may not be allowed any more.
func (r *Registry) look() {
	stale := r.stale()
	next := make(chan *tunnel)
	var checking sync.WaitGroup
	for range min(checksAtOnce, len(stale)) {
		checking.Go(func() {
			for t := range next {
				r.check(t)
			}
		})
	}
	for _, t := range stale {
		next <- t
	}
	close(next)
	checking.Wait()
}

// stale returns the tunnels that are to be checked.
func (r *Registry) stale() (all []*tunnel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for t := range r.open {
		if !t.gone.Load() && t.permit.Stale() {
			all = append(all, t)
		}
	}
	return all
}

// check cuts a tunnel that is not allowed any more.
func (r *Registry) check(t *tunnel) {
	why := t.permit.Check()
	if why == nil {
		return
	}
	t.gone.Store(true)
	r.cut.Add(1)
	r.opts.Log.Info("a tunnel was cut: it is not allowed any more", "api", t.about.API, "key", t.about.Key, "why", why)
	client := t.client
	if secure, ok := client.(interface{ NetConn() net.Conn }); ok {
		client = secure.NetConn() // the goodbye of TLS could wait for a client that reads nothing
	}
	_ = client.Close() // whoever passes bytes on ends then, and lets go of the upstream
}
