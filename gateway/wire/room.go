package wire

import "github.com/valyala/fasthttp"

// A room is what a connection needs while it serves a request, and gives back
// before it waits for the next one.
type room struct {
	buf  []byte // received; heads and small bodies are used where they lie
	out  []byte // for what is sent
	call Call
}

// maxOut bounds what a room keeps of the buffer for what is sent, in bytes.
const maxOut = maxGather + 8<<10

func (s *Server) newRoom() any {
	return &room{buf: make([]byte, s.conf.MaxHeader+inlineBody), out: make([]byte, 0, 4<<10)}
}

// take takes a room from the pool unless the connection has one.
func (c *conn) take() {
	if c.room != nil {
		return
	}
	c.srv.gate.Enter()
	c.room = c.srv.rooms.Get().(*room)
	c.r, c.w, c.base = 0, 0, 0
	call := &c.room.call
	call.conn, call.Peer, call.TLS, call.Cert = c, c.peer, c.tls, c.cert
}

// release gives the room back. What is buffered in it is gone.
func (c *conn) release() {
	if c.room == nil {
		return
	}
	call := &c.room.call
	call.reset()
	call.conn, call.Cert = nil, nil
	c.srv.rooms.Put(c.room)
	c.room, c.r, c.w, c.base = nil, 0, 0, 0
	c.srv.gate.Leave()
}

// buffered is what has been received and not used.
func (c *conn) buffered() []byte { return c.room.buf[c.r:c.w] }

// toFront makes the room behind what is buffered as large as it can be. It must
// not be called while somebody looks at the request before.
func (c *conn) toFront() {
	if c.r > 0 {
		c.w = copy(c.room.buf, c.buffered())
		c.r = 0
	}
	c.base = 0
}

// more reads on behind what is buffered. There is room for the largest head,
// and for the largest body that is taken whole behind that.
func (c *conn) more() error {
	if c.r == c.w {
		c.r, c.w = c.base, c.base
	}
	n, err := c.sock.Read(c.room.buf[c.w:])
	c.w += n
	if n > 0 {
		return nil
	}
	return err
}

// skipEmptyLines tells whether there were some.
func (c *conn) skipEmptyLines() bool {
	start := c.r
	for b := c.room.buf; c.r+1 < c.w && b[c.r] == '\r' && b[c.r+1] == '\n'; {
		c.r += 2
	}
	return c.r > start
}

// readByte returns the next byte of a streamed body.
func (c *conn) readByte() (byte, error) {
	if c.r == c.w {
		if err := c.more(); err != nil {
			return 0, err
		}
	}
	b := c.room.buf[c.r]
	c.r++
	return b, nil
}

// fasthttpCtx returns a fasthttp context for a call of the connection.
func (c *conn) fasthttpCtx() *fasthttp.RequestCtx {
	ctx := c.srv.contexts.Get().(*fasthttp.RequestCtx)
	ctx.Init2(c.sock.Conn, c.srv.log, false)
	return ctx
}
