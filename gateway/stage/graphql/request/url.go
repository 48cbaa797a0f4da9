package request

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// URL reads the request in the query string of a URL. The request belongs to the
// Decoder.
func (d *Decoder) URL(params []byte) (*Request, *pipeline.Rejection) {
	d.Reset()
	d.list, d.document = append(d.list, Request{}), nil
	r := &d.list[0]
	var seen [len(names)]bool
	for len(params) > 0 {
		var name, value []byte
		name, value, params = param(params)
		if refused := d.parameter(r, &seen, name, value); refused != nil {
			return nil, refused
		}
	}
	if refused := d.complete(r); refused != nil {
		return nil, refused
	}
	return r, nil
}

// param cuts the first parameter off a query string.
func param(params []byte) (name, value, rest []byte) {
	one, rest, _ := bytes.Cut(params, []byte{'&'})
	name, value, _ = bytes.Cut(one, []byte{'='})
	return name, value, rest
}

func (d *Decoder) parameter(r *Request, seen *[len(names)]bool, name, value []byte) *pipeline.Rejection {
	if d.hidesParameter(name) || d.hidesParameter(value) {
		return urlSeparator
	}
	m := d.paramOf(name)
	switch {
	case m == other:
		return nil
	case m == lookalike:
		return lookalikeMember
	case m == garbled:
		return urlEscape
	case seen[m]:
		return twice(m)
	}
	seen[m] = m != storedID
	text, ok := d.unescaped(value)
	switch {
	case !ok:
		return urlEscape
	case len(text) == 0:
		return nil
	}
	switch m {
	case query:
		r.Query = text
	case operationName:
		r.Operation = text
	case variables:
		return readJSON(text, variablesType, func(v jsonscan.Value) *pipeline.Rejection { r.Variables = v.Raw; return nil })
	case extensions:
		return readJSON(text, extensionsType, func(v jsonscan.Value) *pipeline.Rejection { return readExtensions(r, v) })
	case documentID:
		d.document = documentBesideQuery
	case storedID:
		d.document = idBesideQuery
	}
	return nil
}

// readJSON returns the JSON object in a parameter, nil for null.
func readJSON(text []byte, wrong *pipeline.Rejection, object func(jsonscan.Value) *pipeline.Rejection) *pipeline.Rejection {
	s := jsonscan.New(text, maxDepth)
	v := s.Value()
	s.End()
	_, faulty := s.Fault()
	switch {
	case faulty || v.Kind != jsonscan.Object && v.Kind != jsonscan.Null:
		return wrong
	case v.Kind == jsonscan.Null:
		return nil
	}
	return object(v)
}

// paramOf returns the member of a parameter. Names are compared unescaped.
func (d *Decoder) paramOf(name []byte) member {
	text, ok := d.unescaped(name)
	if !ok {
		return garbled
	}
	for _, m := range known {
		if string(text) == names[m] {
			return m
		}
	}
	text = essence(text)
	for _, id := range storedIDs {
		if isFold(text, id) {
			return storedID
		}
	}
	for _, m := range known {
		if isFold(text, names[m]) {
			return lookalike
		}
	}
	return other
}

// AsksForSchema reports whether some servers answer with the text of their schema,
// whatever the operation: those that find an sdl parameter or a path that ends in
// the name of a schema file.
func (d *Decoder) AsksForSchema(path, params []byte) bool {
	path = bytes.TrimRight(path, "/")
	last := path[bytes.LastIndexByte(path, '/')+1:]
	if isFold(last, "schema") || isFold(last, "schema.graphql") {
		return true
	}
	for len(params) > 0 {
		var name []byte
		name, _, params = param(params)
		if text, ok := d.unescaped(name); ok && isFold(essence(text), "sdl") {
			return true
		}
	}
	return false
}

