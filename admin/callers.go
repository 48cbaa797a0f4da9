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
		s.warnOfProxy(ctx)
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

// warnOfProxy warns once, when calls come through a proxy that is not trusted.
func (s *Server) warnOfProxy(ctx *fasthttp.RequestCtx) {
	if s.warnedOfProxy.Load() || len(ctx.Request.Header.Peek(forwardedfor.Header)) == 0 || s.warnedOfProxy.Swap(true) {
		return
	}
	s.log.Warn("a call came with X-Forwarded-For, which is ignored: if a proxy sent it, all callers share its address in admin.login_rate and in the audit log; name its network in admin.trusted_proxies",
		"peer", ctx.RemoteIP().String())
}
