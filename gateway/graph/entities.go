package graph

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/wundergraph/astjson"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/resolve"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// An entityFetch is a request of a plan that asks a subgraph for fields of entities.
type entityFetch struct {
	number int        // in the plan
	path   []string   // of the entities in the response, without indices
	fields [][]string // that have no value if it fails: its own, then those of requests that need them
	own    int        // how many of fields are its own
}

// An entityError is an error of a request for entities.
type entityError struct {
	of      *entityFetch
	asked   int   // entities
	at      int   // the entity that it is about; -1: all
	path    []any // of the field below the entity; nil: all fields
	message string
	more    json.RawMessage // extensions
	said    bool            // an error of the response has its message already
}

// operationOf returns the operation that a request sends, which its template has as text; ""
// if it sends none.
func operationOf(segments []resolve.TemplateSegment) (operation string) {
	for i := range segments {
		if _, text, ok := strings.Cut(string(segments[i].Data), `"query":`); ok {
			_ = json.NewDecoder(strings.NewReader(text)).Decode(&operation)
			break
		}
	}
	return operation
}

// entityKeys returns the response keys of the fields of entities that an operation selects.
func entityKeys(operation string) (keys []string) {
	var doc syntax.Document
	if syntax.Parse(&doc, []byte(operation), syntax.Limits{}) != nil || len(doc.Operations) == 0 {
		return nil
	}
	var visit func(syntax.Range)
	visit = func(set syntax.Range) {
		for _, sel := range doc.Selections[set.Lo:set.Hi] {
			if sel.Kind != syntax.Field {
				visit(sel.Selections)
			} else if key := doc.Text(sel.ResponseKey()); key != schema.Typename && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	for _, root := range doc.Selections[doc.Operations[0].Selections.Lo:doc.Operations[0].Selections.Hi] {
		visit(root.Selections)
	}
	return keys
}

// link adds to each request for entities the fields of those that depend on it.
func link(fetches map[int]*entityFetch, needs map[int][]int) {
	for id, f := range fetches {
		seen := map[int]bool{id: true}
		var visit func(int)
		visit = func(of int) {
			for other, on := range needs {
				if dependent := fetches[other]; dependent != nil && !seen[other] && slices.Contains(on, of) {
					seen[other] = true
					f.fields = append(f.fields, dependent.fields[:dependent.own]...)
					visit(other)
				}
			}
		}
		visit(id)
	}
}

// noteEntities notes an error of a request for entities.
func (r *run) noteEntities(e entityError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entities = append(r.entities, &e)
}

// join answers a request for entities. Its errors are noted, and not part of the response,
// because only the whole response has their paths.
func (f *remoteFetch) join(r *run, sent []byte) ([]byte, error) {
	asked := representationsOf(sent)
	if len(asked) > maxObjects {
		err := f.faultf(r, "there are more than %d entities in a list", maxObjects)
		r.noteEntities(entityError{of: f.entities, asked: len(asked), at: -1, message: err.Error(), more: f.extensions(nil)})
		return joined(make([]*astjson.Value, len(asked))), nil
	}
	if !f.OneByOne || len(asked) < 2 {
		body, list := f.ask(r, &batch{asked: asked, of: len(asked)}, sent)
		if body != nil {
			return body, nil
		}
		return joined(list), nil
	}
	request, err := astjson.ParseBytes(sent)
	if err != nil {
		return nil, err
	}
	all := make([]*astjson.Value, len(asked))
	slots := make(chan struct{}, maxAtOnce)
	var wait sync.WaitGroup
	for i, one := range request.GetArray("variables", "representations") {
		alone := astjson.ArrayValue(nil)
		alone.SetArrayItem(nil, 0, one)
		request.Get("variables").Set(nil, "representations", alone)
		sent := request.MarshalTo(nil)
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			var failed error
			defer r.recovered(&failed) // its value stays null
			_, list := f.ask(r, &batch{asked: asked[i : i+1], first: i, of: len(asked)}, sent)
			all[i] = list[0]
		})
	}
	wait.Wait()
	return joined(all), nil
}

// representationsOf returns the representations of a request for entities.
func representationsOf(sent []byte) (all [][]byte) {
	s := jsonscan.New(sent, maxNesting)
	for s.Object(); s.Member(); {
		if string(s.Name()) != "variables" {
			s.Value()
			continue
		}
		for s.Object(); s.Member(); {
			if string(s.Name()) != "representations" {
				s.Value()
				continue
			}
			for s.Array(); s.Element(); {
				all = append(all, s.Value().Raw)
			}
		}
	}
	return all
}

