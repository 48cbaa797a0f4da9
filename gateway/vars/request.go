package vars

import (
	"bytes"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
)

// A header is the first value of a request header. Its name is the canonical one with
// underscores for dashes, and is compared exactly: only "X_My_Id" is the header
// "x-my-id".
type header string

func (h header) append(dst []byte, ex *pipeline.Exchange, _ [][]byte) []byte {
	call := ex.Call
	for i := range call.Fields {
		f := &call.Fields[i]
		if name := call.NameOf(f); len(name) == len(h) && h.names(name) {
			return append(dst, call.ValueOf(f)...)
		}
	}
	return dst
}

// names reports whether the variable is that of a header with this name, which has the
// same length.
func (h header) names(name []byte) bool {
	start := true
	for i, c := range name {
		switch upper := c|0x20-'a' < 26; {
		case upper && start:
			c &^= 0x20
		case upper:
			c |= 0x20
		}
		start = c == '-'
		if start {
			c = '_'
		}
		if c != h[i] {
			return false
		}
	}
	return true
}

// trim removes blanks from both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isBlank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// A cookie is the first cookie of a name, which is written with underscores for
// dashes. Names are case-sensitive.
type cookie string

func (c cookie) append(dst []byte, ex *pipeline.Exchange, _ [][]byte) []byte {
	call := ex.Call
	for i := range call.Fields {
		f := &call.Fields[i]
		if f.Name != wire.NameCookie {
			continue
		}
		list := call.ValueOf(f)
		for len(list) > 0 {
			var pair []byte
			pair, list, _ = bytes.Cut(list, semicolon)
			key, value, _ := bytes.Cut(trim(pair), equals)
			if equalUnderscored(key, string(c)) {
				return append(dst, unquoted(value)...)
			}
		}
	}
	return dst
}

var (
	semicolon = []byte{';'}
	equals    = []byte{'='}
)

// unquoted removes the quotes around a cookie's value.
func unquoted(value []byte) []byte {
	if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
		return value[1 : n-1]
	}
	return value
}

// equalUnderscored compares a name with one that has underscores for dashes.
func equalUnderscored(name []byte, underscored string) bool {
	if len(name) != len(underscored) {
		return false
	}
	for i, c := range name {
		if c == '-' {
			c = '_'
		}
		if c != underscored[i] {
			return false
		}
	}
	return true
}
