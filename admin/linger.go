package admin

import (
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// Bounds of what is read of a request that was refused before its end. Most bodies that
// are too large are read whole, so that the client reads the answer.
const (
	lingerBytes = maxBatch
	lingerTime  = 5 * time.Second
)

// lingeringListener accepts connections that may linger.
type lingeringListener struct{ net.Listener }

// Accept implements net.Listener.
func (l lingeringListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err // not wrapped: the server distinguishes temporary errors
	}
	return &lingeringConn{Conn: conn}, nil
}

// lingeringConn is a connection that, when it lingers, reads on for a while before it
// closes. Closing a connection with unread bytes resets it, and the reset can overtake
// the answer.
type lingeringConn struct {
	net.Conn
	lingers atomic.Bool
}

// lingerAfter makes the connection of a request linger after the answer.
func lingerAfter(ctx *fasthttp.RequestCtx) {
	if conn, ok := ctx.Conn().(*lingeringConn); ok {
		conn.lingers.Store(true)
	}
}

// Close implements net.Conn.
func (c *lingeringConn) Close() error {
	if c.lingers.Load() {
		c.drain()
	}
	return c.Conn.Close()
}

func (c *lingeringConn) drain() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes) // an error does not matter: the answer has been sent
}
