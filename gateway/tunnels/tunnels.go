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
	PerKey   int           // tunnels that one key may have open; 0: any number
	PerAPI   int           // tunnels that one API may have open; 0: any number
	Log      *slog.Logger
}

// Registry knows the tunnels that are open. It is safe for concurrent use.
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
	about  About
	client net.Conn
	permit Permit
	gone   atomic.Bool // it was cut
}

// About says whose a tunnel is.
type About struct {
	API      string // id
	Key      string // what logs call it; "" for none
	Identity string // what its tunnels are counted under; "" for none
	Again    bool   // the API counts the tunnel already: it comes back to one that it went on from
}

// A Bound is what keeps a tunnel from being opened.
type Bound uint8

// The bounds.
const (
	Free  Bound = iota // Free says that there is room.
	OfKey              // OfKey says that the key has as many as it may.
	OfAPI              // OfAPI says that the API has.
)

// New returns a registry that knows of no tunnels.
func New(o Options) *Registry {
	return &Registry{
		opts: o, wake: make(chan struct{}, 1), open: make(map[*tunnel]struct{}),
		ofAPI: make(map[string]int), ofKey: make(map[string]int),
	}
}

// A Takeover has a client's connection, until it returns. The client is nil when
// nobody is there any more.
type Takeover func(client net.Conn, received []byte)

// Hold returns over with the registry knowing of the connection meanwhile, unless
// there is no room for one more. The tunnel counts from then on until what was
// returned is called and returns, however that comes to pass.
func (r *Registry) Hold(over Takeover, about About, permit Permit) (Takeover, Bound) {
	if full := r.enter(about); full != Free {
		return nil, full
	}
	return func(client net.Conn, received []byte) {
		defer r.leave(about)
		if client == nil {
			over(nil, received)
			return
		}
		t := &tunnel{about: about, client: client, permit: permit}
		r.add(t)
		defer r.remove(t)
		over(client, received)
	}, Free
}

// Full tells whether there is no room for one more tunnel now.
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

// enter counts one more tunnel where there is room.
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
