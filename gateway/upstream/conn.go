package upstream

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/rawio"
)

// conn is one connection to an upstream. It belongs to one exchange at a time.
//
// On plain TCP it makes raw system calls inside the poller's wait: the sockets
// never block, so the scheduler need not know of the calls. Connections with TLS
// use net.Conn's methods, with the same behaviour.
//
// Before a connection is used again it is checked for bytes and for its end: what
// arrived before a request was sent is never its answer.
type conn struct {
	pool  *pool
	sock  net.Conn
	tcp   net.Conn        // sock itself, or the connection below TLS
	raw   syscall.RawConn // of sock; nil: net.Conn's methods are used
	below syscall.RawConn // of tcp; nil: it cannot be checked

	// The steps run inside RawConn's methods. They are bound once, so that no call
	// allocates.
	sendStep, readStep, quietStep func(fd uintptr) bool

	phase phase
	await bool   // sendStep waits for the first bytes of the answer
	out   []byte // what sendStep has left to send
	in    []byte // what readStep fills
	n     int
	err   error
	quiet bool

	buf   []byte  // received: buf[r:w] is not yet used; nil between two requests
	spare *[]byte // buf's box in the pool of buffers; nil once buf has outgrown it
	r, w  int

	// All times are by the pool's clock.
	until      time.Duration // reads fail then, unless upload says otherwise
	poll       time.Duration // how often a read that waits checks on the client
	readArmed  time.Duration // deadlines set on sock
	writeArmed time.Duration
	client     wire.Client // whose request the connection serves
	upload     *upload     // sends the request's body at the same time; nil: it has been sent

	reused   bool // it has served a request
	answered bool // a byte has come since the request began
	born     time.Duration
	since    time.Duration // idle from then on

	next, prev *conn // list of the pool's connections
}

// bufferSize is what a connection in use reads into, in bytes. Idle ones hold
// no buffer.
const bufferSize = 16 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}

// A read that waits checks every so often whether its client is still there. As
// nginx does, it treats a client that closed only its sending side as gone: whether
// such a client still reads cannot be known.
//
// The first check comes after three quarters of these times: an answer that takes
// less reaches a client that closed only its sending side. The check costs a
// connection about four timers a second, busy or waiting, and no goroutine. Streams,
// which may be silent for long, are checked less often.
const (
	pollAnswer = 900 * time.Millisecond
	pollStream = 5 * time.Second
)

func newConn(p *pool, sock, tcp net.Conn) *conn {
	c := &conn{pool: p, sock: sock, tcp: tcp, born: p.now()}
	c.sendStep, c.readStep, c.quietStep = c.stepSend, c.stepRead, c.stepQuiet
	c.below = rawio.Conn(tcp)
	if rawio.Supported && p.tls == nil && !p.key.plain {
		c.raw = c.below
	}
	return c
}

// begin prepares the connection for a request of a client, whose answer must begin
// before until.
func (c *conn) begin(now, until time.Duration, client wire.Client) error {
	if c.buf == nil {
		c.spare = buffers.Get().(*[]byte)
		c.buf = *c.spare
	}
	c.r, c.w, c.answered = 0, 0, false
	c.client, c.upload = client, nil
	return c.waitUntil(now, until, pollAnswer)
}

// releaseBuffer returns the buffer to its pool.
func (c *conn) releaseBuffer() {
	if c.spare != nil {
		buffers.Put(c.spare)
	}
	c.spare, c.buf, c.r, c.w = nil, nil, 0, 0
}

// close closes the connection and leaves it in its pool's list.
func (c *conn) close() {
	_ = c.sock.Close()
	c.releaseBuffer()
}

// drop closes the connection and frees its slot in the pool.
func (c *conn) drop() { c.pool.remove(c) }

// finish ends an exchange at the time given. The connection goes back to its pool
// only if keep is set and everything received was part of the answer.
func (c *conn) finish(keep bool, now time.Duration) {
	if !keep || c.r != c.w {
		c.drop()
		return
	}
	if c.upload != nil {
		c.readArmed = 0 // the end of an upload sets a deadline that has passed
	}
	c.releaseBuffer()
	c.client, c.upload = wire.Client{}, nil
	c.pool.put(c, now)
}

// waitUntil makes reads fail at a time, and check on the client until then. A
// deadline that is already set is kept if it will do, so that most requests set
// none.
func (c *conn) waitUntil(now, until, poll time.Duration) error {
	c.until, c.poll = until, poll
	soonest, latest := min(until, now+poll*3/4), min(until, now+poll)
	if soonest <= c.readArmed && c.readArmed <= latest {
		return nil
	}
	c.readArmed = latest
	return c.sock.SetReadDeadline(c.pool.epoch.Add(latest))
}

