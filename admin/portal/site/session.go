package site

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"
)

// cookieName returns the name of the session's cookie. Browsers accept the prefix on
// secure connections only, and with it no other host can have set the cookie.
func (s *Site) cookieName() string { return s.prefixed("sluice-portal") }

// visitorName returns the name of the cookie that forms before sign-in are bound to.
func (s *Site) visitorName() string { return s.prefixed("sluice-portal-form") }

func (s *Site) prefixed(name string) string {
	if s.secure {
		return "__Host-" + name
	}
	return name
}

// setCookie sets a cookie of the site. Lax: links in letters have to open signed in.
func (v *visit) setCookie(name, value string, seconds int) {
	c := fasthttp.AcquireCookie()
	defer fasthttp.ReleaseCookie(c)
	c.SetKey(name)
	c.SetValue(value)
	c.SetPath("/")
	c.SetHTTPOnly(true)
	c.SetSecure(v.site.secure)
	c.SetSameSite(fasthttp.CookieSameSiteLaxMode)
	if seconds != 0 {
		c.SetMaxAge(seconds)
	}
	if seconds < 0 {
		c.SetExpire(fasthttp.CookieExpireDelete)
	}
	v.http.Response.Header.SetCookie(c)
}

func (v *visit) keepSession(credential string) {
	v.session = credential
	v.setCookie(v.site.cookieName(), credential, 0) // the server ends sessions
}

func (v *visit) forgetSession() { v.setCookie(v.site.cookieName(), "", -1) }

// random returns 128 random bits as text.
func random() string {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // documented never to fail
	return base64.RawURLEncoding.EncodeToString(bits[:])
}

// formToken returns the token of a form: a MAC keyed with a secret that only the visitor's
// browser has, the session's credential or before sign-in the visitor's cookie. It is
// masked, so that it differs on each page: the length of compressed pages would tell a
// constant one bit by bit.
func (v *visit) formToken() string {
	if v.session != "" {
		return masked(tokenFor(v.session))
	}
	if v.visitor == "" {
		v.visitor = string(v.http.Request.Header.Cookie(v.site.visitorName()))
		if len(v.visitor) != len(random()) {
			v.visitor = random()
			v.setCookie(v.site.visitorName(), v.visitor, 0)
		}
	}
	return masked(tokenFor(v.visitor))
}

func tokenFor(secret string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("form of the developer portal"))
	return mac.Sum(nil)
}

// masked returns a token behind a random pad, combined with it.
func masked(token []byte) string {
	both := make([]byte, 2*len(token))
	_, _ = rand.Read(both[:len(token)]) // documented never to fail
	subtle.XORBytes(both[len(token):], both[:len(token)], token)
	return base64.RawURLEncoding.EncodeToString(both)
}

// isToken reports whether a text is a token, masked.
func isToken(text string, token []byte) bool {
	both, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(both) != 2*len(token) {
		return false
	}
	plain := make([]byte, len(token))
	subtle.XORBytes(plain, both[:len(token)], both[len(token):])
	return hmac.Equal(plain, token)
}

// Bounds of the body of a form, in bytes: of one with a call of an API, and of any other.
const (
	maxCall = 2 << 20
	maxForm = 64 << 10
)

// roomFor returns the bound of the forms that a route takes.
func roomFor(r *route) int {
	if r.path == "/try" || strings.HasSuffix(r.path, "/play") {
		return maxCall
	}
	return maxForm
}

// checkForm refuses forms that a page of another site may have sent.
func (v *visit) checkForm(r *route) error {
	kind, _, _ := strings.Cut(string(v.http.Request.Header.ContentType()), ";")
	switch {
	case len(v.http.Request.Body()) > roomFor(r):
		return &fault{Status: fasthttp.StatusRequestEntityTooLarge, Message: fmt.Sprintf("The form is larger than %d KiB.", roomFor(r)>>10)}
	case !v.fromHere():
		return &fault{Status: fasthttp.StatusForbidden, Message: "The form was sent by a page of another site. Please open the page here and try again."}
	case r.path == "/theme": // changes nothing but the colours
		return nil
	case !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded"):
		return &fault{Status: fasthttp.StatusUnsupportedMediaType, Message: "The form was sent in another format than application/x-www-form-urlencoded."}
	}
	secret := v.session
	if secret == "" {
		secret = string(v.http.Request.Header.Cookie(v.site.visitorName()))
	}
	if secret == "" || !isToken(v.value("token"), tokenFor(secret)) {
		return &fault{Status: fasthttp.StatusForbidden, Message: "The form is no longer valid: you signed in or out since it was opened, or the browser refuses cookies. Please open the page again."}
	}
	return nil
}

// fromHere reports whether the browser says that a page of this site made the request.
// Programs that say nothing pass: the token of the form decides.
func (v *visit) fromHere() bool {
	if site := string(v.http.Request.Header.Peek("Sec-Fetch-Site")); site != "" {
		return site == "same-origin"
	}
	origin := string(v.http.Request.Header.Peek(fasthttp.HeaderOrigin))
	if origin == "" {
		return true
	}
	from, err := url.Parse(origin)
	if err != nil || from.Host == "" {
		return false
	}
	public, err := url.Parse(v.site.deps.PublicURL)
	return strings.EqualFold(from.Host, string(v.http.Host())) || err == nil && strings.EqualFold(from.Host, public.Host)
}

// themeCookie holds the colours that a visitor chose.
const themeCookie = "sluice-portal-theme"

// chooseTheme keeps the colours that the visitor prefers.
func chooseTheme(v *visit) error {
	to := v.value("to")
	if to != "light" && to != "dark" {
		to = ""
	}
	seconds := 365 * 24 * 3600
	if to == "" {
		seconds = -1
	}
	v.setCookie(themeCookie, to, seconds)
	return v.redirect(nextPage(v.value("next")))
}

// theme returns the colours that the visitor chose, "" for those of the system.
func (v *visit) theme() string {
	switch theme := string(v.http.Request.Header.Cookie(themeCookie)); theme {
	case "light", "dark":
		return theme
	}
	return ""
}
