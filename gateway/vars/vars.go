// Package vars fills variables into texts of a definition: "$svc_context.name"
// is something of the request, "$svc_meta.name" of the key's meta data and
// "$path.name" a segment of the path. Texts are taken apart when configuration
// loads.
package vars

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

const (
	contextPrefix = "$svc_context."
	metaPrefix    = "$svc_meta."
	pathPrefix    = "$path."
)

// Options say what a text may refer to.
type Options struct {
	// Context fills in "$svc_context.…". Without it these are empty.
	Context bool

	// Path are the parameters that "$path.…" may name, in the order of the values
	// that AppendPath is given. Nil leaves "$path." as it is written.
	Path []string
}

// A Template is a text with variables. It never changes and is safe for
// concurrent use.
type Template struct{ pieces []piece }

// A piece is fixed text, or what a variable stands for.
type piece struct {
	text string // when value is nil
	value
}

// A value appends what a variable stands for. It does not allocate.
type value interface {
	append(dst []byte, ex *pipeline.Exchange, path [][]byte) []byte
}

// Compile takes a text apart. The error names a parameter that the path has not.
// Names of variables that do not exist stand for nothing.
func Compile(text string, o Options) (*Template, error) {
	t := &Template{}
	for text != "" {
		at, prefix := nextVariable(text, o)
		if at > 0 {
			t.pieces = append(t.pieces, piece{text: text[:at]})
		}
		if prefix == "" {
			break
		}
		text = text[at+len(prefix):]
		length := nameLength(text, prefix)
		v, err := variable(prefix, text[:length], o)
		if err != nil {
			return nil, err
		}
		if v != nil {
			t.pieces = append(t.pieces, piece{value: v})
		}
		text = text[length:]
	}
	return t, nil
}

// nextVariable returns where the first variable is and what it begins with; the
// length of text and "" when there is none.
func nextVariable(text string, o Options) (int, string) {
	first, found := len(text), ""
	for _, prefix := range []string{contextPrefix, metaPrefix, pathPrefix} {
		if prefix == pathPrefix && o.Path == nil {
			continue
		}
		if at := strings.Index(text, prefix); at >= 0 && at < first {
			first, found = at, prefix
		}
	}
	return first, found
}

// nameLength returns how long the name is that text begins with. A name ends
// where no more characters of names follow: $path.codeX is no $path.code.
func nameLength(text, prefix string) int {
	for i := range len(text) {
		if !isNameByte(text[i]) && (text[i] != '.' || prefix == pathPrefix) {
			return i
		}
	}
	return len(text)
}

func isNameByte(c byte) bool {
	return c-'0' < 10 || c|0x20-'a' < 26 || c == '_' || c == '-'
}

// variable returns what a variable stands for, or nil for nothing.
func variable(prefix, name string, o Options) (value, error) {
	switch prefix {
	case metaPrefix:
		return meta(name), nil
	case pathPrefix:
		i := slices.Index(o.Path, name)
		if i < 0 {
			return nil, fmt.Errorf("$path.%s: the path has no parameter {%s}", name, name)
		}
		return segment(i), nil
	}
	if !o.Context {
		return nil, nil
	}
	return contextValue(name), nil
}

// Constant returns the text when it has no variables.
func (t *Template) Constant() (text string, ok bool) {
	switch {
	case len(t.pieces) == 0:
		return "", true
	case len(t.pieces) == 1 && t.pieces[0].value == nil:
		return t.pieces[0].text, true
	}
	return "", false
}

// Append appends the text for an exchange. It does not allocate once dst has
// room.
func (t *Template) Append(dst []byte, ex *pipeline.Exchange) []byte {
	return t.AppendPath(dst, ex, nil)
}

// AppendPath is Append with the values of the path's parameters.
func (t *Template) AppendPath(dst []byte, ex *pipeline.Exchange, path [][]byte) []byte {
	for i := range t.pieces {
		if p := &t.pieces[i]; p.value != nil {
			dst = p.value.append(dst, ex, path)
		} else {
			dst = append(dst, p.text...)
		}
	}
	return dst
}

// AppendHeader appends the text as the value of a header: without the control
// characters that could end it, and with them the line.
func (t *Template) AppendHeader(dst []byte, ex *pipeline.Exchange) []byte {
	start := len(dst)
	dst = t.Append(dst, ex)
	for i, c := range dst[start:] {
		if isControl(c) {
			return withoutControls(dst, start+i)
		}
	}
	return dst
}

func isControl(c byte) bool { return c < ' ' && c != '\t' || c == 0x7f }

// withoutControls takes the control characters out of dst from a place on.
func withoutControls(dst []byte, from int) []byte {
	kept := from
	for _, c := range dst[from:] {
		if !isControl(c) {
			dst[kept] = c
			kept++
		}
	}
	return dst[:kept]
}

// Counted tells whether the text has variables that are known only once the
// request has been counted.
func (t *Template) Counted() bool {
	for i := range t.pieces {
		switch t.pieces[i].value.(type) {
		case rate, quota:
			return true
		}
	}
	return false
}
