package upstream

import (
	"context"
	"crypto/tls"
	"math"
	"net"
	"sync"
	"time"
)

// poolKey identifies a pool. Connections with different keys are not interchangeable.
type poolKey struct {
	address  string
	identity [32]byte // of what TLS shows and trusts; zero without TLS
	tls      bool
	plain    bool
	max      int
	wait     time.Duration
	waiting  int // how many may wait at the same time; 0: any number
	idle     time.Duration
	once     bool // each connection serves one request
}

// pool holds the connections to one upstream. The last one used goes out first,
// so that few are kept warm; callers that have to wait are served in their
// order.
type pool struct {
	key     poolKey
	version string      // what follows the target of a request to the host that it was made for
	tls     *tls.Config // nil: plain TCP
	dialer  net.Dialer
	epoch   time.Time

	mu      sync.Mutex
	idle    []*conn // by the time of their return, earliest first
	all     *conn   // every open connection, as a list
	open    int     // connections there are or are being made; at most key.max
	queue   waiters
	users   int  // APIs in service; of Pools, under its mu
	retired bool // no longer in any configuration: nothing is kept
	stopped bool
}

const never = time.Duration(math.MaxInt64)

// maxAge is how long a connection is used, so that traffic follows a change of
// the name's addresses.
const maxAge = 10 * time.Minute

func newPool(key poolKey, conf *tls.Config, epoch time.Time) *pool {
	return &pool{key: key, tls: conf, epoch: epoch, dialer: net.Dialer{ControlContext: reachable.Control}}
}

// versionFor returns what follows the target of a request to a host: the pool's, as
// all APIs nearly always spell the host that they share in the same way.
func (p *pool) versionFor(host string) string {
	if own := withHost(host); own != p.version {
		return own
	}
	return p.version
}

// withHost returns the end of a request's first line, and the Host line.
func withHost(host string) string { return " HTTP/1.1\r\nHost: " + host + "\r\n" }

// now is a clock that costs little to read.
func (p *pool) now() time.Duration { return time.Since(p.epoch) }

// takeIdle returns an idle connection that is the caller's until it is put or dropped,
// or nil.
func (p *pool) takeIdle() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.popIdle()
}

// take returns a connection that is the caller's until it is put or dropped. It waits no
// longer than until ctx ends.
func (p *pool) take(ctx context.Context, dialTimeout time.Duration) (*conn, error) {
	p.mu.Lock()
	if c := p.popIdle(); c != nil {
		p.mu.Unlock()
		return c, nil
	}
	switch {
	case p.stopped:
		p.mu.Unlock()
		return nil, errStopped
	case p.open < p.key.max:
		p.open++
		p.mu.Unlock()
		return p.dial(ctx, dialTimeout)
	case p.key.wait <= 0 || p.key.waiting > 0 && p.queue.n >= p.key.waiting:
		p.mu.Unlock()
		return nil, errBusy
	}
	w := p.queue.join(p.key.wait)
	p.mu.Unlock()
	return p.await(ctx, w, dialTimeout)
}

// await waits for its turn, and dials if it gets a place rather than a connection.
func (p *pool) await(ctx context.Context, w *waiter, dialTimeout time.Duration) (*conn, error) {
	var g grant
	var why error
	select {
	case g = <-w.turn:
	case <-w.timer.C:
		why = errBusy
	case <-ctx.Done():
		why = ctx.Err()
	}
	if why != nil {
		p.mu.Lock()
		if p.queue.leave(w) {
			p.mu.Unlock()
			w.free()
			return nil, why
		}
		p.mu.Unlock()
		g = <-w.turn // it had come meanwhile
	}
	w.free()
	switch {
	case g.stopped:
		return nil, errStopped
	case g.conn != nil:
		return g.conn, nil
	}
	return p.dial(ctx, dialTimeout)
}

// popIdle returns the connection used last, or nil. It needs mu.
func (p *pool) popIdle() *conn {
	n := len(p.idle) - 1
	if n < 0 {
		return nil
	}
	c := p.idle[n]
	p.idle[n] = nil
	p.idle = p.idle[:n]
	return c
}

// put takes a connection back that is ready for its next request; now is the
// time at which the last one was over.
func (p *pool) put(c *conn, now time.Duration) {
	c.reused = true
	c.since = now
	p.mu.Lock()
	if p.key.once || p.retired || p.stopped || c.since-c.born > maxAge {
		p.mu.Unlock()
		c.drop()
		return
	}
	if w := p.queue.pop(); w != nil {
		w.turn <- grant{conn: c}
	} else {
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
}

// replace returns another connection in place of a dead one: a pooled one unless
// fresh is set, otherwise a new one.
func (p *pool) replace(ctx context.Context, dead *conn, fresh bool, dialTimeout time.Duration) (*conn, error) {
	dead.close()
	p.mu.Lock()
	p.unlink(dead)
	if !fresh {
		if c := p.popIdle(); c != nil {
			p.vacate()
			p.mu.Unlock()
			return c, nil
		}
	}
	p.mu.Unlock()
	return p.dial(ctx, dialTimeout)
}

// vacate gives the place of a connection to the first waiter, if any. It needs mu.
func (p *pool) vacate() {
	if w := p.queue.pop(); w != nil {
		w.turn <- grant{}
		return
	}
	p.open--
}

// link enters a connection in the list of all. It needs mu.
func (p *pool) link(c *conn) {
	c.next = p.all
	if p.all != nil {
		p.all.prev = c
	}
	p.all = c
}

// unlink is link's opposite. It needs mu.
func (p *pool) unlink(c *conn) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		p.all = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	c.next, c.prev = nil, nil
}

// remove closes a connection and frees its place.
func (p *pool) remove(c *conn) {
	c.close()
	p.mu.Lock()
	p.unlink(c)
	p.vacate()
	p.mu.Unlock()
}

// sweep closes connections that have idled since before the time given.
func (p *pool) sweep(before time.Duration) {
	p.mu.Lock()
	n := 0
	for n < len(p.idle) && p.idle[n].since < before {
		n++
	}
	if n == 0 {
		p.mu.Unlock()
		return
	}
	old := append([]*conn(nil), p.idle[:n]...)
	kept := copy(p.idle, p.idle[n:])
	clear(p.idle[kept:])
	p.idle = p.idle[:kept]
	p.mu.Unlock()
	for _, c := range old {
		c.drop()
	}
}

// empty reports whether the pool has no connection at all.
func (p *pool) empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open == 0
}

// retire makes the pool close every connection when its request ends.
func (p *pool) retire() {
	p.mu.Lock()
	p.retired = true
	p.mu.Unlock()
	p.sweep(p.now() + time.Second)
}

// stop closes every connection and refuses all waiters.
func (p *pool) stop() {
	p.mu.Lock()
	p.stopped = true
	for w := p.queue.pop(); w != nil; w = p.queue.pop() {
		w.turn <- grant{stopped: true}
	}
	for c := p.all; c != nil; c = c.next {
		_ = c.tcp.Close() // its user gets an error and drops it; TLS would send close_notify first, and might wait
	}
	p.mu.Unlock()
	p.sweep(p.now() + time.Second)
}
