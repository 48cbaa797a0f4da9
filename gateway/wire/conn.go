package wire

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// conn serves one client connection on its own goroutine.
type conn struct {
	srv  *Server
	sock sock
	idle atomic.Bool // parked between two requests; Shutdown may interrupt it

	buffers *buffers // held from a request's first byte to its end, not while idle
	r, w    int      // buffers.in[r:w] has been received and not used
	base    int      // buffers.in[:base] is the current request, and is not changed

	inline      inline
	head        head
	body        body
	gone        bool       // the client has closed its side
	torn        bool       // the last answer is incomplete, and only a reset shows that
	peer        netip.Addr // the client; until the header of a proxy is read, the proxy
	proxied     bool       // the connection begins with such a header
	tls         bool
	cert        *Certificate // that the client showed; nil: none
	handshaking *handshake   // among the handshakes, while there is one
	since       time.Time    // end of the last request
}

// inlineBody is the largest body that is handed over as bytes rather than as a
// stream, in bytes. It fits every read buffer beside the largest head.
const inlineBody = 8 << 10

// lingerBytes and lingerTime bound how long a connection is read on after its
// last answer, so that the answer is not lost to a reset. A client that sends
// twice what a GraphQL body may have still learns that it is too large.
const (
	lingerBytes = 2 << 20
	lingerTime  = time.Second
)

// patience is granted for each KiB of a body, on top of ReadTimeout.
const patience = time.Second

func newConn(s *Server, c net.Conn, peer netip.Addr) *conn {
	n := &conn{srv: s, peer: peer, since: time.Now()}
	n.sock.init(c, &s.conf)
	n.inline.step = n.stepInline
	_, n.tls = c.(*tls.Conn)
	return n
}

// An outcome is what follows a call.
type outcome uint8

const (
	goOn    outcome = iota // another request may follow
	lost                   // nothing: the other end is gone, or was never there
	settled                // nothing: the last answer has been given
	leaving                // the connection is handed over
)

// serve answers requests until the connection ends.
func (c *conn) serve() {
	next := goOn
	for next == goOn {
		if next = c.await(); next == goOn {
			next = c.one()
		}
	}
	switch next {
	case settled:
		c.linger()
	case leaving:
		c.takeOver()
	}
	c.release()
}

// await returns goOn once bytes of a request are there that one is to read on
// from. Requests that arrive whole may have been answered before that.
func (c *conn) await() outcome {
	if c.sock.raw != nil {
		return c.readInline()
	}
	if c.r < c.w {
		return goOn
	}
	c.release()
	var chunk *[]byte
	n, early := 0, true
	for early {
		if !c.goIdle() {
			return lost
		}
		var err error
		chunk, n, err = c.sock.first()
		early = err != nil && c.sock.tooEarly(err)
		c.resume()
		if err != nil && !early {
			return lost
		}
	}
	c.take()
	c.w = copy(c.buffers.in, (*chunk)[:n])
	chunks.Put(chunk)
	return goOn
}

// goIdle arms the deadline of a wait between two requests. It returns false when
// there is to be no wait, because Shutdown has begun.
func (c *conn) goIdle() bool {
	c.sock.readBy = c.since.Add(c.srv.conf.IdleTimeout)
	c.idle.Store(true)
	// In this order: either this sees that Shutdown has begun, or Shutdown sees
	// that the connection is idle, and its interruption comes after the deadline
	// that is set here.
	return c.sock.armRead() == nil && !c.srv.stopping.Load()
}

// resume ends a wait between two requests.
func (c *conn) resume() {
	c.idle.Store(false)
	if c.srv.stopping.Load() {
		c.srv.letInterrupt()
		c.sock.readArmed = time.Time{} // the interruption was for a wait that is over
	}
}

// one reads a request and has it answered.
func (c *conn) one() outcome {
	call := &c.buffers.call
	call.used, call.Started = true, time.Now()
	c.sock.readBy = call.Started.Add(c.srv.conf.ReadTimeout)
	fault := c.readHead()
	if fault == nil {
		fault = c.readBody()
	}
	if fault != nil {
		return c.refuse(fault)
	}
	return c.handle()
}

// handle has the request at hand answered.
func (c *conn) handle() outcome {
	call := &c.buffers.call
	streamed := call.Stream != nil
	c.inline.busy = c.inline.served && call.Started.Sub(c.since) < busyGap
	c.inline.served = true
	c.srv.handler.Handle(call)
	if call.Answer.Takeover != nil {
		return leaving
	}
	beside := call.Answer.Beside
	if !beside && streamed {
		c.sock.readArmed = time.Time{} // who read the body may have moved the deadline
		c.sock.halted.Store(false)
	}
	keep := !beside && !call.Answer.Close && !c.head.close && !c.gone && c.skipRest() && !c.srv.leaving.Load()
	c.since = call.End()
	keep = c.respond(keep)
	if call.Answer.Stream != nil || c.sock.wait || c.sock.raw == nil {
		c.since = time.Now() // the client may have taken its time
	}
	if !keep {
		return settled
	}
	call.reset()
	return goOn
}

// readHead reads and checks a head.
func (c *conn) readHead() *Fault {
	c.head = head{}
	end, fault := c.wholeHead()
	if fault != nil {
		return fault
	}
	c.r += end
	return c.head.parse(c.buffers.in[c.r-end:c.r], &c.buffers.call, &c.srv.conf)
}

