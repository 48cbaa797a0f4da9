package match

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// A Target is the URL of an upstream, parsed for joining requests to it. It is
// immutable.
type Target struct {
	TLS     bool   // whether the upstream is spoken to over TLS
	Host    string // as the URL has it, for the Host header
	Address string // host and port to connect to; an IPv6 address in brackets

	path  []byte // as the URL has it, escapes included; "" or beginning with a slash
	base  []byte // path without the slashes at its end
	query []byte // without the question mark
}

// CompileTarget parses an upstream's URL: scheme http or https (ws and wss mean the
// same), host, and optionally port, path and query. Errors never contain the URL, which
// may hold a password.
func CompileTarget(raw string) (*Target, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The outer error quotes the URL; the inner one has the reason.
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		return nil, fmt.Errorf("is not a URL: %w", err)
	}
	t := &Target{Host: strings.TrimSuffix(u.Host, ":")}
	var port string
	switch u.Scheme {
	case "http", "ws":
		port = "80"
	case "https", "wss":
		t.TLS, port = true, "443"
	case "":
		return nil, errors.New("must begin with http:// or https://")
	default:
		return nil, fmt.Errorf("scheme %q: use http or https", u.Scheme)
	}
	if err := checkTarget(u); err != nil {
		return nil, err
	}
	t.Address = t.Host
	if u.Port() == "" {
		t.Address += ":" + port
	}
	t.path = []byte(u.EscapedPath())
	t.base = bytes.TrimRight(t.path, "/")
	t.query = []byte(u.RawQuery)
	return t, nil
}

// CompileBase parses the base of internal calls: an optional path and query, without a
// host. The path must be one that Decode accepts.
func CompileBase(pathAndQuery string) (*Target, error) {
	t, err := CompileTarget("http://base" + pathAndQuery)
	if err != nil {
		return nil, err
	}
	if len(t.path) > 0 {
		if _, err := Decode(nil, t.path); err != nil {
			return nil, err
		}
	}
	return &Target{path: t.path, base: t.base, query: t.query}, nil
}

// checkTarget refuses parts of URLs that targets must not have.
func checkTarget(u *url.URL) error {
	switch {
	case u.Opaque != "":
		return errors.New("must have // after the scheme")
	case u.User != nil:
		return errors.New("must not hold a user or password; set an Authorization header instead")
	case u.Fragment != "":
		return errors.New("must not hold a fragment (#), which is never sent")
	case u.Hostname() == "":
		return errors.New("has no host")
	case strings.ContainsAny(u.RawQuery, " \"<>\\^`{|}"):
		return errors.New("query holds a character that must be percent-encoded")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("port %q: use 1 to 65535", p)
		}
	}
	for _, c := range []byte(u.Host) {
		if !isHostByte(c) {
			return fmt.Errorf("host must not hold %q; international names are written in their xn-- form", c)
		}
	}
	return nil
}
