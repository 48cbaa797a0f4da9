package syntax_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// dumper writes a document as the dump of graphql-js does (testenv's dump.mjs):
// every node with where it is in UTF-16 code units, and every string's value.
type dumper struct {
	*syntax.Document
	units []int // by byte offset
}

func dump(d *syntax.Document) string {
	w := dumper{Document: d, units: make([]int, len(d.Source)+1)}
	n := 0
	for i := 0; i < len(d.Source); {
		r, size := utf8.DecodeRune(d.Source[i:])
		w.units[i] = n
		n++
		if r > 0xFFFF {
			n++
		}
		i += size
	}
	w.units[len(d.Source)] = n
	lines := make([]string, len(d.Definitions))
	for i, def := range d.Definitions {
		switch def.Kind {
		case syntax.OperationDefinition:
			lines[i] = w.operation(&d.Operations[def.Index])
		case syntax.FragmentDefinition:
			lines[i] = w.fragment(&d.Fragments[def.Index])
		case syntax.TypeSystemDefinition:
			lines[i] = w.typeDef(&d.TypeDefs[def.Index])
		}
	}
	return strings.Join(lines, "\n")
}

func (w dumper) node(kind string, start uint32, inner ...string) string {
	return fmt.Sprintf("%s@%d(%s)", kind, w.units[start], words(inner...))
}

func words(parts ...string) string {
	var filled []string
	for _, part := range parts {
		if part != "" {
			filled = append(filled, part)
		}
	}
	return strings.Join(filled, " ")
}

// leaf is "" for an absent span.
func (w dumper) leaf(kind string, s syntax.Span) string {
	if s.End == 0 {
		return ""
	}
	return fmt.Sprintf("%s@%d-%d", kind, w.units[s.Start], w.units[s.End])
}

func (w dumper) name(s syntax.Span) string  { return w.leaf("Name", s) }
func (w dumper) named(s syntax.Span) string { return w.leaf("NamedType", s) }

// each joins what one returns for the elements of a range.
func each[T any](all []T, r syntax.Range, one func(*T) string) string {
	parts := make([]string, 0, r.Len())
	for i := r.Lo; i < r.Hi; i++ {
		parts = append(parts, one(&all[i]))
	}
	return strings.Join(parts, " ")
}

func (w dumper) operation(op *syntax.Operation) string {
	return w.node("OperationDefinition", op.Start, op.Kind.String(), w.name(op.Name),
		each(w.Variables, op.Variables, w.variable), w.directives(op.Directives), w.set(op.Selections))
}

func (w dumper) fragment(f *syntax.Fragment) string {
	return w.node("FragmentDefinition", f.Start, w.name(f.Name), w.named(f.TypeCondition), w.directives(f.Directives), w.set(f.Selections))
}

func (w dumper) variable(v *syntax.Variable) string {
	dollar := syntax.Span{Start: v.Name.Start, End: v.Name.End}
	for dollar.Start--; w.Source[dollar.Start] != '$'; dollar.Start-- {
	}
	return w.node("VariableDefinition", v.Start, w.leaf("Variable", dollar), w.typeRef(v.Type), w.value(v.Default), w.directives(v.Directives))
}

func (w dumper) set(r syntax.Range) string {
	if r.Len() == 0 {
		return ""
	}
	return "{" + each(w.Selections, r, w.selection) + "}"
}

func (w dumper) selection(s *syntax.Selection) string {
	directives, opened := w.directives(s.Directives), ""
	if s.Selections.Len() > 0 {
		opened = fmt.Sprintf("{@%d", w.units[s.SetStart])
	}
	switch s.Kind {
	case syntax.FragmentSpread:
		return w.node("FragmentSpread", s.Start, w.name(s.Name), directives)
	case syntax.InlineFragment:
		return w.node("InlineFragment", s.Start, w.named(s.Name), directives, opened, w.set(s.Selections))
	default:
		return w.node("Field", s.Start, w.name(s.Alias), w.name(s.Name), w.arguments("Argument", s.Arguments), directives, opened, w.set(s.Selections))
	}
}

func (w dumper) arguments(kind string, r syntax.Range) string {
	return each(w.Arguments, r, func(a *syntax.Argument) string {
		return w.node(kind, a.Start, w.name(a.Name), w.value(a.Value))
	})
}

