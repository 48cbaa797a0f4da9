// Package vars replaces variables in texts of a definition: "$svc_context.name" is a
// value of the request, "$svc_meta.name" of the meta data of the key and its policies,
// and "$path.name" a segment of the path. Texts are parsed when configuration loads.
// The package also reads queries and forms.
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

// Options select the variables that a text may have.
type Options struct {
	// Context enables "$svc_context.…". Without it these are empty.
	Context bool

	// Path are the parameters that "$path.…" may name, in the order of the values that
	// AppendPath receives. Nil leaves "$path." unchanged.
	Path []string
}

// A Template is a text with variables. It never changes and is safe for concurrent
// use.
type Template struct{ pieces []piece }

// A piece is fixed text or a variable.
type piece struct {
	text string // if value is nil
	value
}

// A value appends the value of a variable. It does not allocate.
type value interface {
	append(dst []byte, ex *pipeline.Exchange, path [][]byte) []byte
}

// Compile parses a text. The error names a parameter that the path does not have.
// Variables that do not exist are empty.
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

// nextVariable returns the index of the first variable and its prefix, or the length
// of text and "" if there is none.
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

// nameLength returns the length of the longest name that text begins with: codeX in
// $path.codeX, not code.
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

// variable returns the value of a variable, or nil if it is empty.
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

// Constant returns the text if it has no variables.
func (t *Template) Constant() (text string, ok bool) {
	switch {
	case len(t.pieces) == 0:
		return "", true
	case len(t.pieces) == 1 && t.pieces[0].value == nil:
		return t.pieces[0].text, true
	}
	return "", false
}

// Append appends the text for an exchange. It does not allocate if dst has the
// capacity.
func (t *Template) Append(dst []byte, ex *pipeline.Exchange) []byte {
	return t.AppendPath(dst, ex, nil)
}

// AppendPath is Append with values for the path's parameters.
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

// AppendHeader appends the text as the value of a header, without control characters,
// which could end the line.
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

// withoutControls removes the control characters from dst[from:].
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

// Counted reports whether the text has variables that are known only after the request
// is counted.
func (t *Template) Counted() bool {
	for i := range t.pieces {
		switch t.pieces[i].value.(type) {
		case rate, quota:
			return true
		}
	}
	return false
}
