package schema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/testenv"
)

// words returns the words of a default value, sorted: introspections tell the
// fields of an object in the order of their definition.
func words(value string) []string {
	return slices.Sorted(slices.Values(strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune("{}:, ", r) })))
}

// rows writes a schema as one line for each row, by name: two schemas that say
// the same have the same.
func rows(s *schema.Schema) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	inputs := func(of string, span schema.Span) {
		for _, in := range s.Inputs[span.Lo:span.Hi] {
			add("%s(%s): %s = %v %s %v", of, in.Name, s.RefString(in.Type), in.HasDefault, words(in.Default), in.Deprecated)
		}
	}
	for id, t := range s.Types {
		add("%s is %d, one of %v, built in %v", t.Name, t.Kind, t.OneOf, t.BuiltIn)
		for _, f := range s.Fields[t.Fields.Lo:t.Fields.Hi] {
			add("%s.%s: %s %v", t.Name, f.Name, s.RefString(f.Type), f.Deprecated)
			inputs(t.Name+"."+f.Name, f.Arguments)
		}
		inputs(t.Name, t.Inputs)
		for _, v := range s.Values[t.Values.Lo:t.Values.Hi] {
			add("%s.%s %v", t.Name, v.Name, v.Deprecated)
		}
		for _, iface := range s.Implements(schema.TypeID(id)) {
			add("%s implements %s", t.Name, s.Types[iface].Name)
		}
		for other := range s.Types {
			if t.Kind != schema.Object && s.Possible(schema.TypeID(id)).Has(schema.TypeID(other)) {
				add("%s can be %s", t.Name, s.Types[other].Name)
			}
		}
	}
	for _, d := range s.Directives {
		add("@%s %v %x", d.Name, d.Repeatable, d.Locations)
		inputs("@"+d.Name, d.Arguments)
	}
	for _, root := range []schema.TypeID{s.Query, s.Mutation, s.Subscription} {
		if root != schema.NoType {
			add("operations start from %s", s.Types[root].Name)
		}
	}
	slices.Sort(all)
	return all
}

