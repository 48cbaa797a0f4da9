package upstreams

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/handover"
)

// IsHost tells whether host is a name, an IPv4 address, or an IPv6 address in
// brackets; without a port.
func IsHost(host string) bool {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		address, err := netip.ParseAddr(inner)
		return ok && err == nil && address.Is6() && address.Zone() == ""
	}
	for _, c := range []byte(host) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		if !letter && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return len(host) <= 253 && strings.Trim(host, ".") != ""
}

// CheckTarget says what is wrong with the URL of a target, which is an upstream or
// another API; "" is nothing. It never repeats the URL: that may hold a password.
func CheckTarget(target string) string {
	if handover.Is(target) {
		return handover.Check(target)
	}
	if target == "" {
		return "is required: an address such as https://upstream.example:8443/base"
	}
	return CheckURL(target)
}

// CheckURL is CheckTarget where an upstream is meant, and no other API will do.
func CheckURL(target string) string {
	u, err := url.Parse(target)
	switch {
	case handover.Is(target):
		return "must begin with http:// or https://: another API (svc://) is named in proxy.target_url, override_target or rewrite_to"
	case err != nil:
		return "must be a URL such as https://upstream.example:8443/base"
	case u.Scheme != "http" && u.Scheme != "https":
		return "must begin with http:// or https://"
	case u.Opaque != "" || !IsHost(strings.TrimSuffix(strings.TrimSuffix(u.Host, u.Port()), ":")):
		return "must name a host, as in https://upstream.example; international names are written in their xn-- form"
	case u.User != nil:
		return "must not hold a user or password"
	case u.Fragment != "" || strings.HasSuffix(target, "#"):
		return "must not hold a fragment (#), which is never sent"
	case strings.ContainsAny(u.RawQuery, " \"<>\\^`{|}"):
		return "holds a character in its query that must be percent-encoded"
	case u.Port() != "" && !isPort(u.Port()):
		return "must have a port from 1 to 65535, or none"
	}
	return ""
}

func isPort(port string) bool {
	n, err := strconv.Atoi(port)
	return err == nil && 1 <= n && n <= 65535
}
