package introspect

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// dialling returns a dial function whose connections leave it to reads to tell
// how the other end broke them off.
func dialling(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return conn{c}, nil
	}
}

// conn is a connection whose writes never tell that the other end has
// closed it. An upstream that refuses a client certificate says why and closes,
// after the handshake as its client sees it: what it said is still there to be
// read, though a request can no longer be sent.
type conn struct{ net.Conn }

// Write writes b. A connection that the other end has closed swallows it.
func (c conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return len(b), nil
	}
	return n, err
}