// typeOf returns the value of __typename of an object, nil if there is not one.
func typeOf(object []byte) (name []byte) {
	s := jsonscan.New(object, maxNesting)
	for s.Object(); s.Member(); {
		typename := jsonscan.Equal(s.Name(), schema.Typename)
		if v := s.Value(); typename && (v.Kind != jsonscan.String || name != nil) {
			return nil
		} else if typename {
			name = v.Text()
		}
	}
	return name
}

// areClean reports whether a response has no errors, and the entities that were asked for.
func areClean(body []byte, asked [][]byte) bool {
	if !isClean(body) {
		return false
	}
	at := -1
	s := jsonscan.New(body, maxNesting)
	for s.Object(); s.Member(); {
		if string(s.Name()) != "data" {
			s.Value()
			continue
		}
		for s.Object(); s.Member(); {
			if string(s.Name()) != "_entities" || s.Kind() != jsonscan.Array || at >= 0 {
				return false
			}
			at = 0
			for s.Array(); s.Element(); at++ {
				v := s.Value()
				if at == len(asked) || v.Kind != jsonscan.Null && (v.Kind != jsonscan.Object || !bytes.Equal(typeOf(v.Raw), typeOf(asked[at])) || typeOf(v.Raw) == nil) {
					return false
				}
			}
		}
	}
	return at == len(asked)
}

// joined returns a response with entities, nil for those that are not there.
func joined(list []*astjson.Value) []byte {
	b := []byte(`{"data":{"_entities":[`)
	for i, one := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if one == nil {
			b = append(b, "null"...)
		} else {
			b = one.MarshalTo(b)
		}
	}
	return append(b, `]}}`...)
}

// A batch is what one request asks for: some of the entities of a fetch.
type batch struct {
	asked [][]byte // the representations
	first int      // the place of the first among all
	of    int      // how many there are in all
}

// ask makes one request for entities, and returns them in order. The body is that of the
// response if it can be passed on as it is, else nil.
func (f *remoteFetch) ask(r *run, b *batch, sent []byte) (body []byte, list []*astjson.Value) {
	list = make([]*astjson.Value, len(b.asked))
	out, err := f.post(r, sent)
	if err != nil {
		f.failAll(r, b, err)
		return nil, list
	}
	if out.status < 300 && len(b.asked) == b.of && areClean(out.body, b.asked) {
		return out.body, list
	}
	parsed, err := astjson.ParseBytes(out.body)
	if err != nil || parsed.Type() != astjson.TypeObject {
		parsed = astjson.ObjectValue(nil)
	}
	errs := parsed.GetArray("errors")
	for _, e := range errs {
		r.faults.Add(1)
		f.pass(r, b, e)
	}
	got := parsed.Get("data", "_entities")
	found := got.GetArray()
	switch err := f.refused(r, out.status); {
	case err != nil && len(errs) == 0:
		f.failAll(r, b, err)
		return nil, list
	case (got == nil || got.Type() == astjson.TypeNull) && len(errs) > 0:
		return nil, list
	case got == nil || got.Type() != astjson.TypeArray:
		f.failAll(r, b, f.faultf(r, "the response is not one of GraphQL"))
		return nil, list
	case len(found) != len(b.asked):
		f.failAll(r, b, f.faultf(r, "there are %d entities in the response, and %d were asked for", len(found), len(b.asked)))
		return nil, list
	}
	for i, one := range found {
		if err := f.misfit(r, one, b.asked[i]); err != nil {
			r.noteEntities(entityError{of: f.entities, asked: b.of, at: b.first + i, message: err.Error(), more: f.extensions(nil)})
			continue
		}
		list[i] = one
	}
	return nil, list
}

// misfit returns why a value is not the entity of a representation, nil if it is, or if
// there is none.
func (f *remoteFetch) misfit(r *run, v *astjson.Value, asked []byte) error {
	switch {
	case v.Type() == astjson.TypeNull:
		return nil
	case v.Type() != astjson.TypeObject:
		return f.faultf(r, "an entity is no object")
	}
	want := typeOf(asked)
	if string(v.GetStringBytes(schema.Typename)) != string(want) {
		return f.faultf(r, "an entity is not of the type %s, which was asked for", want)
	}
	return nil
}

// failAll notes that a request has failed.
func (f *remoteFetch) failAll(r *run, b *batch, err error) {
	at := -1
	if len(b.asked) < b.of {
		at = b.first
	}
	r.noteEntities(entityError{of: f.entities, asked: b.of, at: at, message: err.Error(), more: f.extensions(nil)})
}

