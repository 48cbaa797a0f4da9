// Package forwardedfor finds the address of the client behind trusted proxies.
package forwardedfor

import (
	"bytes"
	"net/netip"
	"unsafe"
)

// Header is the header that lists the client and the proxies after it.
const Header = "X-Forwarded-For"

// Trust reports whether an address is that of a trusted proxy.
func Trust(addr netip.Addr, trusted []netip.Prefix) bool {
	for _, p := range trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// Behind goes from a trusted address back over one field of X-Forwarded-For, the
// last first. It returns the first address that is not trusted, or the farthest of
// the field, and more: whether the field before this one says where that came from.
// An element that is not an address ends the search, as no trusted proxy vouches for
// the elements before it. It does not allocate and retains nothing of the list.
func Behind(client netip.Addr, list []byte, trusted []netip.Prefix) (farther netip.Addr, more bool) {
	for list != nil {
		var hop []byte
		list, hop = cutLast(list)
		addr, ok := parse(hop)
		if !ok {
			return client, false
		}
		if client = addr; !Trust(client, trusted) {
			return client, false
		}
	}
	return client, true
}

// cutLast splits off the last element of a list; before is nil when it was the
// only one.
func cutLast(list []byte) (before, element []byte) {
	const blanks = " \t"
	i := bytes.LastIndexByte(list, ',')
	if i < 0 {
		return nil, bytes.Trim(list, blanks)
	}
	return list[:i:i], bytes.Trim(list[i+1:], blanks)
}

// parse reads an address as proxies write it: bare, in brackets, or with a port.
func parse(hop []byte) (netip.Addr, bool) {
	switch colon := bytes.IndexByte(hop, ':'); {
	case len(hop) > 0 && hop[0] == '[':
		end := bytes.IndexByte(hop, ']')
		if end < 0 || end+1 < len(hop) && (hop[end+1] != ':' || !isDigits(hop[end+2:])) {
			return netip.Addr{}, false
		}
		hop = hop[1:end]
	case colon > 0 && bytes.IndexByte(hop[colon+1:], ':') < 0: // one colon: IPv4 with a port
		if !isDigits(hop[colon+1:]) {
			return netip.Addr{}, false
		}
		hop = hop[:colon]
	}
	if len(hop) == 0 || len(hop) > len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255") || bytes.IndexByte(hop, '%') >= 0 {
		return netip.Addr{}, false
	}
	// ParseAddr keeps no part of the string but the zone, which was refused, and
	// the error, which is dropped here: nothing outlives hop.
	addr, err := netip.ParseAddr(unsafe.String(&hop[0], len(hop)))
	return addr.Unmap(), err == nil
}

func isDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}
