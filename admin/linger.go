package admin

import (
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// What is read of a request that was refused before its end had come: of most
// bodies that are too large all, so that their clients get to read why.
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
		return nil, err // as it is: the server tells those apart that pass
	}
	return &lingeringConn{Conn: conn}, nil
}

// lingeringConn is a connection that is read on for a while before it closes,
// when it lingers. One that is closed with unread bytes is reset, and a reset can
// overtake the answer.
type lingeringConn struct {
	net.Conn
	lingers atomic.Bool
}

// lingerAfter has the connection of a request linger after its answer.
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
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes) // it ends as it may: the answer has been sent
}