// wholeHead waits until a head is buffered and returns its length. Empty lines
// before a request are skipped, as RFC 9112 section 2.2 asks.
func (c *conn) wholeHead() (int, *Fault) {
	limit := c.srv.conf.MaxHeader
	c.toFront()
	for searched := 0; ; {
		if c.skipEmptyLines() {
			c.toFront()
			searched = 0
		}
		b := c.buffered()
		from := max(0, searched-3)
		end := headEnd(b[from:])
		switch {
		case end > 0 && from+end <= limit:
			return from + end, nil
		case end > 0 || len(b) >= limit:
			return 0, tooLarge(b[:min(len(b), limit)])
		}
		searched = len(b)
		if err := c.more(); err != nil {
			return 0, unread(err, len(b))
		}
	}
}

// tooLarge returns the fault of a URL, or of a head, that is too long.
func tooLarge(b []byte) *Fault {
	if _, _, ok := cutLine(b); !ok {
		return faultURL
	}
	return faultHead
}

// unread is why a head did not arrive, after n bytes of it.
func unread(err error, n int) *Fault {
	if n > 0 && isTimeout(err) {
		return faultSlow
	}
	return faultGone
}

// readBody makes a body available to the handler. A small one is read at once:
// it can then be sent twice, and costs no stream.
func (c *conn) readBody() *Fault {
	c.base = c.r
	c.body.reset(c, &c.head)
	call := &c.buffers.call
	switch {
	case c.head.length == 0:
		return nil
	case !c.head.inline():
		call.Stream = &c.body
		return nil
	}
	size := int(c.head.length)
	for c.w-c.r < size {
		if err := c.more(); err != nil {
			return unread(err, 1)
		}
	}
	c.takeInline(size)
	return nil
}

// takeInline makes the next bytes that are buffered the body of the call.
func (c *conn) takeInline(size int) {
	if size > 0 {
		c.buffers.call.Body = c.buffers.in[c.r : c.r+size : c.r+size]
		c.r += size
	}
	c.base, c.body.done = c.r, true
}

// allowBody sets the deadline for a body's next bytes: a client must keep up
// one KiB a second on the average, and may not stall, however fast it was
// before.
func (c *conn) allowBody(received int64) {
	patient := c.srv.conf.ReadTimeout
	c.sock.readBy = c.buffers.call.Started.Add(patient + time.Duration(received>>10)*patience)
	if received > 0 {
		if stalled := time.Now().Add(patient); stalled.Before(c.sock.readBy) {
			c.sock.readBy = stalled
		}
	}
}

// skipRest makes sure that no byte of this request can be read as the next one.
func (c *conn) skipRest() bool { return c.body.skipRest() }

// sendContinue sends 100 Continue to a client that waits for it before its body.
func (c *conn) sendContinue() error {
	_, err := c.sock.Write(continueLine)
	return err
}

var continueLine = []byte("HTTP/1.1 100 Continue\r\n\r\n")

// respond writes the answer and reports whether the connection can go on.
func (c *conn) respond(keep bool) bool {
	if a := &c.buffers.call.Answer; a.Status != 0 {
		keep = c.writeAnswer(a, keep)
	} else {
		keep = c.writeResponse(keep)
	}
	c.body.c = nil // a reader that outlives its call finds nothing
	return keep
}

// writeResponse sends what a handler left in fasthttp's response.
func (c *conn) writeResponse(keep bool) bool {
	call := &c.buffers.call
	resp := &call.Ctx().Response
	if call.IsHead() {
		resp.SkipBody = true
	}
	keep = keep && !resp.Header.ConnectionClose()
	switch {
	case !keep:
		resp.Header.SetConnectionClose()
	case call.HTTP10:
		resp.Header.Set(fasthttp.HeaderConnection, "keep-alive")
	}
	w := c.srv.writers.Get().(*bufio.Writer)
	w.Reset(&c.sock)
	err := resp.Write(w)
	if err == nil {
		err = w.Flush()
	}
	w.Reset(nil)
	c.srv.writers.Put(w)
	return keep && err == nil
}

// takeOver sends the head of an answer, passes the connection to the answer's
// Takeover, and returns when that does.
func (c *conn) takeOver() {
	call := &c.buffers.call
	over, keep := call.Answer.Takeover, true
	if c.skipRest() && !c.srv.stopping.Load() {
		_, err := c.sock.Write(c.appendHead(nil, &call.Answer, &keep))
		keep = err == nil
	} else {
		keep = false
	}
	received := bytes.Clone(c.buffered())
	c.body.c = nil
	c.release()
	if !keep || c.sock.Conn.SetDeadline(time.Time{}) != nil {
		over(nil, nil)
		return
	}
	over(c.sock.Conn, received)
}

// abandon lets go of what an answer holds that a fault has kept from being sent.
func (c *conn) abandon() {
	if c.buffers == nil {
		return
	}
	a := &c.buffers.call.Answer
	if a.Stream != nil {
		_ = a.Stream.Close()
	}
	if a.Takeover != nil {
		a.Takeover(nil, nil)
	}
}

// refuse answers a malformed request, unless the client is gone.
func (c *conn) refuse(fault *Fault) outcome {
	if fault.Status == 0 {
		return lost
	}
	c.srv.handler.Refuse(&c.buffers.call, fault)
	c.respond(false)
	return settled
}

// linger reads on for a little while after the last answer. A connection that
// is closed with unread bytes is reset, and a reset can overtake the answer.
func (c *conn) linger() {
	c.release()
	if c.torn || c.sock.broken {
		c.sock.reset()
		return
	}
	half, ok := c.sock.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	if c.sock.Conn.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	buf := chunks.Get().(*[]byte)
	defer chunks.Put(buf)
	for left := lingerBytes; left > 0; {
		n, err := c.sock.Conn.Read(*buf)
		if err != nil {
			return
		}
		left -= n
	}
}
