package upstream

import (
	"net/netip"

	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/proxies"
)

// ClientAddress returns who called: the peer, or when that is one of the
// trusted proxies the last address in X-Forwarded-For that is not. An entry
// that is no address ends the search, as nobody who is trusted vouches for what
// stands before it. It does not allocate.
func ClientAddress(call *wire.Call, trusted []netip.Prefix) netip.Addr {
	client := call.Peer.Unmap()
	more := proxies.Trust(client, trusted)
	for i := len(call.Fields) - 1; i >= 0 && more; i-- {
		if call.Fields[i].Name == wire.NameXForwardedFor {
			client, more = proxies.Behind(client, call.ValueOf(&call.Fields[i]), trusted)
		}
	}
	return client
}
