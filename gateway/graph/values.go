package graph

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/wundergraph/astjson"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/datagraph"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// rawValue is a JSON value.
type rawValue = []byte

// values are what the variables of templates stand for in one request to a source.
type values struct{ arguments, object *astjson.Value }

// find returns the value of a variable, nil without one or if it is null.
func (v *values) find(p *datagraph.Piece) *astjson.Value {
	if v == nil {
		return nil
	}
	of := v.arguments
	if p.Root == datagraph.Object {
		of = v.object
	}
	found := of.Get(p.Path...)
	if found == nil || found.Type() == astjson.TypeNull {
		return nil
	}
	return found
}

// appendText appends a value as text: strings without quotes, all else as JSON.
func (v *values) appendText(b []byte, ex *pipeline.Exchange, p *datagraph.Piece) []byte {
	if p.Root == datagraph.Header {
		return append(b, ex.Call.Header(p.Text)...)
	}
	return appendText(b, v.find(p))
}

func appendText(b []byte, one *astjson.Value) []byte {
	switch {
	case one == nil:
		return b
	case one.Type() == astjson.TypeString:
		return append(b, one.GetStringBytes()...)
	}
	return one.MarshalTo(b)
}

// address returns the address of a request. Values never change what part of it they are in.
func (s *source) address(ex *pipeline.Exchange, v *values) (string, error) {
	var b strings.Builder
	query := false
	for i := range s.URL {
		p := &s.URL[i]
		if p.Root == datagraph.Text {
			b.WriteString(p.Text)
			query = query || strings.Contains(p.Text, "?")
			continue
		}
		text := string(v.appendText(nil, ex, p))
		switch {
		case query:
			b.WriteString(url.QueryEscape(text))
		case text == "":
			return "", fmt.Errorf("there is no value of {{%s}} for the URL", nameOf(p))
		default:
			b.WriteString(url.PathEscape(text))
		}
	}
	address := b.String()
	path, _, _ := strings.Cut(address, "?")
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return "", fmt.Errorf("a value makes a segment %q of the URL", segment)
		}
	}
	return s.withQuery(ex, v, address), nil
}

// withQuery adds the parameters of config.query.
func (s *source) withQuery(ex *pipeline.Exchange, v *values, address string) string {
	if len(s.Query) == 0 {
		return address
	}
	b := []byte(address)
	more := byte('?')
	if strings.Contains(address, "?") {
		more = '&'
	}
	add := func(name string, text []byte) {
		b = append(append(append(append(b, more), url.QueryEscape(name)...), '='), url.QueryEscape(string(text))...)
		more = '&'
	}
	for i := range s.Query {
		one := &s.Query[i]
		if one.Value.Only() && one.Value[0].Root != datagraph.Header {
			found := v.find(&one.Value[0])
			switch {
			case found == nil:
			case found.Type() == astjson.TypeArray:
				for _, item := range found.GetArray() {
					add(one.Name, appendText(nil, item))
				}
			default:
				add(one.Name, appendText(nil, found))
			}
			continue
		}
		var text []byte
		for j := range one.Value {
			if p := &one.Value[j]; p.Root == datagraph.Text {
				text = append(text, p.Text...)
			} else {
				text = v.appendText(text, ex, p)
			}
		}
		if len(text) > 0 || !one.Value.Only() {
			add(one.Name, text)
		}
	}
	return string(b)
}

// content returns the body of a request, nil without one.
func (s *source) content(ex *pipeline.Exchange, v *values) []byte {
	var b []byte
	for i := range s.Body {
		p := &s.Body[i]
		switch {
		case p.Root == datagraph.Text:
			b = append(b, p.Text...)
		case p.Quoted:
			quoted := jsonscan.AppendString(nil, v.appendText(nil, ex, &p.Piece))
			b = append(b, quoted[1:len(quoted)-1]...)
		case p.Root == datagraph.Header:
			b = jsonscan.AppendString(b, ex.Call.Header(p.Text))
		default:
			if found := v.find(&p.Piece); found != nil {
				b = found.MarshalTo(b)
			} else {
				b = append(b, "null"...)
			}
		}
	}
	return b
}

func nameOf(p *datagraph.Piece) string {
	switch p.Root {
	case datagraph.Arguments:
		return ".arguments." + strings.Join(p.Path, ".")
	case datagraph.Object:
		return ".object." + strings.Join(p.Path, ".")
	}
	return ".request.headers." + p.Text
}

// at returns the member of a JSON value that a path leads to, nil if there is none. A
// number is an index of an array.
func at(v *astjson.Value, path []string) *astjson.Value {
	for _, name := range path {
		if v == nil {
			return nil
		}
		if v.Type() == astjson.TypeArray {
			i, err := strconv.Atoi(name)
			items := v.GetArray()
			if err != nil || i < 0 || i >= len(items) {
				return nil
			}
			v = items[i]
			continue
		}
		v = v.Get(name)
	}
	return v
}
