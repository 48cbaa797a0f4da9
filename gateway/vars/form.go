package vars

import (
	"bytes"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
)

// maxParameters is how many parameters of the query and the form are looked at.
const maxParameters = 256

var formType = []byte("application/x-www-form-urlencoded")

// A form walks the parameters of the query, then those of a form in the body. A
// body that is not at hand as a whole is left alone: it is on its way upstream.
type form struct {
	text, body []byte
	seen       int
}

func formOf(ex *pipeline.Exchange) form {
	f := form{text: ex.Call.Query}
	if ex.Call.Stream == nil && bytes.HasPrefix(ex.Call.Get(wire.NameContentType), formType) {
		f.body = ex.Call.Body
	}
	return f
}

// next returns a parameter as it is encoded.
func (f *form) next() (name, value []byte, ok bool) {
	for f.seen < maxParameters {
		if len(f.text) == 0 {
			if f.text, f.body = f.body, nil; len(f.text) == 0 {
				return nil, nil, false
			}
		}
		var pair []byte
		pair, f.text, _ = bytes.Cut(f.text, ampersand)
		if len(pair) == 0 {
			continue
		}
		f.seen++
		name, value, _ = bytes.Cut(pair, equals)
		return name, value, true
	}
	return nil, nil, false
}

var ampersand = []byte{'&'}

// AppendParameter appends the value that a parameter of the query has where its
// name stands for the nth time, counted from 0. ok tells whether it does.
func AppendParameter(dst []byte, ex *pipeline.Exchange, name string, nth int) (out []byte, ok bool) {
	f := form{text: ex.Call.Query}
	for encoded, value, more := f.next(); more; encoded, value, more = f.next() {
		if !isName(encoded, name) {
			continue
		}
		if nth == 0 {
			return appendDecoded(dst, value), true
		}
		nth--
	}
	return dst, false
}

// isName tells whether an encoded name is that of a parameter.
func isName(encoded []byte, name string) bool {
	for len(encoded) > 0 {
		c, size := decodeByte(encoded)
		if name == "" || name[0] != c {
			return false
		}
		encoded, name = encoded[size:], name[1:]
	}
	return name == ""
}

// A requestValue is the first value of a parameter, in whose name dashes have
// become underscores.
type requestValue string

func (v requestValue) append(dst []byte, ex *pipeline.Exchange, _ [][]byte) []byte {
	f := formOf(ex)
	for name, value, ok := f.next(); ok; name, value, ok = f.next() {
		if v.names(name) {
			return appendDecoded(dst, value)
		}
	}
	return dst
}

// names tells whether the variable is that of a parameter with an encoded name.
func (v requestValue) names(name []byte) bool {
	want := string(v)
	for len(name) > 0 {
		c, size := decodeByte(name)
		if c == '-' {
			c = '_'
		}
		if want == "" || want[0] != c {
			return false
		}
		name, want = name[size:], want[1:]
	}
	return want == ""
}

// appendRequestData appends all parameters as "name:value,value;name:value".
func appendRequestData(dst []byte, ex *pipeline.Exchange) []byte {
	f := formOf(ex)
	first := true
	for at := f; ; at = f {
		name, value, ok := f.next()
		if !ok {
			return dst
		}
		if earlier(formOf(ex), at.seen, name) {
			continue
		}
		if !first {
			dst = append(dst, ';')
		}
		first = false
		dst = appendDecoded(dst, name)
		dst = appendDecoded(append(dst, ':'), value)
		for rest := f; ; {
			again, value, ok := rest.next()
			if !ok {
				break
			}
			if sameName(again, name) {
				dst = appendDecoded(append(dst, ','), value)
			}
		}
	}
}

// earlier tells whether one of the first n parameters has a name.
func earlier(f form, n int, name []byte) bool {
	for range n {
		if before, _, ok := f.next(); ok && sameName(before, name) {
			return true
		}
	}
	return false
}

// sameName compares two encoded names.
func sameName(a, b []byte) bool {
	for len(a) > 0 && len(b) > 0 {
		c, n := decodeByte(a)
		d, m := decodeByte(b)
		if c != d {
			return false
		}
		a, b = a[n:], b[m:]
	}
	return len(a) == len(b)
}

// appendDecoded appends what the encoded text of a query or form stands for.
func appendDecoded(dst, text []byte) []byte {
	for len(text) > 0 {
		c, size := decodeByte(text)
		dst = append(dst, c)
		text = text[size:]
	}
	return dst
}

// decodeByte decodes the first byte of a text and tells how long it is there.
// What is no escape stands for itself.
func decodeByte(text []byte) (byte, int) {
	switch {
	case text[0] == '+':
		return ' ', 1
	case text[0] != '%' || len(text) < 3:
		return text[0], 1
	}
	high, low := hexDigit(text[1]), hexDigit(text[2])
	if high < 0 || low < 0 {
		return '%', 1
	}
	return byte(high<<4 | low), 3
}

func hexDigit(c byte) int {
	switch {
	case c-'0' < 10:
		return int(c - '0')
	case c|0x20-'a' < 6:
		return int(c|0x20-'a') + 10
	}
	return -1
}
