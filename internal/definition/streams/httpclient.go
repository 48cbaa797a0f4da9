package streams

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// httpHints are about fields of http_client and http that users of comparable engines
// know.
var httpHints = map[string]string{
	"basic_auth":             "write auth.basic, with user and password",
	"oauth":                  "write auth.bearer, or a header",
	"oauth2":                 "write auth.bearer, or a header",
	"jwt":                    "write auth.bearer, or a header",
	"proxy_url":              "calls use no proxy; remove it",
	"follow_redirects":       "redirects are not followed; remove it",
	"extract_headers":        "headers of the response are metadata already; remove it",
	"metadata":               "write headers, with templates",
	"dump_request_log_level": "remove it",
	"parallel":               "messages are processed side by side already; remove it",
	"batch_as_multipart":     "use the processor batch, which makes an array",
	"propagate_response":     "use the processors http and sync_response",
	"batching":               "use the processor batch",
	"multipart":              "write body",
	"max_in_flight":          "write max_in_flight of the stream",
	"disable_http2":          "calls are made by HTTP/1.1; remove it",
}

// request reads what both directions of http_client and the processor http share.
func (r *reader) request(f *fields, verb string, s *Stream) HTTPRequest {
	q := HTTPRequest{
		URL:              f.template("url", ""),
		Verb:             f.verb("verb", verb),
		Headers:          f.headers("headers"),
		Timeout:          f.duration("timeout", 5*time.Second, time.Millisecond, 10*time.Minute),
		Retries:          f.number("retries", 3, 0, 100),
		RetryPeriod:      f.duration("retry_period", time.Second, time.Millisecond, time.Hour),
		BackoffOn:        f.statuses("backoff_on", 429),
		DropOn:           f.statuses("drop_on"),
		SuccessfulOn:     f.statuses("successful_on"),
		MaxResponseBytes: int(f.size("max_response_bytes", int64(s.MaxMessageBytes), 1, 16<<20)),
	}
	q.MaxRetryBackoff = f.duration("max_retry_backoff", max(5*time.Minute, q.RetryPeriod), time.Millisecond, 24*time.Hour)
	q.Body = f.template(f.either("body", "payload"), "")
	switch {
	case q.URL == "":
		f.faultf("url", "is required: a URL such as https://service.example/path")
	default:
		f.faultIf("url", urlFault(string(q.URL)))
	}
	tls := f.object("tls")
	q.SkipVerify = tls.skipVerify()
	tls.unknown(tlsHints)
	auth := f.object("auth")
	if auth.get("basic") != nil {
		basic := auth.object("basic")
		q.BasicUser = basic.text(basic.either("user", "username"), "", 1024)
		q.BasicPassword = basic.secret("password")
		if q.BasicUser == "" {
			basic.faultf("user", "is required")
		}
		if strings.Contains(q.BasicUser, ":") {
			basic.faultf("user", "must not hold a colon")
		}
		basic.unknown(nil)
	}
	if q.Bearer = auth.secret("bearer"); q.Bearer != "" && auth.get("basic") != nil {
		auth.faultf("bearer", "excludes basic; choose one")
	}
	auth.unknown(nil)
	return q
}

func (f *fields) faultIf(name, message string) {
	if message != "" {
		f.faultf(name, "%s", message)
	}
}

var tlsHints = map[string]string{
	"enabled":       "the scheme of the address says whether TLS is used; remove it",
	"root_cas":      "certificates are checked against those of the gateway's system; remove it",
	"root_cas_file": "certificates are checked against those of the gateway's system; remove it",
	"client_certs":  "client certificates are not sent; remove it",
}

func (f *fields) skipVerify() bool {
	return f.yes(f.either("skip_verify", "skip_cert_verify"), false)
}

