package graph_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/compose"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// An object is a value of an object type by field: a scalar, an object, a list, an error, or
// a resolver that returns one of these. Objects of abstract types have __typename.
type object = map[string]any

// A resolver computes a field of an object from its arguments.
type resolver = func(o, arguments object) any

// An executor answers operations on objects, as a subgraph or as a service that has all.
type executor struct {
	schema   *schema.Schema
	root     object              // fields of the root types
	entities map[string][]object // by type

	known    map[string]*compose.Type // of a subgraph: what it resolves, by type
	external map[string]bool          // Type.field
}

// newExecutor returns an executor of a schema; known is nil for one that has all.
func newExecutor(text string, root object, entities map[string][]object, known *compose.Metadata) *executor {
	s, err := schema.Load(text)
	if err != nil {
		panic(fmt.Sprint(err, "\n", text))
	}
	e := &executor{schema: s, root: root, entities: entities, known: make(map[string]*compose.Type), external: make(map[string]bool)}
	if known == nil {
		return e
	}
	for i := range known.Types {
		t := &known.Types[i]
		e.known[t.Name] = t
		for _, f := range t.External {
			e.external[t.Name+"."+f] = true
		}
	}
	return e
}

// ServeHTTP implements http.Handler.
func (e *executor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(e.answer(body))
}

type executionError struct {
	Message string `json:"message"`
	Path    []any  `json:"path"`
}

type execution struct {
	*executor
	doc       syntax.Document
	variables object
	errors    []executionError
}

