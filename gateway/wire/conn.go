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

	// Held from a request's first byte to its end, not while idle.
	br   *bufio.Reader
	call *Call

	head   head
	body   body
	inline int  // bytes of a body that lies in br as a whole
	torn   bool // the last answer is a part that only a reset tells from a whole
	peer   netip.Addr
	tls    bool
	since  time.Time // end of the last request
}

// inlineBody is the largest body that is handed over as bytes rather than as a
// stream. It fits every read buffer beside nothing else.
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
	_, n.tls = c.(*tls.Conn)
	return n
}

// serve answers requests until the connection ends.
func (c *conn) serve() {
	for c.await() && c.one() {
	}
	c.release()
	c.sock.drop()
}

// await returns true once the first bytes of a request are there. The buffers
// are given back before it waits.
func (c *conn) await() bool {
	if c.br != nil && c.br.Buffered() > 0 {
		return true
	}
	c.release()
	c.sock.readBy = c.since.Add(c.srv.conf.IdleTimeout)
	c.idle.Store(true)
	// In this order: either this sees that Shutdown has begun, or Shutdown sees
	// that the connection is idle, and its interruption comes after the deadline
	// that is set here.
	if c.sock.armRead() != nil || c.srv.stopping.Load() {
		return false
	}
	err := c.sock.fill()
	c.idle.Store(false)
	if err != nil {
		return false
	}
	if c.srv.stopping.Load() {
		c.srv.letInterrupt()
		c.sock.readArmed = time.Time{} // the interruption was for a wait that is over
	}
	c.br = c.srv.readers.Get().(*bufio.Reader)
	c.br.Reset(&c.sock)
	return true
}

// release gives the request's buffers back.
func (c *conn) release() {
	if c.call != nil {
		c.srv.putCall(c.call)
		c.call = nil
	}
	if c.br != nil {
		c.srv.readers.Put(c.br)
		c.br = nil
	}
}

// one reads a request, has it answered, and tells whether another may follow.
func (c *conn) one() bool {
	if c.call == nil {
		c.call = c.srv.getCall(c)
	}
	call := c.call
	call.Started = time.Now()
	call.Peer, call.TLS = c.peer, c.tls
	c.sock.readBy = call.Started.Add(c.srv.conf.ReadTimeout)
	fault := c.readHead()
	if fault == nil {
		fault = c.readBody()
	}
	if fault != nil {
		c.refuse(fault)
		return false
	}
	streamed := call.Stream != nil
	c.srv.handler.Handle(call)
	if call.Answer.Takeover != nil {
		c.handOver()
		return false
	}
	beside := call.Answer.Beside
	if !beside && streamed {
		c.sock.readArmed = time.Time{} // who read the body may have moved the deadline
	}
	keep := !beside && !c.head.close && c.settle() && !c.srv.stopping.Load()
	keep = c.respond(keep)
	c.since = time.Now()
	if !keep {
		c.linger()
		return false
	}
	call.reset(c)
	return true
}

// readHead reads and checks a head. It is copied, because the read buffer moves
// on.
func (c *conn) readHead() *Fault {
	c.head = head{}
	end, fault := c.wholeHead()
	if fault != nil {
		return fault
	}
	raw, err := c.br.Peek(end)
	if err != nil {
		return faultGone
	}
	call := c.call
	call.text = append(call.text[:0], raw...)
	_, _ = c.br.Discard(end)
	return c.head.parse(call.text, call, &c.srv.conf)
}

// wholeHead waits until a head is buffered and returns its length. Empty lines
// before a request are skipped, as RFC 9112 section 2.2 asks.
func (c *conn) wholeHead() (int, *Fault) {
	limit := c.srv.conf.MaxHeader
	for searched := 0; ; {
		b, _ := c.br.Peek(c.br.Buffered())
		if len(b) >= 2 && b[0] == '\r' && b[1] == '\n' {
			_, _ = c.br.Discard(2)
			searched = 0
			continue
		}
		from := max(0, searched-3)
		end := headEnd(b[from:])
		switch {
		case end > 0 && from+end <= limit:
			return from + end, nil
		case end > 0 || len(b) >= limit:
			return 0, c.tooLarge(b)
		}
		searched = len(b)
		if _, err := c.br.Peek(len(b) + 1); err != nil {
			return 0, c.unread(err, len(b))
		}
	}
}

