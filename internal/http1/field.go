// Package http1 holds what both ends of a proxied request share of HTTP/1.1:
// header names, lists and lines, the chunked transfer coding, and the tunnel that
// two connections become after an upgrade. Nothing in it allocates per message,
// except a tunnel.
package http1

import "bytes"

// EqualFold reports whether b is the ASCII name given, in upper or lower case.
func EqualFold(b []byte, name string) bool {
	if len(b) != len(name) {
		return false
	}
	for i, c := range b {
		if d := name[i]; c != d && (c|0x20 != d|0x20 || c|0x20-'a' >= 26) {
			return false
		}
	}
	return true
}

// HasPrefix reports whether b begins with an ASCII prefix, in upper or lower case.
func HasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && EqualFold(b[:len(prefix)], prefix)
}

// SameVariable reports whether two header names become the same variable in an
// upstream that follows CGI (RFC 3875 section 4.1.18), to which a dash is an
// underscore and case means nothing.
func SameVariable(a []byte, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(b) {
		if VariableByte(a[i]) != VariableByte(b[i]) {
			return false
		}
	}
	return true
}

// VariableByte returns a byte of a header's name in lower case, and - for _: upstreams
// that take headers for variables do not tell these apart (RFC 3875, section 4.1.18).
func VariableByte(c byte) byte {
	switch {
	case c >= 'A' && c <= 'Z':
		return c | 0x20
	case c == '_':
		return '-'
	}
	return c
}

// AnySameVariable reports whether a header name is SameVariable with one of names.
func AnySameVariable(name []byte, names []string) bool {
	for _, other := range names {
		if SameVariable(name, other) {
			return true
		}
	}
	return false
}

// Trim cuts the white space that may surround a header value.
func Trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// CutElement splits the first element off a comma-separated list.
func CutElement(list []byte) (element, rest []byte) {
	element, rest, _ = bytes.Cut(list, comma)
	return Trim(element), rest
}

var comma = []byte{','}

// Lists reports whether a comma-separated list has an element, in upper or lower
// case.
func Lists(list, element []byte) bool {
	for len(list) > 0 {
		var one []byte
		if one, list = CutElement(list); bytes.EqualFold(one, element) {
			return true
		}
	}
	return false
}

// IsToken reports whether s is a token (RFC 9110 section 5.6.2), such as a header
// name or a method.
func IsToken[T []byte | string](s T) bool {
	for i := range len(s) {
		if !tokenByte[s[i]] {
			return false
		}
	}
	return len(s) > 0
}

// IsTokenByte reports whether a token may contain c.
func IsTokenByte(c byte) bool { return tokenByte[c] }

// IsHost reports whether b has only bytes of a host and port, and at least one.
func IsHost(b []byte) bool {
	for _, c := range b {
		if !hostByte[c] {
			return false
		}
	}
	return len(b) > 0
}

// IsHostByte reports whether a host with its port may contain c. The comma, which
// RFC 3986 allows in a host, is left out: it separates the elements of lists.
func IsHostByte(c byte) bool { return hostByte[c] }

// IsUpgradable reports whether every protocol in an Upgrade header is a valid name
// other than a version of HTTP or TLS.
func IsUpgradable(list []byte) bool {
	for len(list) > 0 {
		var protocol []byte
		protocol, list = CutElement(list)
		name, version, versioned := bytes.Cut(protocol, []byte{'/'})
		switch {
		case !IsToken(name) || versioned && !IsToken(version):
			return false
		case EqualFold(name, "h2c"), EqualFold(name, "h2"), EqualFold(name, "http"), EqualFold(name, "tls"):
			return false
		}
	}
	return true
}

var (
	tokenByte = byteSet("!#$%&'*+-.^_`|~" + alphanumeric) // tchar of RFC 9110 section 5.6.2
	hostByte  = byteSet("-._~%!$&'()*+;=:[]" + alphanumeric)
)

const alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func byteSet(members string) (set [256]bool) {
	for i := range len(members) {
		set[members[i]] = true
	}
	return set
}
