package upstream

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/sluicegate/sluice/internal/dialguard"
)

// dial makes a connection in the place that the caller holds, and gives the
// place up when that does not work. All addresses of a name are tried.
func (p *pool) dial(ctx context.Context, timeout time.Duration) (*conn, error) {
	sock, tcp, err := p.connect(ctx, time.Now().Add(timeout))
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.vacate()
		return nil, err
	}
	if p.stopped {
		p.vacate()
		_ = tcp.Close()
		return nil, errStopped
	}
	c := newConn(p, sock, tcp)
	p.link(c)
	return c, nil
}

// connect connects, and shakes hands where TLS is spoken.
func (p *pool) connect(ctx context.Context, deadline time.Time) (sock, tcp net.Conn, err error) {
	dialer := p.dialer
	dialer.Deadline = deadline
	tcp, err = dialer.DialContext(ctx, "tcp", p.key.address)
	if err != nil {
		return nil, nil, dialError{err}
	}
	if p.tls == nil {
		return tcp, tcp, nil
	}
	secure := tls.Client(tcp, p.tls)
	err = tcp.SetDeadline(deadline)
	if err == nil {
		err = secure.HandshakeContext(ctx)
	}
	if err != nil {
		_ = tcp.Close()
		return nil, nil, handshakeError{err}
	}
	return secure, tcp, nil
}

// reachable is what an upstream may be: anything inside and outside, but for
// what nothing may call.
var reachable = dialguard.Policy{Private: true}
