package upstream

import (
	"bytes"
	"net/netip"
	"unsafe"

	"github.com/sluicegate/sluice/gateway/upstream/field"
	"github.com/sluicegate/sluice/gateway/wire"
)

// ClientAddress returns who called: the peer, or when that is one of the
// trusted proxies the last address in X-Forwarded-For that is not. An entry
// that is no address ends the search, as nobody who is trusted vouches for what
// stands before it. It does not allocate.
func ClientAddress(call *wire.Call, trusted []netip.Prefix) netip.Addr {
	client := call.Peer.Unmap()
	if !isTrusted(client, trusted) {
		return client
	}
	for i := len(call.Fields) - 1; i >= 0; i-- {
		if call.Fields[i].Name != wire.NameXForwardedFor {
			continue
		}
		for list := call.ValueOf(&call.Fields[i]); list != nil; {
			var hop []byte
			list, hop = cutLastElement(list)
			addr, ok := parseHop(hop)
			if !ok {
				return client
			}
			if client = addr; !isTrusted(client, trusted) {
				return client
			}
		}
	}
	return client
}

func isTrusted(addr netip.Addr, trusted []netip.Prefix) bool {
	for _, p := range trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// cutLastElement splits off the last element of a list; before is nil when it
// was the only one.
func cutLastElement(list []byte) (before, element []byte) {
	i := bytes.LastIndexByte(list, ',')
	if i < 0 {
		return nil, field.Trim(list)
	}
	return list[:i:i], field.Trim(list[i+1:])
}

// parseHop reads an address as proxies write it: bare, in brackets, or with a
// port.
func parseHop(hop []byte) (netip.Addr, bool) {
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
