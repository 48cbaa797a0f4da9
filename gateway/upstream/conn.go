package upstream

import (
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/internal/rawio"
)

// conn is one connection to an upstream. It belongs to one exchange at a time.
// Only watch is for others too.
//
// On plain TCP it makes raw system calls inside the poller's wait: the sockets
// never block, so the scheduler need not be told, and no read is tried that can
// only find that the answer is not there yet. Connections with TLS take the
// ordinary route with the same meaning.
type conn struct {
	pool  *pool
	sock  net.Conn
	tcp   net.Conn        // sock itself, or what lies below TLS
	raw   syscall.RawConn // of sock; nil: the ordinary route
	below syscall.RawConn // of tcp; nil: it cannot be looked at

	// What the steps work on. They are bound once, so that no call allocates.
	sendStep, readStep, quietStep func(fd uintptr) bool

	phase phase
	await bool   // sendStep waits for the first bytes of the answer
	out   []byte // what sendStep has left to send
	in    []byte // what readStep fills
	n     int
	err   error
	quiet bool

	buf   []byte  // received: buf[r:w] is not yet used; nil between two requests
	spare *[]byte // what buf goes back to the pool as; nil when it outgrew that
	r, w  int

	armed    time.Duration // deadline set on sock, by the pool's clock
	reused   bool          // it has served a request
	answered bool          // a byte has come since the request began
	blind    bool          // the request goes out without a look at what came before
	doubt    bool          // more than its answer may come for the last request: the next one is not sent blind
	full     bool          // more may have come of the answer than was read into buf at first
	watch    watch         // how long a blind request has waited for its answer
	born     time.Duration
	since    time.Duration // idle from then on

	next, prev *conn // list of the pool's connections
}

// bufferSize is what a connection in use reads into, in bytes. Idle ones hold
// no buffer.
const bufferSize = 16 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}

func newConn(p *pool, sock, tcp net.Conn) *conn {
	c := &conn{pool: p, sock: sock, tcp: tcp, born: p.now()}
	c.sendStep, c.readStep, c.quietStep = c.stepSend, c.stepRead, c.stepQuiet
	c.below = rawio.Conn(tcp)
	if rawio.Supported && p.tls == nil && !p.key.plain {
		c.raw = c.below
	}
	return c
}

// begin makes the connection ready for a request that starts at the time given.
func (c *conn) begin(now time.Duration) {
	c.blind = c.raw != nil && c.reused && !c.doubt && now-c.since <= blindWithin && now >= c.pool.waryUntil()
	c.doubt, c.full = false, false
	if c.buf == nil {
		c.spare = buffers.Get().(*[]byte)
		c.buf = *c.spare
	}
	c.r, c.w, c.answered = 0, 0, false
}

// letGo gives the buffer back.
func (c *conn) letGo() {
	if c.spare != nil {
		buffers.Put(c.spare)
	}
	c.spare, c.buf, c.r, c.w = nil, nil, 0, 0
}

// end closes the connection without telling its pool.
func (c *conn) end() {
	_ = c.sock.Close() // it is given up, whatever that says
	c.letGo()
}

// drop closes the connection.
func (c *conn) drop() { c.pool.remove(c) }

// finish ends an exchange at the time given. The connection is kept only if the
// caller says so and nothing has come that the answer does not explain.
func (c *conn) finish(keep bool, now time.Duration) {
	if !keep || c.r != c.w {
		c.drop()
		return
	}
	c.letGo()
	c.pool.put(c, now)
}

// arm makes reads and writes fail between until and until+slack. What was armed
// before is left if it will do, which saves arming for every request.
func (c *conn) arm(until, slack time.Duration) error {
	if slack > 0 && c.armed >= until && c.armed <= until+slack {
		return nil
	}
	c.armed = until + slack
	return c.sock.SetDeadline(c.pool.epoch.Add(c.armed))
}

// phase is how far a request has got.
type phase uint8

const (
	probing phase = iota // nothing is sent before it is known that nothing is there to read
	sending
	receiving
)