func (w dumper) directives(r syntax.Range) string {
	return each(w.Directives, r, func(d *syntax.Directive) string {
		return w.node("Directive", d.Start, w.name(d.Name), w.arguments("Argument", d.Arguments))
	})
}

func (w dumper) value(index uint32) string {
	if index == syntax.None {
		return ""
	}
	return w.valueOf(&w.Values[index])
}

func (w dumper) valueOf(v *syntax.Value) string {
	kind := map[syntax.ValueKind]string{
		syntax.VariableValue: "Variable", syntax.IntValue: "IntValue", syntax.FloatValue: "FloatValue",
		syntax.StringValue: "StringValue", syntax.BlockStringValue: "StringValue", syntax.BooleanValue: "BooleanValue",
		syntax.NullValue: "NullValue", syntax.EnumValueKind: "EnumValue", syntax.ListValue: "ListValue", syntax.ObjectValue: "ObjectValue",
	}[v.Kind]
	place := w.leaf(kind, v.Text)
	switch v.Kind {
	case syntax.StringValue, syntax.BlockStringValue:
		return place + "(" + quote(w.StringValue(v)) + ")"
	case syntax.ListValue:
		return place + "(" + each(w.Values, v.Items, w.valueOf) + ")"
	case syntax.ObjectValue:
		return place + "(" + w.arguments("ObjectField", v.Items) + ")"
	default:
		return place
	}
}

// quote is JavaScript's JSON.stringify.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err)
	}
	return strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(strings.TrimSuffix(b.String(), "\n"))
}

func (w dumper) typeRef(index uint32) string {
	ref := w.Types[index]
	switch ref.Kind {
	case syntax.ListType:
		return w.leaf("ListType", ref.Text) + "(" + w.typeRef(ref.Of) + ")"
	case syntax.NonNullType:
		return w.leaf("NonNullType", ref.Text) + "(" + w.typeRef(ref.Of) + ")"
	default:
		return w.named(ref.Text)
	}
}

func (w dumper) typeDef(t *syntax.TypeDef) string {
	kind := map[syntax.TypeDefKind]string{
		syntax.SchemaDef: "Schema", syntax.ScalarDef: "ScalarType", syntax.ObjectDef: "ObjectType", syntax.InterfaceDef: "InterfaceType",
		syntax.UnionDef: "UnionType", syntax.EnumDef: "EnumType", syntax.InputObjectDef: "InputObjectType", syntax.DirectiveDef: "Directive",
	}[t.Kind]
	if t.Extension {
		kind += "Extension"
	} else {
		kind += "Definition"
	}
	member, repeatable := w.named, ""
	if t.Kind == syntax.DirectiveDef {
		member = w.name
	}
	if t.Repeatable {
		repeatable = "repeatable"
	}
	return w.node(kind, t.Start, w.value(t.Description), w.name(t.Name), each(w.Names, t.Interfaces, deref(w.named)),
		w.directives(t.Directives), each(w.FieldDefs, t.Fields, w.field), each(w.InputDefs, t.Inputs, w.input),
		each(w.EnumValues, t.EnumValues, w.enumValue), each(w.RootTypes, t.RootTypes, w.rootType),
		each(w.Names, t.Members, deref(member)), repeatable)
}

func deref(f func(syntax.Span) string) func(*syntax.Span) string {
	return func(s *syntax.Span) string { return f(*s) }
}

func (w dumper) field(f *syntax.FieldDef) string {
	return w.node("FieldDefinition", f.Start, w.value(f.Description), w.name(f.Name), each(w.InputDefs, f.Arguments, w.input), w.typeRef(f.Type), w.directives(f.Directives))
}

func (w dumper) input(in *syntax.InputDef) string {
	return w.node("InputValueDefinition", in.Start, w.value(in.Description), w.name(in.Name), w.typeRef(in.Type), w.value(in.Default), w.directives(in.Directives))
}

func (w dumper) enumValue(v *syntax.EnumValue) string {
	return w.node("EnumValueDefinition", v.Start, w.value(v.Description), w.name(v.Name), w.directives(v.Directives))
}

func (w dumper) rootType(r *syntax.RootType) string {
	return w.node("OperationTypeDefinition", r.Start, r.Operation.String(), w.named(r.Type))
}
