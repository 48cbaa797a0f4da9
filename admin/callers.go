package admin

import (
	"net"
	"net/netip"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/internal/proxies"
)

// tellCaller puts who called in the place of the proxy that passed the call on,
// when that is one whose word counts: guesses are counted by where they come from,
// and changes are recorded with it.
func (s *Server) tellCaller(ctx *fasthttp.RequestCtx) {
	if len(s.deps.Trusted) == 0 {
		return
	}
	ctx.SetRemoteAddr(nil) // it is still that of the call before on this connection
	peer, ok := ctx.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return
	}
	client := peer.AddrPort().Addr().Unmap()
	more := proxies.Trust(client, s.deps.Trusted)
	lists := ctx.Request.Header.PeekAll(proxies.Header)
	for i := len(lists) - 1; i >= 0 && more; i-- {
		client, more = proxies.Behind(client, lists[i], s.deps.Trusted)
	}
	ctx.SetRemoteAddr(net.TCPAddrFromAddrPort(netip.AddrPortFrom(client, 0)))
}
