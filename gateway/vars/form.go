package vars

import (
	"bytes"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
)

// maxParameters is how many parameters of the query and the form are read.
const maxParameters = 256

var formType = []byte("application/x-www-form-urlencoded")

// A form iterates over the parameters of the query, and then those of a form in the
// body. A streamed body is not read: it is being sent upstream.
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

// next returns the next parameter, encoded.
func (f *form) next() (name, value []byte, ok bool) {
	for f.seen < maxParameters {
		if len(f.text) == 0 {
			if f.text, f.body = f.body, nil; len(f.text) == 0 {
				return nil, nil, false
			}
		}
		var pair []byte
		if pair, name, value, f.text = CutPair(f.text); len(pair) == 0 {
			continue
		}
		f.seen++
		return name, value, true
	}
	return nil, nil, false
}

// AppendParameter appends the value of the nth query parameter of a name, counted from
// 0. ok reports whether there is one.
func AppendParameter(dst []byte, ex *pipeline.Exchange, name string, nth int) (out []byte, ok bool) {
	f := form{text: ex.Call.Query}
	for encoded, value, more := f.next(); more; encoded, value, more = f.next() {
		if !EqualsDecoded(encoded, name) {
			continue
		}
		if nth == 0 {
			return decoded(dst, value), true
		}
		nth--
	}
	return dst, false
}

// decoded appends a decoded name or value, as far as it can be decoded.
func decoded(dst, written []byte) []byte {
	dst, _ = AppendDecoded(dst, written)
	return dst
}

// A requestValue is the first value of a parameter, whose name is written with
// underscores for dashes.
type requestValue string

func (v requestValue) append(dst []byte, ex *pipeline.Exchange, _ [][]byte) []byte {
	f := formOf(ex)
	for name, value, ok := f.next(); ok; name, value, ok = f.next() {
		if v.names(name) {
			return decoded(dst, value)
		}
	}
	return dst
}

// names reports whether the variable is that of a parameter with this encoded name.
func (v requestValue) names(name []byte) bool {
	want := string(v)
	for len(name) > 0 {
		c, size := FirstOctet(name)
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
		dst = decoded(dst, name)
		dst = decoded(append(dst, ':'), value)
		for rest := f; ; {
			again, value, ok := rest.next()
			if !ok {
				break
			}
			if SameDecoded(again, name) {
				dst = decoded(append(dst, ','), value)
			}
		}
	}
}

// earlier reports whether one of the first n parameters has this name.
func earlier(f form, n int, name []byte) bool {
	for range n {
		if before, _, ok := f.next(); ok && SameDecoded(before, name) {
			return true
		}
	}
	return false
}
