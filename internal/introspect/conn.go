package introspect

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// dialling returns a dial function for connections that report a close of the other end
// by reads only.
func dialling(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return conn{c}, nil
	}
}

// conn is a connection whose writes do not fail when the other end has closed it. An
// upstream that refuses a client certificate sends an alert and closes, after the
// handshake has ended for the client: the alert can still be read, though a request can
// no longer be sent.
type conn struct{ net.Conn }

// Write writes b. If the other end has closed the connection, b is discarded.
func (c conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return len(b), nil
	}
	return n, err
}
