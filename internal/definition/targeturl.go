package definition

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// isHost reports whether host is a name, an IPv4 address, or an IPv6 address in
// brackets; without a port.
func isHost(host string) bool {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		address, err := netip.ParseAddr(inner)
		return ok && err == nil && address.Is6() && address.Zone() == ""
	}
	for _, c := range []byte(host) {
		if !isAlnum(c) && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return len(host) <= 253 && strings.Trim(host, ".") != ""
}

// checkTarget returns what is wrong with the URL of a target, which is an upstream or
// another API, or "". It never repeats the URL, which may hold a password.
func checkTarget(target string) string {
	if IsInternal(target) {
		return CheckInternal(target)
	}
	if target == "" {
		return "is required: an address such as https://upstream.example:8443/base"
	}
	return checkURL(target)
}

// checkURL is checkTarget for an upstream only.
func checkURL(target string) string {
	u, err := url.Parse(target)
	switch {
	case IsInternal(target):
		return "must begin with http:// or https://: another API (svc://) is named in proxy.target_url, override_target or rewrite_to"
	case err != nil:
		return "must be a URL such as https://upstream.example:8443/base"
	case u.Scheme != "http" && u.Scheme != "https":
		return "must begin with http:// or https://"
	case u.Opaque != "" || !isHost(strings.TrimSuffix(strings.TrimSuffix(u.Host, u.Port()), ":")):
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
