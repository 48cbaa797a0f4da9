package wire

import (
	"time"

	"github.com/sluicegate/sluice/internal/rawio"
)

// Inline reading serves requests inside the function that RawConn.Read runs, so
// that a request that arrives whole costs one wait of the poller, and no read that
// finds nothing. Without it a keyless request costs 1.08 to 1.19 times the CPU on two
// cores, and one counted in a shared store 1.1 times.
//
// The poller remembers what it reports while nothing waits: the next wait ends at
// once. A read that took everything there was therefore need not be followed by one
// that finds nothing, which is how a wait otherwise begins. Such a wait misses one
// thing: a client's end that arrived together with its last bytes. A wait without a
// look is therefore followed, recheck later, by one with a look.
//
// While a request is served here, the connection's descriptor is locked against
// other reads: nothing else may read from it, or wait for it to be closed.

// A connection is busy if its last request came within busyGap of the answer
// before. The wait of a busy connection begins without a look, and is followed by a
// look after recheck.
const (
	busyGap = 50 * time.Millisecond
	recheck = 250 * time.Millisecond
)

// inline is the state of a connection's inline reads.
type inline struct {
	step      func(fd uintptr) bool // stepInline, bound once
	next      outcome               // what follows the read
	tookAll   bool                  // the last read took all that had come
	served    bool                  // a request has been answered on the connection
	busy      bool                  // see busyGap
	unchecked bool                  // the wait began without a look
}

// readInline waits for requests and answers those that come whole. It returns goOn
// if the next request must be completed by ordinary reads.
func (c *conn) readInline() outcome {
	// Without a deadline the answer, or what read the body, may have moved it.
	if c.inline.served && c.sock.readArmed.IsZero() && !c.goIdle() {
		return lost
	}
	// More may have come since the last look, and the time for the next one may
	// have passed during the answer.
	c.inline.unchecked, c.inline.tookAll = true, false
	for {
		err := c.sock.raw.Read(c.inline.step)
		switch {
		case err == nil:
			return c.inline.next
		case c.inline.unchecked && isTimeout(err):
		case !c.sock.tooEarly(err):
			return lost
		}
		if !c.goIdle() {
			return lost
		}
		c.inline.unchecked = false
	}
}

// stepInline runs inside the poller's wait: it returns false to wait.
func (c *conn) stepInline(fd uintptr) bool {
	if c.idle.Load() {
		c.resume()
	}
	c.sock.held, c.sock.fd = true, fd
	over := c.serveInline(fd)
	c.sock.held = false
	return over
}

// serveInline answers the requests that have come, and returns false to wait for
// more.
func (c *conn) serveInline(fd uintptr) bool {
	for {
		if c.r < c.w {
			if c.inline.next = c.answerWhole(); c.inline.next != goOn || c.r < c.w {
				return true
			}
			if c.inline.tookAll && c.inline.busy {
				return !c.waitInline(true)
			}
		}
		c.take()
		c.toFront()
		n, err := rawio.Read(fd, c.buffers.in)
		c.w, c.inline.tookAll = n, n < len(c.buffers.in)
		switch {
		case err == rawio.ErrAgain:
			return !c.waitInline(false)
		case err != nil:
			c.inline.next = lost
			return true
		}
	}
}

// waitInline prepares the connection for a wait, with or without a look before it,
// and reports whether there is to be one.
func (c *conn) waitInline(unchecked bool) bool {
	c.release()
	c.inline.unchecked = unchecked
	c.inline.next = lost
	if !unchecked {
		return c.goIdle()
	}
	c.idle.Store(true) // in goIdle's order
	return c.sock.armWithin(c.since, recheck) == nil && !c.srv.stopping.Load()
}

// answerWhole answers the buffered requests. It stops at one that is incomplete,
// invalid, or has a body to be streamed.
func (c *conn) answerWhole() outcome {
	for c.r < c.w {
		c.skipEmptyLines()
		b := c.buffered()
		end := headEnd(b)
		if end == 0 || end > c.srv.conf.MaxHeader {
			return goOn
		}
		call := &c.buffers.call
		call.used = true
		if c.head.parse(b[:end], call, &c.srv.conf) != nil || !c.head.inline() || c.head.length > int64(len(b)-end) {
			call.forget()
			return goOn
		}
		c.r += end
		c.body.reset(c, &c.head)
		c.takeInline(int(c.head.length))
		call.Started = time.Now()
		if next := c.handle(); next != goOn {
			return next
		}
	}
	return goOn
}
