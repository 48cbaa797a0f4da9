// Package field reads header fields: names whatever their case, lists, and what
// Connection lines name.
package field

import "bytes"

// EqualFold compares b with a lower-case ASCII name.
func EqualFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i := range len(b) {
		c := b[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// EqualNames compares two names of one length, as upstreams do that make variables
// of headers: a dash is an underscore to them.
func EqualNames(a []byte, b string) bool {
	for i := range len(b) {
		if folded(a[i]) != folded(b[i]) {
			return false
		}
	}
	return true
}

func folded(c byte) byte {
	switch {
	case c >= 'A' && c <= 'Z':
		return c | 0x20
	case c == '_':
		return '-'
	}
	return c
}

// HasPrefix tells whether b begins with a lower-case ASCII prefix.
func HasPrefix(b []byte, lower string) bool {
	return len(b) >= len(lower) && EqualFold(b[:len(lower)], lower)
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

// Connection gathers the values of a message's Connection lines, which
// name further lines that are for one connection only. They alias the message.
type Connection struct {
	values [4][]byte
	n      int
	names  bool // something besides close and keep-alive is named

	Close   bool // the message is the connection's last
	TooMany bool // there are more lines than anybody honest sends
}

// Add takes in the value of one line.
func (l *Connection) Add(value []byte) {
	if l.n == len(l.values) {
		l.TooMany = true
		return
	}
	l.values[l.n] = value
	l.n++
	for len(value) > 0 {
		var name []byte
		name, value = CutElement(value)
		switch {
		case EqualFold(name, "close"):
			l.Close = true
		case len(name) > 0 && !EqualFold(name, "keep-alive"):
			l.names = true
		}
	}
}

// Holds tells whether a line is named.
func (l *Connection) Holds(name []byte) bool {
	for _, list := range l.values[:l.n] {
		if Lists(list, name) {
			return true
		}
	}
	return false
}

// Strip removes the named lines from lines, in place. Each line ends with CRLF.
func (l *Connection) Strip(lines []byte) []byte {
	if !l.names {
		return lines
	}
	kept := lines[:0]
	for len(lines) > 0 {
		end := bytes.IndexByte(lines, '\n') + 1
		if end == 0 {
			end = len(lines)
		}
		line := lines[:end]
		lines = lines[end:]
		if colon := bytes.IndexByte(line, ':'); colon < 0 || !l.Holds(line[:colon]) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// Lists tells whether a comma-separated list has an element, in whatever case.
func Lists(list, element []byte) bool {
	for len(list) > 0 {
		var one []byte
		if one, list = CutElement(list); bytes.EqualFold(one, element) {
			return true
		}
	}
	return false
}

// IsToken tells whether b is RFC 9110 section 5.6.2's token.
func IsToken(b []byte) bool {
	for _, c := range b {
		if !tokenByte[c] {
			return false
		}
	}
	return len(b) > 0
}

// IsTokenByte tells whether a token may hold c.
func IsTokenByte(c byte) bool { return tokenByte[c] }

// IsHost tells whether b is written as a host and port are.
func IsHost(b []byte) bool {
	for _, c := range b {
		if !hostByte[c] {
			return false
		}
	}
	return len(b) > 0
}

// tokenByte is RFC 9110 section 5.6.2's tchar, hostByte what a host and port
// are written with.
var (
	tokenByte = byteSet("!#$%&'*+-.^_`|~" + alphanumeric)
	hostByte  = byteSet("-._~%!$&'()*+;=:[]" + alphanumeric)
)

const alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func byteSet(members string) (set [256]bool) {
	for i := range len(members) {
		set[members[i]] = true
	}
	return set
}
