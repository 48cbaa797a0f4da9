package upstream

import "bytes"

// equalFold compares b with a lower-case ASCII name.
func equalFold(b []byte, lower string) bool {
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

// hasPrefixFold tells whether b begins with a lower-case ASCII prefix.
func hasPrefixFold(b []byte, lower string) bool {
	return len(b) >= len(lower) && equalFold(b[:len(lower)], lower)
}

// trim cuts the white space that may surround a header value.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// cutElement splits the first element off a comma-separated list.
func cutElement(list []byte) (element, rest []byte) {
	element, rest, _ = bytes.Cut(list, comma)
	return trim(element), rest
}

var comma = []byte{','}

// connectionLists gathers the values of a message's Connection lines, which
// name further lines that are for one connection only. They alias the message.
type connectionLists struct {
	values [4][]byte
	n      int
	close  bool
	names  bool // something besides close and keep-alive is named

	tooMany bool // there are more lines than anybody honest sends
}

// add takes in the value of one line.
func (l *connectionLists) add(value []byte) {
	if l.n == len(l.values) {
		l.tooMany = true
		return
	}
	l.values[l.n] = value
	l.n++
	for len(value) > 0 {
		var name []byte
		name, value = cutElement(value)
		switch {
		case equalFold(name, "close"):
			l.close = true
		case len(name) > 0 && !equalFold(name, "keep-alive"):
			l.names = true
		}
	}
}

// holds tells whether a line is named.
func (l *connectionLists) holds(name []byte) bool {
	for _, list := range l.values[:l.n] {
		for len(list) > 0 {
			var named []byte
			named, list = cutElement(list)
			if bytes.EqualFold(named, name) {
				return true
			}
		}
	}
	return false
}

// strip removes the named lines from lines, in place. Each line ends with CRLF.
func (l *connectionLists) strip(lines []byte) []byte {
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
		if colon := bytes.IndexByte(line, ':'); colon < 0 || !l.holds(line[:colon]) {
			kept = append(kept, line...)
		}
	}
	return kept
}

func isToken(b []byte) bool {
	for _, c := range b {
		if !tokenByte[c] {
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