// essence returns a parameter's name as some servers read it: without leading
// blanks, without all from a zero byte on, without brackets of lists and objects.
func essence(name []byte) []byte {
	name = bytes.TrimLeft(name, " \t\r\n[")
	if end := bytes.IndexAny(name, "\x00[]"); end >= 0 {
		name = name[:end]
	}
	return name
}

// isFold reports whether two names differ in case at most. No name of more than
// twice the length folds to one of ASCII letters.
func isFold(name []byte, want string) bool {
	return len(name) <= 2*len(want) && strings.EqualFold(string(name), want) // short: it stays on the stack
}

// hidesParameter reports whether a server that splits parameters at semicolons
// would find one of ours behind it.
func (d *Decoder) hidesParameter(b []byte) bool {
	for {
		_, rest, found := bytes.Cut(b, []byte{';'})
		if !found {
			return false
		}
		one, _, _ := bytes.Cut(rest, []byte{';'})
		name, _, _ := bytes.Cut(one, []byte{'='})
		if d.paramOf(name) != other {
			return true
		}
		b = rest
	}
}

// unescaped returns a decoded name or value. It uses the scratch only if there is
// something to decode.
func (d *Decoder) unescaped(b []byte) ([]byte, bool) {
	if bytes.IndexByte(b, '%') < 0 && bytes.IndexByte(b, '+') < 0 {
		return b, utf8.Valid(b)
	}
	start := len(d.scratch)
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch c {
		case '+':
			c = ' '
		case '%':
			if i+2 >= len(b) {
				return nil, false
			}
			high, low := hexDigit(b[i+1]), hexDigit(b[i+2])
			if high|low > 15 {
				return nil, false
			}
			c = high<<4 | low
			i += 2
		}
		d.scratch = append(d.scratch, c)
	}
	text := d.scratch[start:]
	return text, utf8.Valid(text)
}

// hexDigit returns the value of a digit, 255 for other bytes.
func hexDigit(c byte) byte {
	switch {
	case c-'0' <= 9:
		return c - '0'
	case c|0x20-'a' <= 5:
		return c | 0x20 - 'a' + 10
	}
	return 255
}

// HasParameters reports whether a query string has a parameter that a GraphQL
// server could read.
func (d *Decoder) HasParameters(params []byte) bool {
	for len(params) > 0 {
		var name, value []byte
		name, value, params = param(params)
		if d.paramOf(name) != other || d.hidesParameter(name) || d.hidesParameter(value) {
			return true
		}
	}
	return false
}

// AppendOthers appends the parameters of a query string that no GraphQL server
// reads.
func (d *Decoder) AppendOthers(dst, params []byte) []byte {
	start := len(dst)
	for len(params) > 0 {
		one, rest, _ := bytes.Cut(params, []byte{'&'})
		name, value, _ := param(one)
		params = rest
		if d.paramOf(name) != other || d.hidesParameter(name) || d.hidesParameter(value) {
			continue
		}
		if len(dst) > start {
			dst = append(dst, '&')
		}
		dst = append(dst, one...)
	}
	return dst
}

// AppendParameters appends the request to a query string, which may be empty.
func (r *Request) AppendParameters(dst []byte) []byte {
	dst = appendParameter(dst, "query", r.Query)
	if len(r.Operation) > 0 {
		dst = appendParameter(dst, "operationName", r.Operation)
	}
	if r.Variables != nil {
		dst = appendParameter(dst, "variables", r.Variables)
	}
	return dst
}

// appendParameter appends a parameter to a query string, which may be empty.
func appendParameter(dst []byte, name string, value []byte) []byte {
	if len(dst) > 0 {
		dst = append(dst, '&')
	}
	dst = append(dst, name...)
	dst = append(dst, '=')
	const digits = "0123456789ABCDEF"
	for _, c := range value {
		switch {
		case c-'0' <= 9, c|0x20-'a' < 26, c == '-', c == '.', c == '_', c == '~':
			dst = append(dst, c)
		default:
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		}
	}
	return dst
}
