package upstream

import (
	"net/netip"

	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/forwardedfor"
)

// ClientAddress returns the address of the client: the peer, or if that is a trusted
// proxy, the last address in X-Forwarded-For that is not one. An entry that is no
// address ends the search, as no trusted proxy vouches for the entries before it. It
// does not allocate.
func ClientAddress(call *wire.Call, trusted []netip.Prefix) netip.Addr {
	client := call.Peer.Unmap()
	more := forwardedfor.Trust(client, trusted)
	for i := len(call.Fields) - 1; i >= 0 && more; i-- {
		if call.Fields[i].Name == wire.NameXForwardedFor {
			client, more = forwardedfor.Behind(client, call.ValueOf(&call.Fields[i]), trusted)
		}
	}
	return client
}
