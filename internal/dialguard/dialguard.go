// Package dialguard keeps calls to configured addresses (upstreams, webhooks) away
// from addresses that only this machine or its network should reach.
package dialguard

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// ErrNever says that an address is never called: it is link-local, or a service by
// which cloud providers give credentials to any process on the machine.
var ErrNever = errors.New("link-local and metadata addresses are never called")

// ErrPrivate says that an address is not public, and only public ones may be
// called.
var ErrPrivate = errors.New("private and loopback addresses are not called")

// never lists the networks that are never called.
var never = [...]netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fd00:ec2::254/128"),
	netip.MustParsePrefix("fd20:ce::254/128"),
	netip.MustParsePrefix("100.100.100.200/32"),
	netip.MustParsePrefix("168.63.129.16/32"),
}

// private lists the networks that are not public (RFC 6890) and that net/netip does
// not recognise as such.
var private = [...]netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("fec0::/10"),
	netip.MustParsePrefix("2001::/32"),      // Teredo: leads to an address of IPv4 behind a relay (RFC 4380)
	netip.MustParsePrefix("64:ff9b:1::/48"), // NAT64 of one network (RFC 8215)
}

// A Policy says which addresses may be called. The zero Policy permits public
// ones alone.
type Policy struct {
	Private bool // private networks and loopback may be called as well
}

// Check refuses a host:port whose host is an address that the policy does not
// permit, with ErrNever or ErrPrivate. A name passes: its addresses are checked
// by Control once they are known.
func (p Policy) Check(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil
	}
	return p.check(ap.Addr().Unmap().WithZone(""))
}

func (p Policy) check(ip netip.Addr) error {
	for _, network := range never {
		if network.Contains(ip) {
			return fmt.Errorf("host %s: %w", ip, ErrNever)
		}
	}
	// Routers carry addresses of IPv4 inside others; what they lead to counts.
	if inner, ok := embedded(ip); ok {
		if err := p.check(inner); err != nil {
			return err
		}
	}
	if !p.Private && !isPublic(ip) {
		return fmt.Errorf("host %s: %w", ip, ErrPrivate)
	}
	return nil
}

// Control is for net.Dialer.ControlContext: it runs for each resolved address that is
// about to be dialled, so that a second DNS answer cannot bypass the check.
func (p Policy) Control(_ context.Context, _, address string, _ syscall.RawConn) error {
	return p.Check(address)
}

func isPublic(ip netip.Addr) bool {
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false // loopback, unspecified, multicast, link-local, private
	}
	for _, network := range private {
		if network.Contains(ip) {
			return false
		}
	}
	return true
}

// The prefixes behind which an address of IPv4 stands: at the end with NAT64
// (RFC 6052), translation (RFC 2765) and the oldest form (RFC 4291, 2.5.5.1), in
// the middle with 6to4 (RFC 3056).
var (
	atEnd = [...]netip.Prefix{
		netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("::ffff:0:0:0/96"), netip.MustParsePrefix("::/96"),
	}
	sixTo = netip.MustParsePrefix("2002::/16")
)

// embedded returns the address of IPv4 that one of IPv6 leads to.
func embedded(ip netip.Addr) (netip.Addr, bool) {
	if ip.IsLoopback() || ip.IsUnspecified() {
		return netip.Addr{}, false // in the oldest form's range, and addresses of their own
	}
	raw := ip.As16()
	for _, prefix := range atEnd {
		if prefix.Contains(ip) {
			return netip.AddrFrom4([4]byte(raw[12:16])), true
		}
	}
	if sixTo.Contains(ip) {
		return netip.AddrFrom4([4]byte(raw[2:6])), true
	}
	return netip.Addr{}, false
}
