package admin

import (
	"net"
	"net/netip"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/internal/forwardedfor"
)

// setCaller replaces the address of a trusted proxy by that of the client that it names
// in X-Forwarded-For. Throttling and the audit log use the address.
func (s *Server) setCaller(ctx *fasthttp.RequestCtx) {
	if len(s.deps.Trusted) == 0 {
		return
	}
	ctx.SetRemoteAddr(nil) // set by the previous call on this connection
	peer, ok := ctx.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return
	}
	client := peer.AddrPort().Addr().Unmap()
	more := forwardedfor.Trust(client, s.deps.Trusted)
	lists := ctx.Request.Header.PeekAll(forwardedfor.Header)
	for i := len(lists) - 1; i >= 0 && more; i-- {
		client, more = forwardedfor.Behind(client, lists[i], s.deps.Trusted)
	}
	ctx.SetRemoteAddr(net.TCPAddrFromAddrPort(netip.AddrPortFrom(client, 0)))
}
