package rest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// SessionPrefix begins the credential of a user's session, which only a cookie shows.
const SessionPrefix = "sls_"

// Names of the cookie with a session. Browsers accept the first over TLS alone, and from
// this very host. The second is for plain HTTP on this machine.
const (
	secureCookie = "__Host-sluice"
	plainCookie  = "sluice"
)

// csrfHeader has the token that calls by cookie send when they change something.
const csrfHeader = "X-CSRF-Token"

// cookieIn returns the session in the cookie of a request; nil without one. It counts
// only in requests of our own pages: cookies are sent with those of others, too.
func cookieIn(head *fasthttp.RequestHeader) []byte {
	value := head.Cookie(secureCookie)
	if len(value) == 0 && isLoopback(head.Host()) {
		value = head.Cookie(plainCookie)
	}
	if !bytes.HasPrefix(value, []byte(SessionPrefix)) || pageOf(head) != ownPage {
		return nil
	}
	return bytes.Clone(value)
}

// page is where a request comes from.
type page int

const (
	noPage    page = iota // from a program, or from the address bar of a browser
	ownPage               // of this origin
	otherPage             // of another one
)

// pageOf returns where a request comes from. Browsers without Sec-Fetch-Site send Origin
// with everything but GET and HEAD.
func pageOf(head *fasthttp.RequestHeader) page {
	switch site := string(head.Peek("Sec-Fetch-Site")); site {
	case "same-origin":
		return ownPage
	case "none":
		return noPage
	case "":
	default:
		return otherPage
	}
	origin := head.Peek(fasthttp.HeaderOrigin)
	if len(origin) == 0 {
		if head.IsGet() || head.IsHead() {
			return ownPage
		}
		return noPage
	}
	if of, err := url.Parse(string(origin)); err == nil && of.Host != "" && strings.EqualFold(of.Host, string(head.Host())) {
		return ownPage
	}
	return otherPage
}

// FromOtherPage reports whether a page of another origin makes the call.
func FromOtherPage(ctx *fasthttp.RequestCtx) bool { return pageOf(&ctx.Request.Header) == otherPage }

// ByCookie reports whether the credential of a call is the session in its cookie.
func ByCookie(ctx *fasthttp.RequestCtx) bool {
	return len(ctx.Request.Header.Peek(fasthttp.HeaderAuthorization)) == 0 && len(cookieIn(&ctx.Request.Header)) > 0
}

// CSRFToken returns the token that calls with a session send in X-CSRF-Token when they
// change something. Other origins cannot read it.
func CSRFToken(session []byte) string {
	sum := hmac.New(sha256.New, session)
	sum.Write([]byte("X-CSRF-Token"))
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// CheckCSRF refuses calls by cookie that change something and may come from a page of
// another origin: those without the token of the session, and bodies that a form can
// send.
func CheckCSRF(ctx *fasthttp.RequestCtx) error {
	head := &ctx.Request.Header
	if head.IsGet() || head.IsHead() || !ByCookie(ctx) {
		return nil
	}
	if !hmac.Equal(head.Peek(csrfHeader), []byte(CSRFToken(cookieIn(head)))) {
		return Refuse(fasthttp.StatusForbidden, "access denied: calls with a session's cookie need its X-CSRF-Token, which GET /api/session returns")
	}
	kind, _, _ := strings.Cut(string(head.ContentType()), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	if len(ctx.Request.Body()) > 0 && kind != "application/json" && !strings.HasPrefix(kind, "application/vnd.svc.") {
		return Refuse(fasthttp.StatusUnsupportedMediaType, "The body of a call with a session's cookie must be application/json")
	}
	return nil
}

// SetSession gives the caller a session for a time. It refuses where the cookie would
// travel in the clear.
func SetSession(ctx *fasthttp.RequestCtx, session string, lasts time.Duration) error {
	cookie, err := newCookie(&ctx.Request.Header)
	if err != nil {
		return err
	}
	defer fasthttp.ReleaseCookie(cookie)
	cookie.SetValue(session)
	cookie.SetMaxAge(int(lasts / time.Second))
	ctx.Response.Header.SetCookie(cookie)
	return nil
}

// CanSetSession returns the error of SetSession.
func CanSetSession(ctx *fasthttp.RequestCtx) error {
	cookie, err := newCookie(&ctx.Request.Header)
	if err == nil {
		fasthttp.ReleaseCookie(cookie)
	}
	return err
}

// EndSession makes the caller forget the session.
func EndSession(ctx *fasthttp.RequestCtx) {
	for _, secure := range []bool{true, false} {
		cookie := sessionCookie(secure)
		cookie.SetExpire(fasthttp.CookieExpireDelete)
		ctx.Response.Header.SetCookie(cookie)
		fasthttp.ReleaseCookie(cookie)
	}
}

// newCookie returns the cookie for the connection that a request came on. Clients that
// name no origin are not browsers, and keep a secure cookie from plain HTTP themselves.
func newCookie(head *fasthttp.RequestHeader) (*fasthttp.Cookie, error) {
	origin := head.Peek(fasthttp.HeaderOrigin)
	switch plain := bytes.HasPrefix(origin, []byte("http://")); {
	case bytes.HasPrefix(origin, []byte("https://")):
		return sessionCookie(true), nil
	case isLoopback(head.Host()):
		return sessionCookie(false), nil
	case plain:
		return nil, BadRequest("Signing in needs HTTPS, or an address of this machine such as 127.0.0.1: elsewhere others could read the session on its way")
	}
	return sessionCookie(true), nil
}

func sessionCookie(secure bool) *fasthttp.Cookie {
	cookie := fasthttp.AcquireCookie()
	cookie.SetKey(plainCookie)
	if secure {
		cookie.SetKey(secureCookie)
		cookie.SetSecure(true)
	}
	cookie.SetPath("/")
	cookie.SetHTTPOnly(true)
	cookie.SetSameSite(fasthttp.CookieSameSiteStrictMode)
	return cookie
}

// isLoopback reports whether a Host header names this machine.
func isLoopback(hostPort []byte) bool {
	host := string(hostPort)
	if bare, _, err := net.SplitHostPort(host); err == nil {
		host = bare
	}
	host = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}
