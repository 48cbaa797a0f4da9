package sample

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// maxFields bounds the fields of one response, because nested lists multiply.
const maxFields = 50_000

// run is the execution of one valid operation.
type run struct {
	schema    *schema.Schema
	doc       *syntax.Document
	variables object
	fields    int
}

func (r *run) operation(op *syntax.Operation, root object) (any, error) {
	if r.variables == nil {
		r.variables = object{}
	}
	for _, v := range r.doc.Variables[op.Variables.Lo:op.Variables.Hi] {
		if name := r.doc.Text(v.Name); r.variables[name] == nil && v.Default != syntax.None {
			r.variables[name], _ = r.value(v.Default)
		}
	}
	return r.complete(r.schema.Query, root, []syntax.Range{op.Selections})
}

// complete returns the response for a value whose type, without wrappers, is typ.
func (r *run) complete(typ schema.TypeID, value any, sets []syntax.Range) (any, error) {
	switch v := value.(type) {
	case []any:
		all := make([]any, len(v))
		for i := range v {
			var err error
			if all[i], err = r.complete(typ, v[i], sets); err != nil {
				return nil, err
			}
		}
		return all, nil
	case object:
		if r.schema.Types[typ].Kind == schema.Union { // of entities, which are countries
			typ, _ = r.schema.TypeNamed([]byte("Country"))
		}
		out := ordered{}
		for _, set := range sets {
			r.collect(typ, set, &out)
		}
		for i := range out.groups {
			if err := r.field(typ, v, &out.groups[i]); err != nil {
				return nil, err
			}
		}
		return &out, nil
	}
	return value, nil
}

func (r *run) field(typ schema.TypeID, o object, g *group) error {
	if r.fields++; r.fields > maxFields {
		return errors.New("the response would be too large; select less")
	}
	name := r.doc.Text(g.first.Name)
	if name == schema.Typename {
		g.value = r.schema.Types[typ].Name
		return nil
	}
	id, _ := r.schema.FieldNamed(typ, []byte(name)) // exists: the operation is valid
	field, value := &r.schema.Fields[id], o[name]
	if resolve, ok := value.(resolver); ok {
		value = resolve(r.arguments(g.first, field))
	}
	var err error
	g.value, err = r.complete(field.Type.Type(), value, g.sets)
	return err
}

// collect adds the fields that a selection set selects on an object.
func (r *run) collect(typ schema.TypeID, set syntax.Range, out *ordered) {
	for i := set.Lo; i < set.Hi; i++ {
		switch sel := &r.doc.Selections[i]; {
		case !r.included(sel):
		case sel.Kind == syntax.Field:
			out.add(r.doc.Text(sel.ResponseKey()), sel)
		case sel.Kind == syntax.InlineFragment:
			r.collect(typ, sel.Selections, out) // no condition excludes it: the only abstract type has one member
		default:
			for _, f := range r.doc.Fragments {
				if r.doc.Text(f.Name) == r.doc.Text(sel.Name) {
					r.collect(typ, f.Selections, out)
				}
			}
		}
	}
}

// included evaluates @skip and @include.
func (r *run) included(sel *syntax.Selection) bool {
	for _, d := range r.doc.Directives[sel.Directives.Lo:sel.Directives.Hi] {
		name := r.doc.Text(d.Name)
		for _, a := range r.doc.Arguments[d.Arguments.Lo:d.Arguments.Hi] {
			if on, _ := r.value(a.Value); (name == "skip" || name == "include") && on == (name == "skip") {
				return false
			}
		}
	}
	return true
}

func (r *run) arguments(sel *syntax.Selection, f *schema.Field) object {
	args := object{}
	for _, in := range r.schema.Inputs[f.Arguments.Lo:f.Arguments.Hi] {
		var value any
		if in.HasDefault && json.Unmarshal([]byte(in.Default), &value) == nil { // scalars, as in JSON
			args[in.Name] = value
		}
	}
	for _, a := range r.doc.Arguments[sel.Arguments.Lo:sel.Arguments.Hi] {
		if value, given := r.value(a.Value); given {
			args[r.doc.Text(a.Name)] = value
		}
	}
	return args
}

// value returns the value of a literal or variable as decoded JSON; given is false for
// a variable without a value.
func (r *run) value(at uint32) (value any, given bool) {
	v := &r.doc.Values[at]
	switch text := r.doc.Text(v.Text); v.Kind {
	case syntax.VariableValue:
		value, given = r.variables[text[1:]]
		return value, given
	case syntax.IntValue, syntax.FloatValue:
		n, err := strconv.ParseFloat(text, 64)
		return n, err == nil
	case syntax.BooleanValue:
		return text == "true", true
	case syntax.NullValue:
		return nil, true
	}
	return r.doc.StringValue(v), true
}

// ordered is a JSON object whose members keep the order of their selection.
type ordered struct{ groups []group }

// group is the fields selected under one response key.
type group struct {
	key   string
	first *syntax.Selection
	sets  []syntax.Range
	value any
}

func (o *ordered) add(key string, sel *syntax.Selection) {
	for i := range o.groups {
		if o.groups[i].key == key {
			o.groups[i].sets = append(o.groups[i].sets, sel.Selections)
			return
		}
	}
	o.groups = append(o.groups, group{key: key, first: sel, sets: []syntax.Range{sel.Selections}})
}

// MarshalJSON writes the members in order.
func (o *ordered) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, g := range o.groups {
		value, err := json.Marshal(g.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(strconv.AppendQuote(out, g.key), ':'), value...)
	}
	return append(out, '}'), nil
}
