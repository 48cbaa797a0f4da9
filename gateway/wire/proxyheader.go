package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// The PROXY protocol, versions 1 and 2, as proxies send it before anything else on a
// connection: https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt. Libraries wrap
// the connection with a buffer; here exactly the header is read from the socket, which is
// used by raw system calls afterwards.

// Sizes of headers, in bytes.
const (
	proxyShortest = 13   // of either version: "PROXY UNKNOWN", which is followed by CRLF
	proxyLine     = 107  // the longest line of version 1, with CRLF
	proxyFixed    = 16   // the part of version 2 before the addresses
	proxyBlock    = 2048 // the longest block of addresses and extensions that is taken
)

var proxySignature = []byte("\r\n\r\n\x00\r\nQUIT\n")

var errProxyHeader = errors.New("the connection does not begin with a header of the PROXY protocol that can be read")

// readProxyHeader reads one header and not a byte more. It returns the address of the
// client; the zero Addr when the connection is the proxy's own.
func readProxyHeader(r io.Reader) (netip.Addr, error) {
	var buf [proxyBlock]byte
	begin := buf[:proxyShortest]
	if _, err := io.ReadFull(r, begin); err != nil {
		return netip.Addr{}, err
	}
	switch {
	case bytes.HasPrefix(begin, proxySignature):
		return readProxyBlock(r, &buf)
	case bytes.HasPrefix(begin, []byte("PROXY ")):
		return readProxyLine(r, &buf)
	}
	return netip.Addr{}, errProxyHeader
}

// readProxyLine reads the rest of a header of version 1. Its length is only known at its
// end, so that it is read byte by byte.
func readProxyLine(r io.Reader, buf *[proxyBlock]byte) (netip.Addr, error) {
	for n := proxyShortest; n < proxyLine; n++ {
		if _, err := io.ReadFull(r, buf[n:n+1]); err != nil {
			return netip.Addr{}, err
		}
		if buf[n] == '\n' {
			return parseProxyLine(buf[:n+1])
		}
	}
	return netip.Addr{}, errProxyHeader
}

func parseProxyLine(line []byte) (netip.Addr, error) {
	text, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok {
		return netip.Addr{}, errProxyHeader
	}
	parts := bytes.Split(text, []byte{' '})
	if string(parts[1]) == "UNKNOWN" { // whatever follows it
		return netip.Addr{}, nil
	}
	if len(parts) != 6 || !isPort(parts[4]) || !isPort(parts[5]) {
		return netip.Addr{}, errProxyHeader
	}
	client, err := netip.ParseAddr(string(parts[2]))
	server, err2 := netip.ParseAddr(string(parts[3]))
	if err != nil || err2 != nil || client.Zone() != "" || server.Zone() != "" {
		return netip.Addr{}, errProxyHeader
	}
	switch kind := string(parts[1]); {
	case kind == "TCP4" && client.Is4() && server.Is4(), kind == "TCP6" && client.Is6() && server.Is6():
		return client.Unmap(), nil
	}
	return netip.Addr{}, errProxyHeader
}

// isPort reports whether text is a port, without leading zeros.
func isPort(text []byte) bool {
	n, err := strconv.ParseUint(string(text), 10, 16)
	return err == nil && strconv.FormatUint(n, 10) == string(text)
}

// readProxyBlock reads the rest of a header of version 2. Extensions are skipped.
func readProxyBlock(r io.Reader, buf *[proxyBlock]byte) (netip.Addr, error) {
	if _, err := io.ReadFull(r, buf[proxyShortest:proxyFixed]); err != nil {
		return netip.Addr{}, err
	}
	command, family := buf[12], buf[13]
	size := int(binary.BigEndian.Uint16(buf[14:]))
	if size > proxyBlock {
		return netip.Addr{}, errProxyHeader
	}
	block := buf[:size]
	if _, err := io.ReadFull(r, block); err != nil {
		return netip.Addr{}, err
	}
	switch {
	case command == 0x20: // of the proxy itself, such as a health check
		return netip.Addr{}, nil
	case command != 0x21:
	case family == 0x00: // unknown to the proxy
		return netip.Addr{}, nil
	case family == 0x11 && size >= 12: // TCP over IPv4: two addresses, two ports
		return netip.AddrFrom4([4]byte(block)), nil
	case family == 0x21 && size >= 36: // TCP over IPv6
		return netip.AddrFrom16([16]byte(block)).Unmap(), nil
	}
	return netip.Addr{}, errProxyHeader
}

// isProxy reports whether connections of a peer begin with a header.
func (s *Server) isProxy(peer netip.Addr) bool {
	return slices.ContainsFunc(s.conf.Proxies, func(p netip.Prefix) bool { return p.Contains(peer) })
}

// introduced reads the header with which a connection from a proxy begins, and reports
// whether the connection can be served.
func (c *conn) introduced() bool {
	if !c.proxied {
		return true
	}
	client, err := c.readIntroduction()
	switch {
	case err == ErrStopped || err == io.EOF: // nothing was sent, as by a check of the port
		return false
	case err != nil:
		c.srv.unintroduced.Add(1)
		c.srv.logSometimes("a connection of %s is closed: gateway.proxy_protocol: %v", c.peer, err)
		return false
	case client.IsValid() && !c.srv.moveTo(c, client):
		c.srv.turnAway(c)
		return false
	}
	c.since = time.Now()
	return true
}

// readIntroduction reads a header within the time for the head of a request. Shutdown
// ends the wait, as no request has been sent yet.
func (c *conn) readIntroduction() (netip.Addr, error) {
	c.idle.Store(true) // in the order that goIdle has, for its reason
	below := c.sock.below()
	if err := below.SetReadDeadline(time.Now().Add(c.srv.conf.ReadTimeout)); err != nil {
		return netip.Addr{}, err
	}
	if c.srv.stopping.Load() {
		return netip.Addr{}, ErrStopped
	}
	client, err := readProxyHeader(below)
	c.idle.Store(false)
	if c.srv.stopping.Load() {
		c.srv.letInterrupt()
		return netip.Addr{}, ErrStopped
	}
	if err != nil {
		return netip.Addr{}, err
	}
	return client, below.SetReadDeadline(time.Time{})
}

// moveTo counts a connection under the address of its client. It returns false when that
// has too many.
func (s *Server) moveTo(c *conn, client netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.perIP[c.peer]--; s.perIP[c.peer] <= 0 {
		delete(s.perIP, c.peer)
	}
	c.peer = client
	s.perIP[client]++
	return s.conf.MaxConnsPerIP == 0 || s.perIP[client] <= s.conf.MaxConnsPerIP
}

// logSometimes logs at most one line in ten seconds.
func (s *Server) logSometimes(format string, args ...any) {
	now := time.Now().UnixNano()
	if next := s.nextLine.Load(); now >= next && s.nextLine.CompareAndSwap(next, now+int64(10*time.Second)) {
		s.log.Printf(format, args...)
	}
}