// answer answers a request of GraphQL over HTTP.
func (e *executor) answer(body []byte) []byte {
	var request struct {
		Query     string
		Variables object
	}
	x := execution{executor: e}
	if err := json.Unmarshal(body, &request); err != nil {
		panic(err)
	}
	if err := syntax.Parse(&x.doc, []byte(request.Query), syntax.Limits{}); err != nil {
		panic(fmt.Sprint(err, request.Query))
	}
	op := &x.doc.Operations[0]
	x.variables = make(object)
	for _, v := range x.doc.Variables[op.Variables.Lo:op.Variables.Hi] {
		if v.Default != syntax.None {
			x.variables[x.doc.Text(v.Name)] = x.literal(v.Default)
		}
	}
	maps.Copy(x.variables, request.Variables)
	root := e.schema.Query
	if op.Kind == syntax.Mutation {
		root = e.schema.Mutation
	}
	data, ok := x.object(root, e.root, nil, []syntax.Range{op.Selections}, nil)
	out := object{"data": data}
	if !ok {
		out["data"] = nil
	}
	if len(x.errors) > 0 {
		out["errors"] = x.errors
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return b
}

func (x *execution) fail(path []any, format string, args ...any) {
	x.errors = append(x.errors, executionError{fmt.Sprintf(format, args...), slices.Clone(path)})
}

// object returns the selected fields of an object, false if one that must not be null is.
// given are fields that are known beside those of the subgraph.
func (x *execution) object(t schema.TypeID, o, given object, sets []syntax.Range, path []any) (out *ordered, ok bool) {
	out, ok = new(ordered), true
	var fields []field
	for _, set := range sets {
		x.collect(t, set, &fields)
	}
	for _, f := range fields {
		at := append(slices.Clip(path), f.key)
		if f.name == schema.Typename {
			out.add(f.key, x.schema.Types[t].Name)
			continue
		}
		id, known := x.schema.FieldNamed(t, []byte(f.name))
		if !known {
			x.fail(at, "no field %s.%s", x.schema.Types[t].Name, f.name)
			continue
		}
		value, good := x.value(x.schema.Fields[id].Type, x.resolve(t, o, given, &f), x.provided(t, f.name), f.sets, at)
		if !good {
			ok = false
		}
		out.add(f.key, value)
	}
	return out, ok
}

// provided returns what a field's @provides has.
func (x *execution) provided(t schema.TypeID, name string) string {
	if known := x.known[x.schema.Types[t].Name]; known != nil {
		for _, p := range known.Provides {
			if p.Field == name {
				return " " + p.Fields + " "
			}
		}
	}
	return ""
}

func (x *execution) resolve(t schema.TypeID, o, given object, f *field) any {
	if f.name == "_entities" {
		list, _ := x.arguments(f)["representations"].([]any)
		return list
	}
	if f.name == "_service" {
		return object{"sdl": ""}
	}
	name := x.schema.Types[t].Name
	if x.external[name+"."+f.name] {
		if v, ok := given[f.name]; ok {
			return v
		}
		return fmt.Errorf("the external field %s.%s was asked for", name, f.name)
	}
	switch v := o[f.name].(type) {
	case resolver:
		seen := maps.Clone(o)
		for other := range seen {
			if x.external[name+"."+other] {
				delete(seen, other)
			}
		}
		maps.Copy(seen, given)
		return v(seen, x.arguments(f))
	default:
		return v
	}
}

// value completes a value of a type, false if it must not be null and is.
func (x *execution) value(t schema.TypeRef, v any, provides string, sets []syntax.Range, path []any) (out any, ok bool) {
	if t.IsNonNull() {
		before := len(x.errors)
		out, ok = x.value(t.Inner(), v, provides, sets, path)
		if ok && out == nil {
			if len(x.errors) == before {
				x.fail(path, "null for %s", x.schema.RefString(t))
			}
			ok = false
		}
		return out, ok
	}
	if err, is := v.(error); is {
		x.fail(path, "%s", err)
		return nil, true
	}
	if v == nil {
		return nil, true
	}
	if t.IsList() {
		list := []any{}
		for i, item := range v.([]any) {
			one, ok := x.value(t.Inner(), item, provides, sets, append(slices.Clip(path), i))
			if !ok {
				return nil, true
			}
			list = append(list, one)
		}
		return list, true
	}
	if !x.schema.Types[t.Type()].Kind.Composite() {
		return v, true
	}
	o, given := v.(object), object(nil)
	id := t.Type()
	if x.schema.Types[id].Name == "_Entity" {
		given = o
		if o = x.entity(o); o == nil {
			return nil, true
		}
	}
	if provides != "" {
		given = make(object)
		for name, one := range o {
			if strings.Contains(provides, " "+name+" ") {
				given[name] = one
			}
		}
	}
	if x.schema.Types[id].Kind != schema.Object {
		id, _ = x.schema.TypeNamed(fmt.Append(nil, o[schema.Typename]))
	}
	made, good := x.object(id, o, given, sets, path)
	if !good {
		return nil, true
	}
	return made, true
}

// entity returns the object of a representation, nil if there is none.
func (x *execution) entity(r object) object {
	name := fmt.Sprint(r[schema.Typename])
	for _, o := range x.entities[name] {
		same := true
		for field, value := range r {
			if field != schema.Typename && !x.external[name+"."+field] && !matches(o[field], value) {
				same = false
			}
		}
		if same {
			o = maps.Clone(o)
			o[schema.Typename] = name
			return o
		}
	}
	return nil
}

// matches reports whether a value has what a part of it has.
func matches(v, part any) bool {
	switch part := part.(type) {
	case object:
		o, ok := v.(object)
		for name, value := range part {
			ok = ok && (name == schema.Typename || matches(o[name], value))
		}
		return ok
	case []any:
		list, ok := v.([]any)
		ok = ok && len(list) == len(part)
		for i := range part {
			ok = ok && matches(list[i], part[i])
		}
		return ok
	}
	return fmt.Sprint(v) == fmt.Sprint(part)
}

// A field is one that is selected, with all its selection sets.
type field struct {
	key, name string
	sel       *syntax.Selection
	sets      []syntax.Range
}

func (x *execution) collect(t schema.TypeID, set syntax.Range, to *[]field) {
	for i := set.Lo; i < set.Hi; i++ {
		sel := &x.doc.Selections[i]
		if x.skipped(sel) {
			continue
		}
		switch sel.Kind {
		case syntax.Field:
			key := x.doc.Text(sel.ResponseKey())
			at := slices.IndexFunc(*to, func(f field) bool { return f.key == key })
			if at < 0 {
				at = len(*to)
				*to = append(*to, field{key: key, name: x.doc.Text(sel.Name), sel: sel})
			}
			(*to)[at].sets = append((*to)[at].sets, sel.Selections)
		case syntax.InlineFragment:
			x.fragment(t, sel.Name, sel.Selections, to)
		case syntax.FragmentSpread:
			for j := range x.doc.Fragments {
				if f := &x.doc.Fragments[j]; x.doc.Text(f.Name) == x.doc.Text(sel.Name) {
					x.fragment(t, f.TypeCondition, f.Selections, to)
				}
			}
		}
	}
}

func (x *execution) fragment(t schema.TypeID, condition syntax.Span, set syntax.Range, to *[]field) {
	if condition.End > condition.Start {
		on, ok := x.schema.TypeNamed(x.doc.Bytes(condition))
		if !ok || on != t && !x.schema.Possible(on).Has(t) {
			return
		}
	}
	x.collect(t, set, to)
}

func (x *execution) skipped(sel *syntax.Selection) bool {
	for _, d := range x.doc.Directives[sel.Directives.Lo:sel.Directives.Hi] {
		on, _ := x.literal(x.doc.Arguments[d.Arguments.Lo].Value).(bool)
		if on == (x.doc.Text(d.Name) == "skip") {
			return true
		}
	}
	return false
}

func (x *execution) arguments(f *field) object {
	all := make(object)
	for _, a := range x.doc.Arguments[f.sel.Arguments.Lo:f.sel.Arguments.Hi] {
		all[x.doc.Text(a.Name)] = x.literal(a.Value)
	}
	return all
}

func (x *execution) literal(at uint32) (out any) {
	v := &x.doc.Values[at]
	switch v.Kind {
	case syntax.VariableValue:
		return x.variables[x.doc.Text(v.Text)[1:]]
	case syntax.StringValue, syntax.BlockStringValue:
		return x.doc.StringValue(v)
	case syntax.EnumValueKind:
		return x.doc.Text(v.Text)
	case syntax.ListValue:
		list := []any{}
		for i := v.Items.Lo; i < v.Items.Hi; i++ {
			list = append(list, x.literal(i))
		}
		return list
	case syntax.ObjectValue:
		o := make(object)
		for _, a := range x.doc.Arguments[v.Items.Lo:v.Items.Hi] {
			o[x.doc.Text(a.Name)] = x.literal(a.Value)
		}
		return o
	}
	_ = json.Unmarshal(x.doc.Bytes(v.Text), &out)
	return out
}

// ordered is an object of JSON whose members keep their order.
type ordered struct {
	keys   []string
	values []any
}

func (o *ordered) add(key string, value any) {
	o.keys, o.values = append(o.keys, key), append(o.values, value)
}

// MarshalJSON implements json.Marshaler.
func (o *ordered) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, key := range o.keys {
		if i > 0 {
			b = append(b, ',')
		}
		value, err := json.Marshal(o.values[i])
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, '"'), key...), `":`...)
		b = append(b, value...)
	}
	return append(b, '}'), nil
}
