// Package tunnels registers connections that have left HTTP. Their access rights are
// checked again when they may have changed, and tunnels that are not allowed any more
// are closed.
package tunnels

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Recheck checks the access rights of a tunnel again. Its methods are not called
// concurrently.
type Recheck interface {
	// Stale reports, at little cost, whether the result of Check may have changed. It
	// is true before the first Check.
	Stale() bool

	// Check returns why the tunnel is not allowed any more. It returns nil while the
	// tunnel is allowed, and while that cannot be determined.
	Check() error
}

// Options says how tunnels are bounded and checked.
type Options struct {
	Interval time.Duration // between two checks of all tunnels; 0: they are only counted
	PerKey   int           // tunnels that one key may have open; 0: any number
	PerAPI   int           // tunnels that one API may have open; 0: any number
	Log      *slog.Logger
}

// Registry holds the open tunnels. It is safe for concurrent use.
type Registry struct {
	opts Options
	wake chan struct{}
	cut  atomic.Uint64

	mu    sync.Mutex
	open  map[*tunnel]struct{}
	ofAPI map[string]int // tunnels that are open or about to be, by id
	ofKey map[string]int // likewise by identity
}

// tunnel is one that is open.
type tunnel struct {
	about   About
	client  net.Conn
	recheck Recheck
	gone    atomic.Bool // it was cut
}

// About is the API and the key of a tunnel.
type About struct {
	API      string // id
	Key      string // what logs call it; "" for none
	Identity string // what its tunnels are counted under; "" for none
	Again    bool   // the API counts the tunnel already, as an earlier part of the chain of internal calls

	// Owner is set if the key is not known yet, but by the time that Own is called; Key and
	// Identity are empty then.
	Owner *Owner

	// Cut ends a tunnel that is not allowed any more, as its protocol has it. It does not
	// wait. nil: the client's connection is closed.
	Cut func(why error)
}

// An Owner is the key of a tunnel that was opened before the key was known. It is guarded
// by the registry.
type Owner struct {
	key, identity string
}

// Own counts an open tunnel under a key from now on, unless the key has reached its limit.
// It is called once.
func (r *Registry) Own(o *Owner, key, identity string) Bound {
	r.mu.Lock()
	defer r.mu.Unlock()
	if full := r.full(About{Identity: identity, Again: true}); full != Free {
		return full
	}
	o.key, o.identity = key, identity
	if identity != "" {
		r.ofKey[identity]++
	}
	return Free
}

// keyOf returns what logs call the key of a tunnel.
func (r *Registry) keyOf(a *About) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.Owner != nil {
		return a.Owner.key
	}
	return a.Key
}

// A Bound is a limit that keeps a tunnel from being opened.
type Bound uint8

// The bounds.
const (
	Free  Bound = iota // Free says that a slot is free.
	OfKey              // OfKey says that the key has reached its limit.
	OfAPI              // OfAPI says that the API has reached its limit.
)

// New returns a registry without tunnels.
func New(o Options) *Registry {
	return &Registry{
		opts: o, wake: make(chan struct{}, 1), open: make(map[*tunnel]struct{}),
		ofAPI: make(map[string]int), ofKey: make(map[string]int),
	}
}

// A Takeover uses a client's connection until it returns. The client is nil when it
// has gone.
type Takeover func(client net.Conn, received []byte)

// Hold returns a Takeover that registers the connection while over uses it, or the
// bound that is reached. The tunnel counts from then on until the returned Takeover
// returns, so it must be called.
func (r *Registry) Hold(over Takeover, about About, recheck Recheck) (Takeover, Bound) {
	if full := r.enter(about); full != Free {
		return nil, full
	}
	return func(client net.Conn, received []byte) {
		defer r.leave(about)
		if client == nil {
			over(nil, received)
			return
		}
		t := &tunnel{about: about, client: client, recheck: recheck}
		r.add(t)
		defer r.remove(t)
		over(client, received)
	}, Free
}

// HoldOpen registers what is kept open within HTTP, an event stream, and returns what ends
// that, or the bound that is reached. about.Cut is required.
func (r *Registry) HoldOpen(about About, recheck Recheck) (release func(), full Bound) {
	if full := r.enter(about); full != Free {
		return nil, full
	}
	t := &tunnel{about: about, recheck: recheck}
	r.add(t)
	return func() { r.remove(t); r.leave(about) }, Free
}

// Full returns the bound that keeps one more tunnel from being opened now.
func (r *Registry) Full(about About) Bound {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full(about)
}

// full needs mu.
func (r *Registry) full(about About) Bound {
	switch o := &r.opts; {
	case o.PerKey > 0 && about.Identity != "" && r.ofKey[about.Identity] >= o.PerKey:
		return OfKey
	case o.PerAPI > 0 && !about.Again && r.ofAPI[about.API] >= o.PerAPI:
		return OfAPI
	}
	return Free
}

// enter counts one more tunnel if a slot is free.
func (r *Registry) enter(about About) Bound {
	r.mu.Lock()
	defer r.mu.Unlock()
	if full := r.full(about); full != Free {
		return full
	}
	if !about.Again {
		r.ofAPI[about.API]++
	}
	if about.Identity != "" {
		r.ofKey[about.Identity]++
	}
	return Free
}

// leave counts one less.
func (r *Registry) leave(about About) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !about.Again {
		drop(r.ofAPI, about.API)
	}
	if about.Owner != nil {
		about.Identity = about.Owner.identity
	}
	if about.Identity != "" {
		drop(r.ofKey, about.Identity)
	}
}

// drop counts one less of a name.
func drop(counts map[string]int, name string) {
	if counts[name]--; counts[name] == 0 {
		delete(counts, name)
	}
}

// add registers a tunnel. Its access rights may have changed while it was opened.
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

// Wake makes Run check all tunnels soon. It does not wait.
func (r *Registry) Wake() {
	select {
	case r.wake <- struct{}{}:
	default: // it will
	}
}

// Stats is the state of a registry.
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

// restPart is the fraction of the interval that passes between two checks at least,
// however often Wake is called.
const restPart = 10

// Run checks tunnels until ctx ends. It must run once.
func (r *Registry) Run(ctx context.Context) {
	if r.opts.Interval <= 0 {
		return
	}
	tick := time.NewTicker(r.opts.Interval)
	defer tick.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select { // frequent calls of Wake share one check
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
		r.checkAll()
		rest.Reset(r.opts.Interval / restPart)
	}
}

// checksAtOnce is how many tunnels are checked at the same time: a check may wait
// for the store of keys.
const checksAtOnce = 8

// checkAll checks every tunnel whose access rights may have changed.
func (r *Registry) checkAll() {
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
		if !t.gone.Load() && t.recheck.Stale() {
			all = append(all, t)
		}
	}
	return all
}

// check cuts a tunnel that is not allowed any more.
func (r *Registry) check(t *tunnel) {
	why := t.recheck.Check()
	if why == nil {
		return
	}
	t.gone.Store(true)
	r.cut.Add(1)
	r.opts.Log.Info("a tunnel was cut: it is not allowed any more", "api", t.about.API, "key", r.keyOf(&t.about), "why", why)
	if t.about.Cut != nil {
		t.about.Cut(why)
		return
	}
	client := t.client
	if secure, ok := client.(interface{ NetConn() net.Conn }); ok {
		client = secure.NetConn() // close_notify of TLS could block on a client that reads nothing
	}
	_ = client.Close() // the goroutines that copy bytes end then, and close the upstream's connection
}