// tooLarge tells a URL that is too long from a head that is.
func (c *conn) tooLarge(b []byte) *Fault {
	if _, _, ok := cutLine(b); !ok {
		return faultURL
	}
	return faultHead
}

// unread is why a head did not arrive, after n bytes of it.
func (c *conn) unread(err error, n int) *Fault {
	if n > 0 && isTimeout(err) {
		return faultSlow
	}
	return faultGone
}

// readBody makes a body available to the handler. A small one is read at once:
// it can then be sent twice, and costs no stream.
func (c *conn) readBody() *Fault {
	c.inline = 0
	c.body.reset(c, c.head.length, c.head.expect)
	switch {
	case c.head.length == 0:
		return nil
	case c.head.length > inlineBody || c.head.length < 0 || c.head.expect:
		c.call.Stream = &c.body
		return nil
	}
	c.inline = int(c.head.length)
	b, err := c.br.Peek(c.inline)
	if err != nil {
		return c.unread(err, 1)
	}
	c.call.Body = b
	return nil
}

// allowBody sets the deadline for a body's next bytes: a client must keep up
// one KiB a second on the average, and may not stall, however fast it was
// before.
func (c *conn) allowBody(received int64) {
	patient := c.srv.conf.ReadTimeout
	c.sock.readBy = c.call.Started.Add(patient + time.Duration(received>>10)*patience)
	if received > 0 {
		if stalled := time.Now().Add(patient); stalled.Before(c.sock.readBy) {
			c.sock.readBy = stalled
		}
	}
}

// settle makes sure that no byte of this request can be read as the next one.
func (c *conn) settle() bool {
	if c.inline > 0 {
		_, err := c.br.Discard(c.inline)
		c.inline = 0
		return err == nil
	}
	return c.body.settle()
}

// sendContinue tells a client that waits for it to send its body.
func (c *conn) sendContinue() error {
	_, err := c.sock.Write(continueLine)
	return err
}

var continueLine = []byte("HTTP/1.1 100 Continue\r\n\r\n")

// respond writes the answer and tells whether the connection can go on.
func (c *conn) respond(keep bool) bool {
	if c.call.Answer.Status != 0 {
		keep = c.writeAnswer(&c.call.Answer, keep)
	} else {
		keep = c.writeResponse(keep)
	}
	c.body.c = nil // a reader that outlives its call finds nothing
	return keep
}

// writeResponse sends what a handler left in fasthttp's response.
func (c *conn) writeResponse(keep bool) bool {
	resp := &c.call.Ctx().Response
	if c.call.IsHead() {
		resp.SkipBody = true
	}
	keep = keep && !resp.Header.ConnectionClose()
	switch {
	case !keep:
		resp.Header.SetConnectionClose()
	case c.call.HTTP10:
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

// handOver sends the head of an answer behind which the connection is somebody
// else's, and returns when they are done with it.
func (c *conn) handOver() {
	over, keep := c.call.Answer.Takeover, true
	if c.settle() && !c.srv.stopping.Load() {
		_, err := c.sock.Write(c.appendHead(nil, &c.call.Answer, &keep))
		keep = err == nil
	} else {
		keep = false
	}
	rest, _ := c.br.Peek(c.br.Buffered())
	received := append(bytes.Clone(rest), c.sock.pending...)
	c.body.c = nil
	c.release()
	c.sock.drop()
	if !keep || c.sock.Conn.SetDeadline(time.Time{}) != nil {
		over(nil, nil)
		return
	}
	over(c.sock.Conn, received)
}

// refuse answers what was not a request, where there is somebody to answer.
func (c *conn) refuse(fault *Fault) {
	if fault.Status == 0 {
		return
	}
	c.srv.handler.Refuse(c.call, fault)
	c.respond(false)
	c.linger()
}

// linger reads on for a little while after the last answer. A connection that
// is closed with unread bytes is reset, and a reset can overtake the answer.
func (c *conn) linger() {
	c.release()
	c.sock.drop()
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
