// Package query reads the queries of URLs, and the forms that are written like
// them, as they came: pair by pair, without a copy.
//
// Names are compared decoded, so that nobody hides a parameter by the way that its
// name is written. None of it allocates, but for what is appended.
package query

import "bytes"

// Cut returns the first pair of a query, its name and its value, and the pairs
// that follow. All are as they were written; a pair without an equals sign is a
// name, and its value is nil.
func Cut(query []byte) (pair, name, value, rest []byte) {
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

// Is tells whether a name or value, as it was written, stands for text.
func Is(written []byte, text string) bool {
	for len(written) > 0 {
		c, size, _ := decode(written)
		if text == "" || text[0] != c {
			return false
		}
		written, text = written[size:], text[1:]
	}
	return text == ""
}

// Same tells whether two names or values, as they were written, stand for the same.
func Same(a, b []byte) bool {
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

// Has tells whether a query has a parameter of a name.
func Has(query []byte, name string) bool {
	for len(query) > 0 {
		var written []byte
		if _, written, _, query = Cut(query); Is(written, name) {
			return true
		}
	}
	return false
}

// Without appends a query without all parameters of a name: who reads it might
// take another than the first. dst may be the query cut to nothing.
func Without(dst, query []byte, name string) []byte {
	for first := true; len(query) > 0; {
		var pair, written []byte
		if pair, written, _, query = Cut(query); Is(written, name) {
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

// IsPlain tells whether a name or value is written as what it stands for.
func IsPlain(written []byte) bool {
	return bytes.IndexByte(written, '%') < 0 && bytes.IndexByte(written, '+') < 0
}

// Append appends what a name or value stands for. What is no escape stands for
// itself; whole tells that there was none such.
func Append(dst, written []byte) (out []byte, whole bool) {
	whole = true
	for len(written) > 0 {
		c, size, ok := decode(written)
		dst, written, whole = append(dst, c), written[size:], whole && ok
	}
	return dst, whole
}

// First returns the first octet that a name or value, which is not empty, stands
// for, and how many bytes that was written with.
func First(written []byte) (octet byte, size int) {
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

// hexValue holds what a hexadecimal digit is worth, and one more; 0 for what is
// none.
var hexValue = func() (all [256]byte) {
	for i, c := range "0123456789abcdef" {
		all[c] = byte(i + 1)
	}
	for i, c := range "ABCDEF" {
		all[c] = byte(i + 11)
	}
	return all
}()
