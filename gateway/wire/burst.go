package wire

import (
	"time"

	"github.com/sluicegate/sluice/internal/rawio"
)

// A connection is quick while its requests follow one another within quickGap.
// It then waits without having looked whether more has come, and lateLook later
// at the latest somebody looks.
const (
	quickGap = 50 * time.Millisecond
	lateLook = 250 * time.Millisecond
)

// burst waits for requests and answers those that come whole, all within one
// wait of the poller's. It returns goOn when the next request must be read on
// from what is buffered.
//
// The poller's wait remembers what it hears of while nobody waits: whoever waits
// next is woken at once. So a read that has taken all there was need not be
// followed by another one that finds nothing, which is how a wait is usually
// begun. There is one thing that such a read does not show: an end of the
// client's that came along with its last bytes, and was heard of with them. That
// is what the late look is for.
//
// While a request is answered here, the connection's descriptor is locked
// against other reads: nobody may read from it, or wait until it is closed.
func (c *conn) burst() outcome {
	if c.warm && c.sock.readArmed.IsZero() && !c.goIdle() { // somebody moved the deadline, maybe into the past
		return lost
	}
	// More may have come since somebody looked, and the time set for that may be
	// over: the answer may have taken longer.
	c.blind, c.drained = true, false
	for {
		err := c.sock.raw.Read(c.step)
		switch {
		case err == nil:
			return c.next
		case !c.blind || !isTimeout(err) || !c.goIdle():
			return lost
		}
		c.blind = false
	}
}

// stepBurst runs inside the poller's wait: it returns false to wait.
func (c *conn) stepBurst(fd uintptr) bool {
	if c.idle.Load() {
		c.resume()
	}
	c.sock.held, c.sock.fd = true, fd
	over := c.serveBurst(fd)
	c.sock.held = false
	return over
}

// serveBurst answers what there is, and returns false to wait for more.
func (c *conn) serveBurst(fd uintptr) bool {
	for {
		if c.r < c.w {
			if c.next = c.answerWhole(); c.next != goOn || c.r < c.w {
				return true
			}
			if c.drained && c.quick {
				return !c.wait(true)
			}
		}
		c.take()
		c.toFront()
		n, err := rawio.Read(fd, c.room.buf)
		c.w, c.drained = n, n < len(c.room.buf)
		switch {
		case err == rawio.ErrAgain:
			return !c.wait(false)
		case err != nil:
			c.next = lost
			return true
		}
	}
}

// wait makes the connection ready for a wait, and tells whether there is to be
// one.
func (c *conn) wait(blind bool) bool {
	c.release()
	c.blind = blind
	c.next = lost
	if !blind {
		return c.goIdle()
	}
	c.idle.Store(true) // as in goIdle
	return c.sock.armWithin(c.since, lateLook) == nil && !c.srv.stopping.Load()
}

// answerWhole answers the requests that are buffered, one after the other. It
// stops at one that is not there as a whole, or not a request.
func (c *conn) answerWhole() outcome {
	for c.r < c.w {
		c.skipEmptyLines()
		b := c.buffered()
		end := headEnd(b)
		if end == 0 || end > c.srv.conf.MaxHeader {
			return goOn
		}
		call := &c.room.call
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
