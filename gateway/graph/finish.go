package graph

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/resolve"
)

// emptied matches what stands in selection sets whose fields are all skipped. Within a
// string of the response the quotes would be escaped.
var emptied = regexp.MustCompile(`,"` + emptySet + `":"[A-Za-z0-9_]*"|"` + emptySet + `":"[A-Za-z0-9_]*",?`)

// finish makes the response of the library that of the gateway: errors that say what
// failed, each once and with its path.
func (r *run) finish(p *planned, out []byte) []byte {
	if p.text.empties {
		out = emptied.ReplaceAll(out, nil)
	}
	if !bytes.HasPrefix(out, []byte(`{"errors":`)) && len(r.failures)+len(r.entities) == 0 {
		return out
	}
	var answer struct {
		Errors []responseError `json:"errors"`
		Data   json.RawMessage `json:"data"`
	}
	if json.Unmarshal(out, &answer) != nil {
		return out
	}
	said := answer.Errors
	for i := range said {
		for j, one := range said[i].Path {
			if name, ok := one.(string); ok {
				said[i].Path[j] = r.graph.shown(name)
			}
		}
		r.say(&said[i])
	}
	var root any
	_ = json.Unmarshal(answer.Data, &root) // null where there is none
	for i := range r.failures {
		said = append(said, r.failures[i].located(root)...)
	}
	slices.SortStableFunc(r.entities, func(a, b *entityError) int { // not in the order of the answers
		return cmp.Or(cmp.Compare(a.of.number, b.of.number), cmp.Compare(a.at, b.at))
	})
	for _, e := range r.entities {
		said = append(said, e.located(root)...)
	}
	if r.graph.supergraph {
		for i := range said {
			r.attribute(p, &said[i])
		}
	}
	answer.Errors = nil
	seen := make(map[string]bool)
	for _, e := range said {
		at := pathText(e.Path)
		if key := at + "\x00\x00" + e.Message; !seen[key] && !(isNullError(e.Message) && nullIsSaid(said, at)) {
			seen[key] = true
			answer.Errors = append(answer.Errors, e)
		}
	}
	if answer.Data == nil {
		answer.Data = json.RawMessage("null")
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(answer) != nil {
		return out
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// located returns the errors of failures at the nulls of a response.
func (f *failures) located(root any) (errs []responseError) {
	var places [][]any
	nullsAt(root, f.path, nil, &places)
	if len(places) == len(f.nulls) {
		for i, cause := range f.nulls {
			if cause != "" {
				errs = append(errs, responseError{Message: cause, Path: places[i]})
			}
		}
		return errs
	}
	// Objects that are equal share a request, so the causes cannot be told apart.
	for _, place := range places {
		errs = append(errs, responseError{Message: f.cause(), Path: place})
	}
	return errs
}

// cause returns all causes as one.
func (f *failures) cause() string {
	var all []string
	for _, one := range f.nulls {
		if one != "" && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return strings.Join(all, "; ")
}

// nullsAt adds the places of nulls of a field.
func nullsAt(v any, path []string, at []any, to *[][]any) {
	if list, ok := v.([]any); ok {
		for i, item := range list {
			nullsAt(item, path, append(slices.Clip(at), i), to)
		}
		return
	}
	if len(path) == 0 {
		if v == nil {
			*to = append(*to, at)
		}
		return
	}
	if object, ok := v.(map[string]any); ok {
		if inner, ok := object[path[0]]; ok {
			nullsAt(inner, path[1:], append(slices.Clip(at), path[0]), to)
		}
	}
}

type responseError struct {
	Message    string          `json:"message"`
	Path       []any           `json:"path,omitempty"`
	Extensions json.RawMessage `json:"extensions,omitempty"`
}

// say puts the cause of an error in place of how the library came to it.
func (r *run) say(e *responseError) {
	switch n := len(e.Path); {
	case isNullError(e.Message):
		for i := range r.failures {
			if f := &r.failures[i]; strings.Join(f.path, ".") == fieldPath(e.Path) {
				e.Message = f.cause()
			}
		}
		for _, other := range r.entities {
			if other.explains(fieldPath(e.Path)) {
				e.Message, e.Extensions, other.said = other.message, other.more, true
			}
		}
	case isMisfit(e.Message) && n > 1 && e.Path[n-1] == e.Path[n-2]:
		e.Path = e.Path[:n-1] // the library has the last name twice
	case strings.Contains(e.Message, "Subgraph"):
		kind := "data source"
		if r.graph.supergraph {
			kind = "subgraph"
		}
		e.Message, e.Extensions = strings.ReplaceAll(e.Message, "Subgraph", kind), nil
	}
}

// attribute adds to an error of the library the name of the subgraph that has the field.
func (r *run) attribute(p *planned, e *responseError) {
	if e.Extensions != nil || len(e.Path) == 0 {
		return
	}
	var in resolve.Node = p.plan.Data
	var of *resolve.FieldInfo
	for _, name := range names(e.Path) {
		for list, ok := in.(*resolve.Array); ok; list, ok = in.(*resolve.Array) {
			in = list.Item
		}
		object, ok := in.(*resolve.Object)
		if !ok {
			break
		}
		at := slices.IndexFunc(object.Fields, func(f *resolve.Field) bool { return string(f.Name) == name })
		if at < 0 {
			break
		}
		in, of = object.Fields[at].Value, object.Fields[at].Info
	}
	if of != nil && len(of.Source.Names) > 0 {
		if s := r.graph.sources[of.Source.Names[0]]; s != nil {
			e.Extensions = s.extensions(nil)
		}
	}
}

// isMisfit reports whether an error of the library is about a value of another kind than
// its type has.
func isMisfit(message string) bool {
	return strings.HasPrefix(message, "Array cannot represent") || strings.HasPrefix(message, "Object cannot represent")
}

const nullError = "Cannot return null for non-nullable field"

func isNullError(message string) bool { return strings.HasPrefix(message, nullError) }

// nullIsSaid reports whether another error says why there is no value at a path.
func nullIsSaid(errs []responseError, at string) bool {
	for _, e := range errs {
		if other := pathText(e.Path); !isNullError(e.Message) && (other == at || strings.HasPrefix(other, at+"\x00")) {
			return true
		}
	}
	return false
}

func pathText(path []any) string {
	var b strings.Builder
	for i, one := range path {
		if i > 0 {
			b.WriteByte(0)
		}
		text, _ := json.Marshal(one)
		b.Write(text)
	}
	return b.String()
}

// fieldPath returns a path without the indices of lists.
func fieldPath(path []any) string { return strings.Join(names(path), ".") }