// send writes a request. It returns errStale, with nothing sent, when the
// connection has ended or holds bytes. With await it returns when the first
// bytes of the answer are in the buffer.
func (c *conn) send(req []byte, start time.Duration, await bool) error {
	if c.raw == nil {
		return c.sendPlain(req, await)
	}
	c.phase, c.await, c.out, c.n, c.err = probing, await, req, 0, nil
	if c.blind = c.blind && await; c.blind {
		c.phase = sending
		c.watch.begin(c.pool, start)
	}
	err := c.raw.Read(c.sendStep)
	if c.blind && c.watch.end(c.pool) {
		if isTimeout(err) {
			return c.lost()
		}
		// It woke at the last moment, after the deadline was moved into the past.
		if err := c.sock.SetReadDeadline(c.pool.epoch.Add(c.armed)); err != nil {
			return err
		}
	}
	rest := c.out
	c.out = nil
	switch {
	case err != nil:
		return err
	case c.err == rawio.ErrAgain: // the socket takes no more for now
		return c.sendRest(rest, await)
	case c.err != nil && c.phase == sending && len(rest) == len(req) && isDisconnect(c.err):
		return errStale
	case c.n > 0:
		c.w += c.n
		c.answered = true
	}
	return c.err
}

// sendRest sends what the socket did not take at once. The first read behind it
// does not wait for an edge, so that it has to be known that nothing is there.
func (c *conn) sendRest(rest []byte, await bool) error {
	if _, err := c.sock.Write(rest); err != nil || !await {
		return err
	}
	if c.blind && !c.isQuiet() {
		return errSurplus
	}
	c.blind = false
	return c.fill()
}

// stepSend runs inside RawConn.Read, which forgets what it knows of readiness
// before its first call. It may therefore ask to wait after sending, without a
// read: whatever comes from then on is remembered. To wait without having sent
// or having found nothing to read would miss what came before.
func (c *conn) stepSend(fd uintptr) bool {
	if c.phase == probing {
		if _, err := rawio.Read(fd, c.buf[:1]); err != rawio.ErrAgain {
			c.err = errStale
			return true
		}
		c.phase = sending
	}
	if c.phase == sending {
		for len(c.out) > 0 {
			n, err := rawio.Write(fd, c.out)
			if err != nil {
				c.err = err
				return true
			}
			c.out = c.out[n:]
		}
		c.phase = receiving
		return !c.await
	}
	c.n, c.err = rawio.Read(fd, c.buf[c.w:])
	c.full = c.n == len(c.buf)-c.w
	return c.err != rawio.ErrAgain
}

// fill reads once behind what is buffered; there must be room.
func (c *conn) fill() error {
	n, err := c.read(c.buf[c.w:])
	if n == 0 {
		return err
	}
	c.w += n
	c.answered = true
	return nil
}

// read waits for bytes and reads once into p, which must not be empty. It
// returns bytes or an error.
func (c *conn) read(p []byte) (int, error) {
	if c.raw == nil {
		for {
			if n, err := c.sock.Read(p); n > 0 {
				return n, nil
			} else if err != nil {
				return 0, err
			}
		}
	}
	c.in = p
	err := c.raw.Read(c.readStep)
	c.in = nil
	if err != nil {
		return 0, err
	}
	return c.n, c.err
}

func (c *conn) stepRead(fd uintptr) bool {
	c.n, c.err = rawio.Read(fd, c.in)
	return c.err != rawio.ErrAgain
}

// sendPlain is send by the ordinary route.
func (c *conn) sendPlain(req []byte, await bool) error {
	if c.reused && !c.isQuiet() {
		return errStale
	}
	n, err := c.sock.Write(req)
	switch {
	case err != nil && n == 0 && isDisconnect(err):
		return errStale
	case err == nil && await:
		return c.fill()
	}
	return err
}

// isQuiet tells whether nothing has come on a connection that idled.
func (c *conn) isQuiet() bool {
	if c.below == nil || c.tcp != c.sock && c.holdsSecret() {
		return false
	}
	c.quiet = false
	return c.below.Read(c.quietStep) == nil && c.quiet
}

// holdsSecret tells whether TLS has taken bytes off the connection that nobody
// has read. A read whose time is up looks at those and not further.
func (c *conn) holdsSecret() bool {
	if c.sock.SetReadDeadline(time.Unix(1, 0)) != nil {
		return true
	}
	n, err := c.sock.Read(c.buf[:1])
	return n > 0 || !isTimeout(err) || c.sock.SetReadDeadline(c.pool.epoch.Add(c.armed)) != nil
}

func (c *conn) stepQuiet(fd uintptr) bool {
	c.quiet = rawio.Quiet(fd)
	return true
}