// limit is when the wait for the upstream ends.
func (c *conn) limit() time.Duration {
	if c.upload != nil {
		return c.upload.answerBy()
	}
	return c.until
}

// resume sets the next deadline after one has passed, or returns why the wait is
// over.
func (c *conn) resume() error {
	for {
		now, limit := c.pool.now(), c.limit()
		switch {
		case now >= limit:
			return os.ErrDeadlineExceeded
		case limit != never && now >= c.readArmed && c.client.Gone():
			return clientError{errGone} // not before its time: the end of an upload wakes the read as well
		}
		c.readArmed = 0
		if err := c.waitUntil(now, limit, c.poll); err != nil {
			return err
		}
		// An upload that ends sets a deadline after it has changed the limit.
		if c.limit() == limit {
			return nil
		}
	}
}

// phase is how far a request has got.
type phase uint8

const (
	checking phase = iota // nothing is sent unless nothing is there to read
	sending
	receiving
)

// send writes a request. It returns errStale, with nothing sent, if the connection
// has ended or holds bytes. With await it returns once the first bytes of the answer
// are in the buffer.
func (c *conn) send(req []byte, await bool) error {
	if c.raw == nil {
		return c.sendPlain(req, await)
	}
	c.phase, c.await, c.out, c.n, c.err = checking, await, req, 0, nil
	err := c.raw.Read(c.sendStep)
	rest := c.out
	c.out = nil
	switch {
	case err != nil && isTimeout(err) && c.phase == receiving:
		if err := c.resume(); err != nil {
			return err
		}
		return c.fill()
	case err != nil:
		return err
	case c.err == rawio.ErrAgain: // the socket takes no more for now
		if _, err := c.write(rest); err != nil || !await {
			return err
		}
		return c.fill()
	case c.err != nil && c.phase == sending && len(rest) == len(req) && isDisconnect(c.err):
		return errStale
	case c.n > 0:
		c.w += c.n
		c.answered = true
	}
	return c.err
}

// stepSend runs inside RawConn.Read, which clears its readiness state before the
// first call. After a send it may therefore wait without reading first: bytes that
// arrive from then on wake it. That is only right because it has checked before that
// there was nothing to read.
func (c *conn) stepSend(fd uintptr) bool {
	if c.phase == checking {
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
	return c.err != rawio.ErrAgain
}

// writeSlack bounds how much later than wanted a write may fail, which is a fiftieth of
// the time that it has. It saves setting a deadline for every request. With TLS a write
// that has failed cannot be continued, so that it must not fail early.
const writeSlack = 500 * time.Millisecond

// write sends p and may wait for the upstream to accept it.
func (c *conn) write(p []byte) (int, error) {
	slack := min(writeSlack, (c.until-c.pool.now())/50)
	if c.writeArmed < c.until || c.writeArmed > c.until+slack {
		c.writeArmed = c.until + slack
		if err := c.sock.SetWriteDeadline(c.pool.epoch.Add(c.writeArmed)); err != nil {
			return 0, err
		}
	}
	return c.sock.Write(p)
}

// fill reads once behind what is buffered, which must leave space.
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
	for {
		n, err := c.readOnce(p)
		switch {
		case n > 0:
			return n, nil
		case err == nil:
		case !isTimeout(err):
			return 0, err
		default:
			if err := c.resume(); err != nil {
				return 0, err
			}
		}
	}
}

func (c *conn) readOnce(p []byte) (int, error) {
	if c.raw == nil {
		return c.sock.Read(p)
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

// sendPlain is send by net.Conn's methods.
func (c *conn) sendPlain(req []byte, await bool) error {
	if c.reused && !c.isQuiet() {
		return errStale
	}
	n, err := c.write(req)
	switch {
	case err != nil && n == 0 && isDisconnect(err):
		return errStale
	case err == nil && await:
		return c.fill()
	}
	return err
}

// isQuiet reports whether nothing has come on a connection that idled.
func (c *conn) isQuiet() bool {
	if c.below == nil || c.tcp != c.sock && c.holdsPlaintext() {
		return false
	}
	c.quiet = false
	return c.below.Read(c.quietStep) == nil && c.quiet
}

// holdsPlaintext reports whether TLS holds decrypted bytes that were not read. A
// read whose deadline has passed returns those and does not wait for others.
func (c *conn) holdsPlaintext() bool {
	if c.sock.SetReadDeadline(time.Unix(1, 0)) != nil {
		return true
	}
	n, err := c.sock.Read(c.buf[:1])
	return n > 0 || !isTimeout(err) || c.sock.SetReadDeadline(c.pool.epoch.Add(c.readArmed)) != nil
}

func (c *conn) stepQuiet(fd uintptr) bool {
	c.quiet = rawio.Quiet(fd)
	return true
}
