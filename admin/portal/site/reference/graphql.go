package reference

import (
	"errors"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A schemaReader reads one GraphQL schema.
type schemaReader struct {
	doc  *syntax.Document
	ref  *Reference
	ids  map[string]string // of the entries of types, by name
	defs map[string]*syntax.TypeDef
	all  map[string][]*syntax.TypeDef // with extensions, by name
}

// GraphQL returns the reference of a schema in the schema definition language.
func GraphQL(text string) (*Reference, error) {
	doc, err := sdl.Parse(text)
	if doc == nil {
		return nil, errors.Join(errors.New("the schema cannot be read"), err)
	}
	r := &schemaReader{doc: doc, ref: &Reference{byID: make(map[string]*Entry)}, ids: make(map[string]string), defs: make(map[string]*syntax.TypeDef), all: make(map[string][]*syntax.TypeDef)}
	roots := r.roots()
	for i := range doc.TypeDefs {
		name := doc.Text(doc.TypeDefs[i].Name)
		r.all[name] = append(r.all[name], &doc.TypeDefs[i])
	}
	var kinds [len(kindNames)][]*Entry
	var entries []*Entry
	var all []*syntax.TypeDef
	for _, d := range doc.Definitions {
		if d.Kind != syntax.TypeSystemDefinition {
			continue
		}
		def := &doc.TypeDefs[d.Index]
		name := doc.Text(def.Name)
		if def.Kind == syntax.SchemaDef || def.Kind == syntax.DirectiveDef || r.ids[name] != "" || isRoot(roots, name) {
			continue
		}
		e := r.ref.add(&Entry{ID: "type." + name, Method: kindNames[def.Kind], Name: name})
		r.ids[name], r.defs[name] = e.ID, def
		entries, all = append(entries, e), append(all, def)
		kinds[def.Kind] = append(kinds[def.Kind], e)
	}
	for i, def := range all {
		r.describe(entries[i], def)
	}
	for i, kind := range []string{"query", "mutation", "subscription"} {
		r.operations(roots[i], kind)
	}
	for kind, list := range kinds {
		if len(list) > 0 {
			r.ref.Types = append(r.ref.Types, &Group{Name: kindTitles[kind], Entries: list})
		}
	}
	return r.ref, nil
}

var (
	kindNames  = [...]string{"schema", "scalar", "type", "interface", "union", "enum", "input", "directive"}
	kindTitles = [...]string{"", "Scalars", "Objects", "Interfaces", "Unions", "Enums", "Inputs", ""}
)

// roots returns the names of the root types of queries, mutations and subscriptions.
func (r *schemaReader) roots() [3]string {
	roots := [3]string{"Query", "Mutation", "Subscription"}
	for _, d := range r.doc.Definitions {
		if d.Kind != syntax.TypeSystemDefinition || r.doc.TypeDefs[d.Index].Kind != syntax.SchemaDef {
			continue
		}
		def := &r.doc.TypeDefs[d.Index]
		if !def.Extension {
			roots = [3]string{}
		}
		for _, t := range r.doc.RootTypes[def.RootTypes.Lo:def.RootTypes.Hi] {
			roots[t.Operation] = r.doc.Text(t.Type)
		}
	}
	return roots
}

func isRoot(roots [3]string, name string) bool { return slices.Contains(roots[:], name) }

// operations adds the fields of a root type.
func (r *schemaReader) operations(root, kind string) {
	g := &Group{Name: map[string]string{"query": "Queries", "mutation": "Mutations", "subscription": "Subscriptions"}[kind]}
	for _, def := range r.all[root] {
		if root == "" || def.Kind != syntax.ObjectDef {
			continue
		}
		for j := def.Fields.Lo; j < def.Fields.Hi; j++ {
			f := &r.doc.FieldDefs[j]
			name := r.doc.Text(f.Name)
			e := &Entry{ID: kind + "." + name, Method: kind, Name: name, Text: r.text(f.Description), Returns: r.typeOf(f.Type)}
			e.Why, e.Deprecated = sdl.Deprecation(r.doc, f.Directives)
			e.Parameters = r.inputs(f.Arguments)
			e.Query = r.sample(kind, f)
			g.Entries = append(g.Entries, r.ref.add(e))
		}
	}
	if len(g.Entries) > 0 {
		r.ref.Groups = append(r.ref.Groups, g)
	}
}

// describe fills in the entry of a type, with what extensions add to it.
func (r *schemaReader) describe(e *Entry, first *syntax.TypeDef) {
	e.Text = r.text(first.Description)
	for _, def := range r.all[e.Name] {
		if def.Kind != first.Kind {
			continue
		}
		for j := def.Fields.Lo; j < def.Fields.Hi; j++ {
			f := &r.doc.FieldDefs[j]
			n := &Node{Name: r.doc.Text(f.Name), Type: *r.typeOf(f.Type), Text: r.text(f.Description), Arguments: r.inputs(f.Arguments)}
			n.Why, n.Deprecated = sdl.Deprecation(r.doc, f.Directives)
			e.Fields = append(e.Fields, n)
		}
		if def.Kind == syntax.InputObjectDef {
			e.Fields = append(e.Fields, r.inputs(def.Inputs)...)
		}
		for j := def.EnumValues.Lo; j < def.EnumValues.Hi; j++ {
			v := &r.doc.EnumValues[j]
			n := &Node{Name: r.doc.Text(v.Name), Text: r.text(v.Description)}
			n.Why, n.Deprecated = sdl.Deprecation(r.doc, v.Directives)
			e.Values = append(e.Values, n)
		}
		for _, span := range slices.Concat(r.doc.Names[def.Interfaces.Lo:def.Interfaces.Hi], r.doc.Names[def.Members.Lo:def.Members.Hi]) {
			name := r.doc.Text(span)
			e.Members = append(e.Members, Type{Text: name, Name: name, ID: r.ids[name]})
		}
	}
}

func (r *schemaReader) inputs(in syntax.Range) (all []*Node) {
	for i := in.Lo; i < in.Hi; i++ {
		d := &r.doc.InputDefs[i]
		n := &Node{Name: r.doc.Text(d.Name), Type: *r.typeOf(d.Type), Text: r.text(d.Description)}
		n.Required = r.doc.Types[d.Type].Kind == syntax.NonNullType && d.Default == syntax.None
		if d.Default != syntax.None {
			n.Facts = append(n.Facts, "default "+r.doc.Text(r.doc.Values[d.Default].Text))
		}
		n.Why, n.Deprecated = sdl.Deprecation(r.doc, d.Directives)
		all = append(all, n)
	}
	return all
}

// text returns a description.
func (r *schemaReader) text(index uint32) string {
	if index == syntax.None {
		return ""
	}
	return r.doc.StringValue(&r.doc.Values[index])
}

// typeOf returns a type as it is written, with the page of the named type.
func (r *schemaReader) typeOf(index uint32) *Type {
	t := &Type{Text: r.written(index)}
	at := index
	for r.doc.Types[at].Kind != syntax.NamedType {
		at = r.doc.Types[at].Of
	}
	t.Name = r.doc.Text(r.doc.Types[at].Text)
	t.Before, t.After, _ = strings.Cut(t.Text, t.Name)
	t.ID = r.ids[t.Name]
	return t
}

func (r *schemaReader) written(index uint32) string {
	switch t := &r.doc.Types[index]; t.Kind {
	case syntax.ListType:
		return "[" + r.written(t.Of) + "]"
	case syntax.NonNullType:
		return r.written(t.Of) + "!"
	default:
		return r.doc.Text(t.Text)
	}
}

// sample returns an operation that selects a field, with the fields of its type that have
// no type of their own.
func (r *schemaReader) sample(kind string, f *syntax.FieldDef) string {
	var b, variables strings.Builder
	for i := f.Arguments.Lo; i < f.Arguments.Hi; i++ {
		d := &r.doc.InputDefs[i]
		if r.doc.Types[d.Type].Kind != syntax.NonNullType || d.Default != syntax.None {
			continue
		}
		name := r.doc.Text(d.Name)
		if variables.Len() > 0 {
			variables.WriteString(", ")
			b.WriteString(", ")
		}
		variables.WriteString("$" + name + ": " + r.written(d.Type))
		b.WriteString(name + ": $" + name)
	}
	head, call := kind, r.doc.Text(f.Name)
	if variables.Len() > 0 {
		head, call = kind+"("+variables.String()+")", call+"("+b.String()+")"
	}
	selection := r.selection(r.typeOf(f.Type).Name)
	return head + " {\n  " + call + selection + "\n}"
}

// selection returns the fields of a type to select in a sample; "" for a leaf.
func (r *schemaReader) selection(name string) string {
	def := r.defs[name]
	if def == nil {
		return ""
	}
	switch def.Kind {
	case syntax.ObjectDef, syntax.InterfaceDef:
	case syntax.UnionDef:
		return " { __typename }"
	default:
		return ""
	}
	var fields []string
	for i := def.Fields.Lo; i < def.Fields.Hi && len(fields) < 4; i++ {
		f := &r.doc.FieldDefs[i]
		inner := r.defs[r.typeOf(f.Type).Name]
		if f.Arguments.Len() == 0 && (inner == nil || inner.Kind == syntax.ScalarDef || inner.Kind == syntax.EnumDef) {
			fields = append(fields, r.doc.Text(f.Name))
		}
	}
	if len(fields) == 0 {
		fields = []string{"__typename"}
	}
	return " {\n    " + strings.Join(fields, "\n    ") + "\n  }"
}
