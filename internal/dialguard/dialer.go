package dialguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// Allowed are addresses that may be called although they are private. Addresses that are
// never called are not among them, whatever the list has.
type Allowed struct {
	networks []netip.Prefix
	hosts    map[string]bool
}

// ParseAllowed reads a list of networks (10.0.0.0/8), addresses (10.0.0.7) and host names,
// of which every address is allowed.
func ParseAllowed(list []string) (Allowed, error) {
	a := Allowed{hosts: make(map[string]bool)}
	for _, text := range list {
		network, err := netip.ParsePrefix(text)
		if ip, alone := netip.ParseAddr(text); alone == nil {
			network, err = netip.PrefixFrom(ip.Unmap().WithZone(""), ip.Unmap().BitLen()), nil
		}
		switch {
		case err == nil && network.Addr().Is4In6():
			return Allowed{}, fmt.Errorf("%q: write networks of IPv4 in their own form, such as 10.0.0.0/8", text)
		case err == nil:
			a.networks = append(a.networks, network.Masked())
		case !isName(text):
			return Allowed{}, fmt.Errorf("%q: want a network such as 10.0.0.0/8, an address, or a host name", text)
		default:
			a.hosts[nameOf(text)] = true
		}
	}
	return a, nil
}

// isName reports whether a text is a host name, and not something like an address.
func isName(text string) bool {
	text = nameOf(text)
	last := text[strings.LastIndexByte(text, '.')+1:]
	return len(text) <= 253 && last != "" && strings.Trim(last, "0123456789") != "" &&
		strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "" && !strings.HasPrefix(text, ".") && !strings.Contains(text, "..")
}

// nameOf returns the form in which names are compared.
func nameOf(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// Host reports whether the list has a name, or an address in text form.
func (a Allowed) Host(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && a.address(ip) || a.hosts[nameOf(host)]
}

// address reports whether a network of the list has an address.
func (a Allowed) address(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	for _, network := range a.networks {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}

// A Dialer connects to public addresses and to those of a list. What is checked is the
// address that is dialled: neither a name that leads elsewhere nor one whose answer changes
// gets past it. It uses no proxy.
type Dialer struct {
	Allowed  Allowed
	Setting  string        // that has the list, for errors
	Resolver *net.Resolver // nil: the system's
}

// dialTimeout bounds a connection attempt whose context has no deadline.
const dialTimeout = 30 * time.Second

// DialContext connects to host:port. The error of an address that may not be called is a
// *DeniedError; with several addresses, the first that may be called and answers is taken.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if !strings.HasPrefix(network, "tcp") {
		return nil, fmt.Errorf("dial %s: network %s is not supported", address, network)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	policy := Policy{Private: d.Allowed.Host(host)}
	dialer := net.Dialer{Timeout: dialTimeout, Resolver: d.Resolver, ControlContext: func(_ context.Context, _, dialled string, _ syscall.RawConn) error {
		return d.control(policy, address, dialled)
	}}
	conn, err := dialer.DialContext(ctx, network, address)
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		return nil, denied
	}
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, cause(err))
	}
	return conn, nil
}

// cause takes the address off an error of a dial.
func cause(err error) error {
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		return failed.Err
	}
	return err
}

func (d *Dialer) control(p Policy, wanted, dialled string) error {
	ap, err := netip.ParseAddrPort(dialled)
	if err != nil {
		return fmt.Errorf("dial %s: %s is no address", wanted, dialled)
	}
	ip := ap.Addr().Unmap().WithZone("")
	if d.Allowed.address(ip) {
		p.Private = true
	}
	if err := p.check(ip); err != nil {
		return &DeniedError{Wanted: wanted, Address: ip, Setting: d.Setting, Err: err}
	}
	return nil
}

// A DeniedError says which address a Dialer did not call.
type DeniedError struct {
	Wanted  string // host:port
	Address netip.Addr
	Setting string
	Err     error // wraps ErrNever or ErrPrivate
}

// Error implements error.
func (e *DeniedError) Error() string {
	if errors.Is(e.Err, ErrNever) {
		return fmt.Sprintf("dial %s: address %s is link-local or of a metadata service, which are never called", e.Wanted, e.Address)
	}
	what := "not public"
	switch {
	case e.Address.IsLoopback():
		what = "loopback"
	case e.Address.IsPrivate():
		what = "private"
	}
	return fmt.Sprintf("dial %s: address %s is %s; add it to %s", e.Wanted, e.Address, what, e.Setting)
}

// Unwrap returns ErrNever or ErrPrivate.
func (e *DeniedError) Unwrap() error { return e.Err }
