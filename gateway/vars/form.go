package vars

import (
	"bytes"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/query"
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
		if pair, name, value, f.text = query.Cut(f.text); len(pair) == 0 {
			continue
		}
		f.seen++
		return name, value, true
	}
	return nil, nil, false
}

// AppendParameter appends the value that a parameter of the query has where its
// name stands for the nth time, counted from 0. ok tells whether it does.
func AppendParameter(dst []byte, ex *pipeline.Exchange, name string, nth int) (out []byte, ok bool) {
	f := form{text: ex.Call.Query}
	for encoded, value, more := f.next(); more; encoded, value, more = f.next() {
		if !query.Is(encoded, name) {
			continue
		}
		if nth == 0 {
			return decoded(dst, value), true
		}
		nth--
	}
	return dst, false
}

// decoded appends what a name or value stands for, as far as it can be told.
func decoded(dst, written []byte) []byte {
	dst, _ = query.Append(dst, written)
	return dst
}

// A requestValue is the first value of a parameter, in whose name dashes have
// become underscores.
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

// names tells whether the variable is that of a parameter with an encoded name.
func (v requestValue) names(name []byte) bool {
	want := string(v)
	for len(name) > 0 {
		c, size := query.First(name)
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
			if query.Same(again, name) {
				dst = decoded(append(dst, ','), value)
			}
		}
	}
}

// earlier tells whether one of the first n parameters has a name.
func earlier(f form, n int, name []byte) bool {
	for range n {
		if before, _, ok := f.next(); ok && query.Same(before, name) {
			return true
		}
	}
	return false
}
