package vars

import "bytes"

// The functions below read queries of URLs, and forms, pair by pair and without
// copying them. Names are compared decoded, so that differently encoded names are the
// same parameter. Only appending allocates.

// CutPair splits off the first pair of a query, its name and its value. They are not
// decoded; a pair without an equals sign has no value, which is nil.
func CutPair(query []byte) (pair, name, value, rest []byte) {
	pair = query
	if before, after, ok := bytes.Cut(query, []byte{'&'}); ok {
		pair, rest = before, after
	}
	name = pair
	if before, after, ok := bytes.Cut(pair, []byte{'='}); ok {
		name, value = before, after
	}
	return pair, name, value, rest
}

// EqualsDecoded reports whether a name or value decodes to text.
func EqualsDecoded(written []byte, text string) bool {
	for len(written) > 0 {
		c, size, _ := decode(written)
		if text == "" || text[0] != c {
			return false
		}
		written, text = written[size:], text[1:]
	}
	return text == ""
}

// SameDecoded reports whether two names or values decode to the same text.
func SameDecoded(a, b []byte) bool {
	for len(a) > 0 && len(b) > 0 {
		c, n, _ := decode(a)
		d, m, _ := decode(b)
		if c != d {
			return false
		}
		a, b = a[n:], b[m:]
	}
	return len(a) == len(b)
}

// HasParameter reports whether a query has a parameter of that name.
func HasParameter(query []byte, name string) bool {
	for len(query) > 0 {
		var written []byte
		if _, written, _, query = CutPair(query); EqualsDecoded(written, name) {
			return true
		}
	}
	return false
}

// WithoutParameter appends a query without all parameters of that name. dst may be
// query[:0].
func WithoutParameter(dst, query []byte, name string) []byte {
	for first := true; len(query) > 0; {
		var pair, written []byte
		if pair, written, _, query = CutPair(query); EqualsDecoded(written, name) {
			continue
		}
		if !first {
			dst = append(dst, '&')
		}
		first = false
		dst = append(dst, pair...)
	}
	return dst
}

// IsPlain reports whether a name or value is not encoded.
func IsPlain(written []byte) bool {
	return bytes.IndexByte(written, '%') < 0 && bytes.IndexByte(written, '+') < 0
}

// AppendDecoded appends a decoded name or value. An invalid escape is appended as it
// is; whole reports that there was none.
func AppendDecoded(dst, written []byte) (out []byte, whole bool) {
	whole = true
	for len(written) > 0 {
		c, size, ok := decode(written)
		dst, written, whole = append(dst, c), written[size:], whole && ok
	}
	return dst, whole
}

// FirstOctet returns the first decoded octet of a name or value, which must not be
// empty, and how many bytes it was encoded with.
func FirstOctet(written []byte) (octet byte, size int) {
	octet, size, _ = decode(written)
	return octet, size
}

func decode(written []byte) (octet byte, size int, ok bool) {
	switch written[0] {
	case '+':
		return ' ', 1, true
	case '%':
		if len(written) < 3 {
			return '%', 1, false
		}
		high, low := hexValue[written[1]], hexValue[written[2]]
		if high == 0 || low == 0 {
			return '%', 1, false
		}
		return (high-1)<<4 | (low - 1), 3, true
	}
	return written[0], 1, true
}

// hexValue has the value of a hexadecimal digit plus one, and 0 for other bytes.
var hexValue = func() (all [256]byte) {
	for i, c := range "0123456789abcdef" {
		all[c] = byte(i + 1)
	}
	for i, c := range "ABCDEF" {
		all[c] = byte(i + 11)
	}
	return all
}()