// pass notes an error of a response.
func (f *remoteFetch) pass(r *run, b *batch, e *astjson.Value) {
	note := entityError{of: f.entities, asked: b.of, at: -1, message: string(e.GetStringBytes("message")), more: f.extensions(e)}
	if note.message == "" {
		note.message = f.faultf(r, "an error without a message").Error()
	}
	if path := e.GetArray("path"); len(path) > 1 && path[1].Type() == astjson.TypeNumber {
		if i := path[1].GetInt(); i >= 0 && i < len(b.asked) {
			note.at = b.first + i
			for _, name := range path[2:] {
				if name.Type() == astjson.TypeNumber {
					note.path = append(note.path, name.GetInt())
				} else {
					note.path = append(note.path, f.graph.shown(string(name.GetStringBytes())))
				}
			}
		}
	} else if len(b.asked) < b.of {
		note.at = b.first
	}
	r.noteEntities(note)
}

// extensions returns the extensions of an error for clients, nil without any: the code that
// the source gives, and for a subgraph its name.
func (s *source) extensions(e *astjson.Value) json.RawMessage {
	var b []byte
	if e != nil {
		if code := e.Get("extensions", "code"); code != nil {
			b = code.MarshalTo([]byte(`{"code":`))
		}
	}
	if s.Subgraph != nil {
		if b == nil {
			b = []byte(`{"serviceName":`)
		} else {
			b = append(b, `,"serviceName":`...)
		}
		b = jsonscan.AppendString(b, []byte(s.Name))
	}
	if b == nil {
		return nil
	}
	return append(b, '}')
}

// maxPlaces bounds for how many places in a response one error is repeated.
const maxPlaces = 100

// located returns an error for each place in a response that it leaves without a value.
func (e *entityError) located(root any) (errs []responseError) {
	var places [][]any
	exact := e.entity(root)
	switch {
	case e.path != nil && exact != nil:
		places = [][]any{slices.Concat(exact, e.path)}
	case e.path != nil:
		nullsAt(root, slices.Concat(e.of.path, names(e.path)), nil, &places)
	case exact != nil:
		for _, f := range e.of.fields[:e.of.own] {
			place := slices.Concat(exact, []any{f[len(f)-1]})
			if v, there := valueAt(root, place); there && v == nil {
				places = append(places, place)
			}
		}
	default:
		for _, f := range e.of.fields {
			nullsAt(root, f, nil, &places)
		}
	}
	if len(places) == 0 && !e.said {
		places = [][]any{known(root, slices.Concat(e.of.path, names(e.path)))}
	}
	for _, place := range places[:min(len(places), maxPlaces)] {
		errs = append(errs, responseError{Message: e.message, Path: place, Extensions: e.more})
	}
	return errs
}

// entity returns the place of the entity that the error is about, nil if it is not known:
// equal entities share a representation.
func (e *entityError) entity(root any) []any {
	if e.at < 0 {
		return nil
	}
	var places [][]any
	objectsAt(root, e.of.path, nil, &places)
	if len(places) != e.asked {
		return nil
	}
	return places[e.at]
}

// explains reports whether the error is why there is no value at a path.
func (e *entityError) explains(path string) bool {
	if e.path != nil {
		return strings.Join(slices.Concat(e.of.path, names(e.path)), ".") == path
	}
	return slices.ContainsFunc(e.of.fields, func(f []string) bool { return strings.Join(f, ".") == path })
}

// objectsAt adds the places of objects at a path without indices.
func objectsAt(v any, path []string, at []any, to *[][]any) {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			objectsAt(item, path, append(slices.Clip(at), i), to)
		}
	case map[string]any:
		if len(path) == 0 {
			*to = append(*to, at)
		} else {
			objectsAt(v[path[0]], path[1:], append(slices.Clip(at), path[0]), to)
		}
	}
}

// valueAt returns the value at a place, false if there is no such place.
func valueAt(v any, place []any) (any, bool) {
	for _, one := range place {
		switch step := one.(type) {
		case string:
			o, _ := v.(map[string]any)
			inner, there := o[step]
			if !there {
				return nil, false
			}
			v = inner
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil, false
			}
			v = list[step]
		}
	}
	return v, true
}

// known returns the part of a path that is in a response, up to the first list.
func known(v any, path []string) []any {
	var at []any
	for _, name := range path {
		o, _ := v.(map[string]any)
		inner, there := o[name]
		if !there {
			break
		}
		at, v = append(at, name), inner
	}
	return at
}

// names returns a path without indices.
func names(path []any) (all []string) {
	for _, one := range path {
		if name, ok := one.(string); ok {
			all = append(all, name)
		}
	}
	return all
}
