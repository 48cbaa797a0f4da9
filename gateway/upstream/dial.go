package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// dial makes a connection in the place that the caller holds, and gives the
// place up when that does not work. All addresses of a name are tried.
func (p *pool) dial(timeout time.Duration) (*conn, error) {
	sock, tcp, err := p.connect(time.Now().Add(timeout))
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
func (p *pool) connect(deadline time.Time) (sock, tcp net.Conn, err error) {
	dialer := p.dialer
	dialer.Deadline = deadline
	tcp, err = dialer.Dial("tcp", p.key.address)
	if err != nil {
		return nil, nil, dialError{err}
	}
	if p.tls == nil {
		return tcp, tcp, nil
	}
	secure := tls.Client(tcp, p.tls)
	err = tcp.SetDeadline(deadline)
	if err == nil {
		err = secure.Handshake()
	}
	if err != nil {
		_ = tcp.Close()
		return nil, nil, handshakeError{err}
	}
	return secure, tcp, nil
}

// guarded are networks of which no upstream can be part: addresses of the own
// link, and the services by which cloud providers hand credentials to whoever
// asks from inside.
var guarded = [...]netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("64:ff9b::a9fe:0/112"), // the same behind NAT64
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fd00:ec2::254/128"),
	netip.MustParsePrefix("fd20:ce::254/128"),
	netip.MustParsePrefix("100.100.100.200/32"),
	netip.MustParsePrefix("168.63.129.16/32"),
}

var errGuarded = errors.New("link-local and metadata addresses are never called")

// checkAddress refuses a host:port whose host is a guarded address.
func checkAddress(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil // a name: its addresses are checked when they are dialled
	}
	ip := ap.Addr().Unmap().WithZone("")
	for _, net := range guarded {
		if net.Contains(ip) {
			return fmt.Errorf("host %s: %w", ip, errGuarded)
		}
	}
	return nil
}

// guardDial runs for each address that is about to be dialled, names resolved.
func guardDial(_ context.Context, _, address string, _ syscall.RawConn) error {
	return checkAddress(address)
}
