package sample

import (
	"encoding/json"
	"strconv"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// bind takes the variables of an operation from what was sent, and their defaults.
// The schema has scalar arguments alone, so kinds are all there is to check.
func (r *run) bind(op *syntax.Operation, sent map[string]any) *syntax.Error {
	r.variables = make(map[string]any)
	for _, v := range r.doc.Variables[op.Variables.Lo:op.Variables.Hi] {
		name, typ := r.doc.Text(v.Name), r.doc.Types[v.Type]
		value, given := sent[name]
		if !given && v.Default != syntax.None {
			value, given = r.value(v.Default)
		}
		if typ.Kind == syntax.NonNullType {
			if value == nil {
				return r.wrong(&v, "must be given: it is of type "+r.doc.Text(typ.Text))
			}
			typ = r.doc.Types[typ.Of]
		}
		if value != nil && !fits(r.doc.Text(typ.Text), value) {
			return r.wrong(&v, "must be of type "+r.doc.Text(typ.Text))
		}
		if given {
			r.variables[name] = value
		}
	}
	return nil
}

func (r *run) wrong(v *syntax.Variable, what string) *syntax.Error {
	return &syntax.Error{Message: "Variable $" + r.doc.Text(v.Name) + " " + what + ".", Locations: []syntax.Location{r.doc.Location(v.Start)}}
}

func fits(typ string, value any) bool {
	switch v := value.(type) {
	case string:
		return typ == "String" || typ == "ID"
	case bool:
		return typ == "Boolean"
	case float64:
		return typ == "Float" || v == float64(int32(v)) && (typ == "Int" || typ == "ID")
	}
	return false
}

// arguments returns those of a field.
func (r *run) arguments(sel *syntax.Selection, f *schema.Field) arguments {
	args := make(arguments)
	for _, in := range r.schema.Inputs[f.Arguments.Lo:f.Arguments.Hi] {
		var value any // defaults of the schema are scalars, which JSON writes alike
		if in.HasDefault && json.Unmarshal([]byte(in.Default), &value) == nil {
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

// value returns what a literal or variable stands for, as JSON has it; given is
// false for a variable without a value.
func (r *run) value(at uint32) (value any, given bool) {
	v := &r.doc.Values[at]
	switch v.Kind {
	case syntax.VariableValue:
		value, given = r.variables[r.doc.Text(v.Text)[1:]]
		return value, given
	case syntax.IntValue, syntax.FloatValue:
		n, err := strconv.ParseFloat(r.doc.Text(v.Text), 64)
		return n, err == nil
	case syntax.BooleanValue:
		return r.doc.Text(v.Text) == "true", true
	case syntax.NullValue:
		return nil, true
	}
	return r.doc.StringValue(v), true
}

// text returns a string argument; an ID may be given as a number.
func (a arguments) text(name string) (value string, given bool) {
	switch v := a[name].(type) {
	case string:
		return v, true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}