// urlFault returns what is wrong with the URL of calls, which it never repeats, or "".
func urlFault(text string) string {
	fixed := text // up to the first expression
	if before, _, ok := strings.Cut(text, "${!"); ok {
		fixed = before
	}
	rest, ok := strings.CutPrefix(fixed, "http://")
	if !ok {
		rest, ok = strings.CutPrefix(fixed, "https://")
	}
	switch {
	case fixed == "" && text != "":
		return "" // the whole of it depends on the message
	case !ok:
		return "must begin with http:// or https://"
	case hasControl(fixed) || strings.Contains(fixed, " "):
		return "must not hold spaces or control characters"
	case strings.Contains(fixed, "#"):
		return "must not hold a fragment (#), which is never sent"
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 && fixed != text {
		return "" // the host depends on the message
	}
	if end < 0 {
		end = len(rest)
	}
	if strings.Contains(rest[:end], "@") {
		return "must not hold a user or password; write auth.basic"
	}
	return hostFault(rest[:end])
}

// hostFault returns what is wrong with host or host:port, or "".
func hostFault(text string) string {
	u, err := url.Parse("http://" + text)
	if err != nil || u.Host != text || u.Hostname() == "" || !isHost(u.Hostname()) {
		return "must name a host, as in https://service.example; international names are written in their xn-- form"
	}
	if strings.HasSuffix(text, ":") || u.Port() != "" && !isPort(u.Port()) {
		return "must have a port from 1 to 65535, or none"
	}
	return ""
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// isHost reports whether a text is a name or an address, without brackets.
func isHost(text string) bool {
	if strings.Contains(text, ":") {
		address, err := netip.ParseAddr(text)
		return err == nil && address.Zone() == ""
	}
	return len(text) <= 253 && strings.Trim(text, ".") != "" && strings.Trim(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz0123456789.-_") == ""
}

// isOrigin reports whether a text is an origin of a page: scheme, host, and port.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Scheme+"://"+u.Host == text && hostFault(u.Host) == ""
}

func isSubprotocol(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") == ""
}

func (r *reader) checkPortalURL(f *fields, text string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Opaque != "" || u.Host == "":
		f.faultf("portal_url", "must be a URL such as https://portal.example.org/events")
	case u.User != nil:
		f.faultf("portal_url", "must not hold a user or password: messages are signed with secret")
	case u.Fragment != "" || strings.HasSuffix(text, "#"):
		f.faultf("portal_url", "must not hold a fragment (#), which is never sent")
	case hostFault(u.Host) != "":
		f.faultf("portal_url", "%s", hostFault(u.Host))
	case u.Scheme == "http" && r.options.PlainHTTP != nil && !r.options.PlainHTTP(u.Hostname()):
		f.faultf("portal_url", "must begin with https://, unless its host is in streaming.allow_addresses of the gateway")
	}
}

func (r *reader) httpPoll(f *fields, s *Stream) *HTTPPoll {
	p := &HTTPPoll{HTTPRequest: r.request(f, "GET", s), DropEmptyBodies: f.yes("drop_empty_bodies", true)}
	p.Period = f.pause("rate_limit", 5*time.Second, `the time between two polls, such as "5s"`)
	if p.Period < 100*time.Millisecond {
		f.faultf("rate_limit", "must be at least 100ms")
	}
	stream := f.object("stream")
	p.Stream, p.Reconnect = stream.yes("enabled", false), stream.yes("reconnect", true)
	stream.unknown(map[string]string{"scanner": "a line or an event is a message; remove it", "codec": "a line or an event is a message; remove it"})
	f.unknown(httpHints)
	return p
}

func (r *reader) httpSend(f *fields, s *Stream) *HTTPSend {
	send := &HTTPSend{HTTPRequest: r.request(f, "POST", s), Interval: f.pause("rate_limit", 0, `the least time between two messages, such as "100ms"`)}
	f.unknown(httpHints)
	return send
}

// pause reads a duration that users of comparable engines know as the name of a resource.
func (f *fields) pause(name string, def time.Duration, what string) time.Duration {
	n := f.get(name)
	if n == nil {
		return def
	}
	d, err := time.ParseDuration(n.text)
	if n.kind != '"' || err != nil || d <= 0 || d > 24*time.Hour {
		f.faultf(name, "want a duration: %s; it is not the name of a resource", what)
		return def
	}
	return d
}

// joinPort writes host:port, with a port of its own in place of none.
func joinPort(host, port, def string) string {
	if port == "" {
		port = def
	}
	return net.JoinHostPort(host, port)
}
