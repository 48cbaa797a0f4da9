package wire

import "github.com/valyala/fasthttp"

// buffers is what a connection needs while it serves a request, and returns to the
// server's pool before it waits for the next one.
type buffers struct {
	in   []byte // received; heads and small bodies are used in place
	out  []byte // to be sent
	call Call
}

// maxOut bounds the capacity of buffers.out that is kept, in bytes.
const maxOut = maxGather + 8<<10

func (s *Server) newBuffers() any {
	return &buffers{in: make([]byte, s.conf.MaxHeader+inlineBody), out: make([]byte, 0, 4<<10)}
}

// take takes buffers from the pool unless the connection has some.
func (c *conn) take() {
	if c.buffers != nil {
		return
	}
	c.srv.admission.enter()
	c.buffers = c.srv.buffers.Get().(*buffers)
	c.r, c.w, c.base = 0, 0, 0
	call := &c.buffers.call
	call.conn, call.Peer, call.TLS, call.Cert = c, c.peer, c.tls, c.cert
}

// release returns the buffers. What they hold is lost.
func (c *conn) release() {
	if c.buffers == nil {
		return
	}
	call := &c.buffers.call
	call.reset()
	call.conn, call.Cert = nil, nil
	c.srv.buffers.Put(c.buffers)
	c.buffers, c.r, c.w, c.base = nil, 0, 0, 0
	c.srv.admission.leave()
}

// buffered is what has been received and not used.
func (c *conn) buffered() []byte { return c.buffers.in[c.r:c.w] }

// toFront moves what is buffered to the front, to leave as much space behind it as
// possible. The request before must not be in use any more.
func (c *conn) toFront() {
	if c.r > 0 {
		c.w = copy(c.buffers.in, c.buffered())
		c.r = 0
	}
	c.base = 0
}

// more reads once behind what is buffered. There is space for the largest head, and
// for the largest inline body behind it.
func (c *conn) more() error {
	if c.r == c.w {
		c.r, c.w = c.base, c.base
	}
	n, err := c.sock.Read(c.buffers.in[c.w:])
	c.w += n
	if n > 0 {
		return nil
	}
	return err
}

// skipEmptyLines reports whether it skipped any.
func (c *conn) skipEmptyLines() bool {
	start := c.r
	for b := c.buffers.in; c.r+1 < c.w && b[c.r] == '\r' && b[c.r+1] == '\n'; {
		c.r += 2
	}
	return c.r > start
}

// fasthttpCtx returns a fasthttp context for a call of the connection.
func (c *conn) fasthttpCtx() *fasthttp.RequestCtx {
	ctx := c.srv.contexts.Get().(*fasthttp.RequestCtx)
	ctx.Init2(c.sock.Conn, c.srv.log, false)
	return ctx
}
