package match

import (
	"bytes"
	"errors"
)

// The reasons for which [Decode] refuses a path. Each is the client's fault.
var (
	ErrNotAbsolute = errors.New("path does not begin with a slash")
	ErrByte        = errors.New("path holds a byte that must be percent-encoded")
	ErrEscape      = errors.New("path holds an invalid percent escape")
	ErrNUL         = errors.New("path holds an encoded NUL")
	ErrDotSegment  = errors.New("path holds a dot segment")
)

// What Decode does with a byte of the original path.
const (
	plain   = iota // copied
	dot            // copied; the path needs a look for dot segments
	percent        // begins an escape
	refused        // has no place in a path
)

var classes = classify()

func classify() (table [256]uint8) {
	for c := range 0x21 {
		table[c] = refused
	}
	for _, c := range []byte{0x7f, '\\', '?', '#'} {
		table[c] = refused
	}
	table['.'] = dot
	table['%'] = percent
	return table
}

// Decode appends to dst the form of a request path that is compared with listen
// paths and patterns, and returns the extended slice. The path is the one the
// client sent, without its query; it begins with a slash. On an error dst comes
// back as it was.
//
// Escapes are decoded, but for those whose octet would then read as something
// else: slash, backslash, percent sign and control characters stay encoded, in
// upper case ("%2F"). So an encoded slash never separates segments, a decoded
// path shows nothing that could break a log line, and two paths decode alike
// only when they differ in escapes that RFC 3986 calls equivalent. Empty
// segments stay.
//
// Refused are paths on which two readers could disagree: an octet that RFC 3986
// keeps out of paths and that parsers treat differently (controls, space,
// backslash, "?" and "#"), a broken escape, an encoded NUL, and a dot segment.
// A dot segment is "." or ".." between separators, where encoded dots count as
// dots, an encoded slash or backslash counts as a separator, and what follows a
// semicolon is left out, because some upstreams read each of these that way.
func Decode(dst, original []byte) ([]byte, error) {
	if len(original) == 0 || original[0] != '/' {
		return dst, ErrNotAbsolute
	}
	for i, c := range original {
		if classes[c] != plain {
			return decodeFrom(dst, original, i)
		}
	}
	return append(dst, original...), nil
}

// decodeFrom is Decode for a path whose bytes before first are all plain.
func decodeFrom(dst, original []byte, first int) ([]byte, error) {
	start := len(dst)
	out := append(dst, original[:first]...)
	dots := false
	for i := first; i < len(original); i++ {
		c := original[i]
		switch classes[c] {
		case refused:
			return dst, ErrByte
		case percent:
			octet, ok := unescape(original[i:])
			if !ok {
				return dst, ErrEscape
			}
			if octet == 0 {
				return dst, ErrNUL
			}
			i += 2
			dots = dots || octet == '.'
			out = appendOctet(out, octet)
		default:
			dots = dots || c == '.'
			out = append(out, c)
		}
	}
	if dots && hasDotSegment(out[start:]) {
		return dst, ErrDotSegment
	}
	return out, nil
}

const upperHex = "0123456789ABCDEF"

// appendOctet appends a decoded octet, encoding it again where its plain form
// would mean something else.
func appendOctet(dst []byte, octet byte) []byte {
	if octet == '/' || octet == '\\' || octet == '%' || octet < 0x20 || octet == 0x7f {
		return append(dst, '%', upperHex[octet>>4], upperHex[octet&15])
	}
	return append(dst, octet)
}

// unescape reads the escape that p begins with.
func unescape(p []byte) (octet byte, ok bool) {
	if len(p) < 3 {
		return 0, false
	}
	high, okHigh := unhex(p[1])
	low, okLow := unhex(p[2])
	return high<<4 | low, okHigh && okLow
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// hasDotSegment reports whether a decoded path holds a dot segment.
func hasDotSegment(decoded []byte) bool {
	for len(decoded) > 0 {
		end, width := separator(decoded)
		name, _, _ := bytes.Cut(decoded[:end], []byte{';'})
		if string(name) == "." || string(name) == ".." {
			return true
		}
		decoded = decoded[end+width:]
	}
	return false
}

// separator finds the first separator in a decoded path, plain or encoded, and
// its width; without one, the end.
func separator(decoded []byte) (at, width int) {
	for i, c := range decoded {
		switch {
		case c == '/':
			return i, 1
		case c == '%' && (string(decoded[i+1:i+3]) == "2F" || string(decoded[i+1:i+3]) == "5C"):
			return i, 3
		}
	}
	return len(decoded), 0
}

// Rest returns what follows the first segments of path, which is either the
// original path or its decoding and begins with a slash. The result aliases
// path and begins with exactly one slash: an empty remainder is "/", and leading
// slashes are one, as they will be in the URL that [Target.Join] makes of it, so
// that "//admin" below a listen path cannot pass a rule about "/admin".
//
// The rest of the original path decodes to the rest of the decoded path.
func Rest(path []byte, segments int) []byte {
	at := 0
	for ; segments > 0; segments-- {
		length := bytes.IndexByte(path[at+1:], '/')
		if length < 0 {
			return path[:1]
		}
		at += 1 + length
	}
	for at+1 < len(path) && path[at+1] == '/' {
		at++
	}
	return path[at:]
}