func served(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, _, err := schema.LoadServed(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func introspected(t testing.TB, text string) json.RawMessage {
	t.Helper()
	answer := testenv.GraphQLJS(t).Ask(t, testenv.Question{Op: "introspect", Schema: text})
	if len(answer.Errors) > 0 {
		t.Fatal(answer.Errors)
	}
	return answer.Data
}

func TestASchemaThatIsIntrospectedIsTheSameSchema(t *testing.T) {
	schemas := real(t)
	schemas["sample"] = sample
	for name, text := range schemas {
		t.Run(name, func(t *testing.T) {
			printed, err := sdl.FromIntrospection(introspected(t, text))
			if err != nil {
				t.Fatal(err)
			}
			want, got := rows(served(t, text)), rows(load(t, printed))
			differ(t, want, got)
			t.Logf("%d rows", len(want))
		})
	}
}

func differ(t *testing.T, want, got []string) {
	t.Helper()
	count := map[string]int{}
	for _, row := range want {
		count[row]++
	}
	for _, row := range got {
		count[row]--
	}
	for _, row := range slices.Sorted(maps.Keys(count)) {
		switch n := count[row]; {
		case n > 0:
			t.Errorf("missing: %s", row)
		case n < 0:
			t.Errorf("too much: %s", row)
		}
	}
}

// TestTablesSayWhatTheReferenceImplementationSays holds every row against the
// answer of graphql-js to an introspection of the same text.
func TestTablesSayWhatTheReferenceImplementationSays(t *testing.T) {
	schemas := real(t)
	schemas["sample"] = sample
	for name, text := range schemas {
		t.Run(name, func(t *testing.T) {
			s := served(t, text)
			var said struct {
				Schema struct {
					Types      []saidType
					QueryType  struct{ Name string }
					Directives []struct {
						Name string
						Args []saidInput
					}
				} `json:"__schema"`
			}
			if err := json.Unmarshal(introspected(t, text), &said); err != nil {
				t.Fatal(err)
			}
			// graphql-js leaves out scalars that nothing is of.
			if n := slices.IndexFunc(s.Types, func(typ schema.Type) bool {
				builtIn := typ.BuiltIn && typ.Kind == schema.Scalar
				return !builtIn && !slices.ContainsFunc(said.Schema.Types, func(r saidType) bool { return r.Name == typ.Name })
			}); n >= 0 {
				t.Errorf("%s is too much", s.Types[n].Name)
			}
			if got := s.Types[s.Query].Name; got != said.Schema.QueryType.Name {
				t.Errorf("the query type is %s", got)
			}
			for _, typ := range said.Schema.Types {
				typ.compare(t, s)
			}
			for _, d := range said.Schema.Directives {
				i, ok := s.DirectiveNamed([]byte(d.Name))
				if !ok {
					t.Fatalf("there is no @%s", d.Name)
				}
				compareInputs(t, s, "@"+d.Name, s.Directives[i].Arguments, d.Args)
			}
		})
	}
}

type saidRef struct {
	Kind, Name string
	OfType     *saidRef
}

func (r *saidRef) String() string {
	switch r.Kind {
	case "LIST":
		return "[" + r.OfType.String() + "]"
	case "NON_NULL":
		return r.OfType.String() + "!"
	}
	return r.Name
}

type saidInput struct {
	Name         string
	Type         saidRef
	DefaultValue *string
	IsDeprecated bool
}

type saidType struct {
	Kind, Name string
	IsOneOf    bool
	Fields     []struct {
		Name         string
		Type         saidRef
		Args         []saidInput
		IsDeprecated bool
	}
	InputFields []saidInput
	EnumValues  []struct {
		Name         string
		IsDeprecated bool
	}
	Interfaces, PossibleTypes []saidRef
}

func (r *saidType) compare(t *testing.T, s *schema.Schema) {
	t.Helper()
	kinds := map[string]schema.Kind{
		"SCALAR": schema.Scalar, "OBJECT": schema.Object, "INTERFACE": schema.Interface,
		"UNION": schema.Union, "ENUM": schema.Enum, "INPUT_OBJECT": schema.InputObject,
	}
	// graphql-js has the fields and places of a draft in its introspection.
	if strings.HasPrefix(r.Name, "__") {
		return
	}
	id := typeOf(t, s, r.Name)
	typ := s.Types[id]
	if typ.Kind != kinds[r.Kind] || typ.OneOf != r.IsOneOf {
		t.Errorf("%s is of kind %d", r.Name, typ.Kind)
	}
	n := int(typ.Fields.Hi - typ.Fields.Lo)
	if id == s.Query {
		n -= 2
	}
	if n != len(r.Fields) || int(typ.Values.Hi-typ.Values.Lo) != len(r.EnumValues) {
		t.Errorf("%s has %d fields", r.Name, n)
	}
	for i, f := range r.Fields {
		got := s.Fields[int(typ.Fields.Lo)+i]
		if got.Name != f.Name || s.RefString(got.Type) != f.Type.String() || got.Deprecated != f.IsDeprecated {
			t.Errorf("%s.%s is %+v", r.Name, f.Name, got)
		}
		compareInputs(t, s, r.Name+"."+f.Name, got.Arguments, f.Args)
	}
	compareInputs(t, s, r.Name, typ.Inputs, r.InputFields)
	for i, v := range r.EnumValues {
		if got := s.Values[int(typ.Values.Lo)+i]; got.Name != v.Name || got.Deprecated != v.IsDeprecated {
			t.Errorf("%s.%s is %+v", r.Name, v.Name, got)
		}
	}
	r.compareRelations(t, s, id)
}

func (r *saidType) compareRelations(t *testing.T, s *schema.Schema, id schema.TypeID) {
	t.Helper()
	var implements []string
	for _, iface := range s.Implements(id) {
		implements = append(implements, s.Types[iface].Name)
	}
	var said []string
	for _, iface := range r.Interfaces {
		said = append(said, iface.Name)
	}
	if !slices.Equal(implements, said) {
		t.Errorf("%s implements %q", r.Name, implements)
	}
	possible := 0
	for _, object := range r.PossibleTypes {
		possible++
		if !s.Possible(id).Has(typeOf(t, s, object.Name)) {
			t.Errorf("%s cannot be %s", r.Name, object.Name)
		}
	}
	for other := range s.Types {
		if s.Types[id].Kind != schema.Object && s.Possible(id).Has(schema.TypeID(other)) {
			possible--
		}
	}
	if possible != 0 {
		t.Errorf("%s can be %d objects less than it should", r.Name, possible)
	}
}

func compareInputs(t *testing.T, s *schema.Schema, of string, span schema.Span, said []saidInput) {
	t.Helper()
	if int(span.Hi-span.Lo) != len(said) {
		t.Errorf("%s has %d inputs", of, span.Hi-span.Lo)
		return
	}
	for i, want := range said {
		got := s.Inputs[int(span.Lo)+i]
		if got.Name != want.Name || s.RefString(got.Type) != want.Type.String() || got.HasDefault != (want.DefaultValue != nil) || got.Deprecated != want.IsDeprecated {
			t.Errorf("%s(%s:) is %+v", of, want.Name, got)
		}
	}
}
