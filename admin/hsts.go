package admin

import (
	"crypto/tls"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/internal/forwardedfor"
	"github.com/sluicegate/sluice/internal/http1"
)

// hstsValue returns the value of Strict-Transport-Security, "" for no time.
func hstsValue(maxAge time.Duration) string {
	if maxAge <= 0 {
		return ""
	}
	return "max-age=" + strconv.FormatInt(int64(maxAge/time.Second), 10)
}

// setHSTS has browsers use HTTPS alone for the host of a request that came by HTTPS. value
// is that of the header; "": it is not sent.
func (s *Server) setHSTS(ctx *fasthttp.RequestCtx, value string) {
	if value != "" && s.isHTTPS(ctx) && mayRequireHTTPS(string(ctx.Host())) {
		ctx.Response.Header.Set(fasthttp.HeaderStrictTransportSecurity, value)
	}
}

// isHTTPS reports whether the client's connection has TLS, that to this server or, as a
// trusted proxy says, that to the proxy.
func (s *Server) isHTTPS(ctx *fasthttp.RequestCtx) bool {
	conn := ctx.Conn()
	if l, ok := conn.(*lingeringConn); ok {
		conn = l.Conn
	}
	if _, secure := conn.(interface{ ConnectionState() tls.ConnectionState }); secure {
		return true
	}
	peer, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok || !forwardedfor.Trust(peer.AddrPort().Addr().Unmap(), s.deps.Trusted) {
		return false
	}
	first, _ := http1.CutElement(ctx.Request.Header.Peek(fasthttp.HeaderXForwardedProto))
	return http1.EqualFold(first, "https")
}

// mayRequireHTTPS reports whether a host is a name that browsers may keep to HTTPS: not
// localhost, which other programs of a developer serve by HTTP, nor an address.
func mayRequireHTTPS(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err != nil && host != "localhost" && !strings.HasSuffix(host, ".localhost")
}
