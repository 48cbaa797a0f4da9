package compose

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// maxNesting is how deep lists and objects in values, and lists in types, go.
const maxNesting = 100

// A reader reads one subgraph.
type reader struct {
	report  *report
	doc     *syntax.Document
	end     uint32 // of the subgraph's own text
	out     *subgraph
	roots   map[string]string // the default names of root types that have others
	refused map[string]bool   // directives that are reported
}

// readSubgraph parses and checks a subgraph, and reports what is wrong with it.
func readSubgraph(s Subgraph, rep *report) *subgraph {
	r := &reader{
		report: rep, doc: &syntax.Document{}, end: uint32(min(len(s.SDL), sdl.MaxBytes)), refused: map[string]bool{},
		out: &subgraph{name: s.Name, types: map[string]*part{}},
	}
	limits := syntax.Limits{Bytes: sdl.MaxBytes, ValueDepth: maxNesting}
	if err := syntax.ParseSchema(r.doc, []byte(s.SDL), limits); err != nil {
		r.unreadable(err)
		return r.out
	}
	r.index()
	text := s.SDL + "\n" + federation
	if !r.hasQuery() {
		text += noQuery
	}
	limits.Bytes = 0 // the text by itself is within the bounds
	if err := syntax.ParseSchema(r.doc, []byte(text), limits); err != nil {
		r.unreadable(err)
		return r.out
	}
	withoutOwn(r.doc, r.end)
	r.findRoots()
	r.refuseUses()
	r.links()
	r.build()
	return r.out
}

// unreadable reports a schema that cannot be parsed.
func (r *reader) unreadable(err error) {
	p := Problem{Code: InvalidSubgraph, Message: err.Error(), Places: []Place{{r.out.name, 1}}}
	if limit, ok := errors.AsType[*syntax.LimitError](err); ok {
		p.Message = "the schema of a subgraph: " + limit.Error()
	}
	if at, ok := errors.AsType[*syntax.Error](err); ok && len(at.Locations) > 0 {
		p.Places[0].Line = at.Locations[0].Line
	}
	r.report.add(p)
}

// index notes where lines begin.
func (r *reader) index() {
	text := r.doc.Source
	for i := 0; i < len(text); i++ {
		n := bytes.IndexAny(text[i:], "\r\n")
		if n < 0 {
			return
		}
		if i += n; text[i] == '\r' && i+1 < len(text) && text[i+1] == '\n' {
			i++
		}
		r.out.lines = append(r.out.lines, uint32(i+1))
	}
}

func (r *reader) line(at uint32) int {
	i, exact := slices.BinarySearch(r.out.lines, at)
	if exact {
		i++
	}
	return i + 1
}

func (r *reader) place(at uint32) Place { return Place{r.out.name, r.line(at)} }

// hasQuery reports whether the schema says what its query type is.
func (r *reader) hasQuery() bool {
	explicit := false
	for i := range r.doc.TypeDefs {
		def := &r.doc.TypeDefs[i]
		for _, root := range r.doc.RootTypes[def.RootTypes.Lo:def.RootTypes.Hi] {
			if root.Operation == syntax.Query {
				return true
			}
		}
		explicit = explicit || def.Kind == syntax.SchemaDef && !def.Extension
	}
	return explicit || slices.ContainsFunc(r.doc.TypeDefs, func(def syntax.TypeDef) bool {
		return def.Kind == syntax.ObjectDef && r.doc.Text(def.Name) == rootNames[syntax.Query]
	})
}

// findRoots finds root types with names of their own, and reports default names that other
// types have: the composed schema has them for its root types.
func (r *reader) findRoots() {
	r.roots = map[string]string{}
	named, explicit := [len(rootNames)]bool{}, false
	for i := range r.doc.TypeDefs {
		def := &r.doc.TypeDefs[i]
		explicit = explicit || def.Kind == syntax.SchemaDef && !def.Extension
		for _, root := range r.doc.RootTypes[def.RootTypes.Lo:def.RootTypes.Hi] {
			if name := r.doc.Text(root.Type); name != rootNames[root.Operation] {
				r.roots[name] = rootNames[root.Operation]
			} else {
				named[root.Operation] = true
			}
		}
	}
	for i := range r.doc.TypeDefs {
		def := &r.doc.TypeDefs[i]
		if def.Kind == syntax.SchemaDef || def.Kind == syntax.DirectiveDef || def.Start >= r.end {
			continue
		}
		name := r.doc.Text(def.Name)
		kind := slices.Index(rootNames[:], name)
		if kind < 0 || named[kind] || !explicit && !r.renamed(name) {
			continue
		}
		r.report.add(Problem{
			Code: RootNameTaken, Message: "the type named '" + name + "' must be the " + syntax.OperationKind(kind).String() + " type, or have another name",
			Type: name, Places: []Place{r.place(def.Start)},
		})
	}
}

// renamed reports whether a type of another name is the root type with a default name.
func (r *reader) renamed(root string) bool {
	for _, to := range r.roots {
		if to == root {
			return true
		}
	}
	return false
}

// typeName returns the name of a type in the composed schema.
func (r *reader) typeName(s syntax.Span) string {
	name := r.doc.Text(s)
	if root, ok := r.roots[name]; ok {
		return root
	}
	return name
}

// build checks the schema by the rules of schemas, and takes in its types. What extends
// types of other subgraphs counts as their definition there.
func (r *reader) build() {
	extends := make([]bool, len(r.doc.TypeDefs))
	defined := map[string]bool{}
	for i := range r.doc.TypeDefs {
		def := &r.doc.TypeDefs[i]
		if len(r.uses(def.Directives, "extends")) > 0 && def.Kind != syntax.SchemaDef {
			def.Extension = true
		}
		if extends[i] = def.Extension; !def.Extension {
			defined[r.doc.Text(def.Name)] = true
		}
	}
	for i := range r.doc.TypeDefs {
		def := &r.doc.TypeDefs[i]
		if name := r.doc.Text(def.Name); def.Extension && def.Kind != syntax.SchemaDef && !defined[name] {
			def.Extension, defined[name] = false, true
		}
	}
	for _, p := range sdl.Check(r.doc) {
		if name, ok := strings.CutPrefix(p.Message, `Unknown directive "@`); ok && r.refused[strings.TrimSuffix(name, `".`)] {
			continue
		}
		r.report.add(Problem{Code: InvalidSubgraph, Message: p.Message, Places: []Place{{r.out.name, p.Location.Line}}})
	}
	for i := range r.doc.TypeDefs {
		def := &r.doc.TypeDefs[i]
		if def.Kind != syntax.SchemaDef && def.Kind != syntax.DirectiveDef && def.Start < r.end && !isFederation(r.doc.Text(def.Name)) {
			r.add(def, extends[i])
		}
	}
	for _, p := range r.out.types {
		p.byName = make(map[string]*field, len(p.fields))
		for _, f := range p.fields {
			p.byName[f.name] = f
		}
	}
}

// add takes in a definition or extension.
func (r *reader) add(def *syntax.TypeDef, extends bool) {
	name := r.typeName(def.Name)
	p := r.out.types[name]
	if p == nil {
		p = &part{in: r.out, name: name, kind: def.Kind, line: r.line(def.Name.Start)}
		r.out.types[name] = p
	}
	if extends {
		p.extended = true
	} else {
		p.defined, p.line = true, r.line(def.Name.Start)
	}
	if p.description == "" {
		p.description = r.description(def.Description)
	}
	for _, s := range r.doc.Names[def.Interfaces.Lo:def.Interfaces.Hi] {
		p.interfaces = append(p.interfaces, r.typeName(s))
	}
	for _, s := range r.doc.Names[def.Members.Lo:def.Members.Hi] {
		p.members = append(p.members, r.typeName(s))
	}
	for i := def.EnumValues.Lo; i < def.EnumValues.Hi; i++ {
		v := &r.doc.EnumValues[i]
		p.values = append(p.values, &value{r.named(v.Name, v.Description, v.Directives)})
	}
	p.inputs = append(p.inputs, r.inputs(def.Inputs)...)
	shareable := len(r.uses(def.Directives, "shareable")) > 0
	p.oneOf = p.oneOf || len(r.uses(def.Directives, "oneOf")) > 0
	for _, use := range r.uses(def.Directives, "specifiedBy") {
		p.specifiedBy = r.text(r.argument(use, "url"))
	}
	r.addKeys(p, def)
	for i := def.Fields.Lo; i < def.Fields.Hi; i++ {
		f := r.field(&r.doc.FieldDefs[i])
		f.shareable = f.shareable || shareable
		if !isFederationField(f.name) || !isRoot(name) {
			p.fields = append(p.fields, f)
		}
	}
}

func (r *reader) addKeys(p *part, def *syntax.TypeDef) {
	for _, use := range r.uses(def.Directives, "key") {
		if def.Kind == syntax.InterfaceDef {
			r.refuse(use.Start, "@key on the interface "+clip(p.name), "put it on the objects")
			continue
		}
		resolvable := r.argument(use, "resolvable")
		set := r.fieldSet(use)
		p.keys = append(p.keys, key{*set, resolvable == nil || r.doc.Text(resolvable.Text) != "false"})
	}
}

func (r *reader) field(def *syntax.FieldDef) *field {
	f := &field{
		named: r.named(def.Name, def.Description, def.Directives), arguments: r.inputs(def.Arguments),
		external: len(r.uses(def.Directives, "external")) > 0, shareable: len(r.uses(def.Directives, "shareable")) > 0,
	}
	f.ref, f.of = r.ref(def.Type)
	f.list = strings.Contains(f.ref, "[")
	for _, use := range r.uses(def.Directives, "requires") {
		f.requires = r.fieldSet(use)
	}
	for _, use := range r.uses(def.Directives, "provides") {
		f.provides = r.fieldSet(use)
	}
	return f
}

func (r *reader) inputs(all syntax.Range) (ins []*input) {
	for i := all.Lo; i < all.Hi; i++ {
		def := &r.doc.InputDefs[i]
		in := &input{named: r.named(def.Name, def.Description, def.Directives)}
		in.ref, _ = r.ref(def.Type)
		if def.Default != syntax.None {
			in.fallback = literal(r.doc, &r.doc.Values[def.Default])
		}
		in.required = in.fallback == "" && strings.HasSuffix(in.ref, "!")
		ins = append(ins, in)
	}
	return ins
}

func (r *reader) named(name syntax.Span, description uint32, uses syntax.Range) named {
	return named{r.doc.Text(name), r.line(name.Start), r.description(description), r.deprecated(uses)}
}

// ref returns a type as it is written, and the type within.
func (r *reader) ref(at uint32) (text, of string) {
	switch t := &r.doc.Types[at]; t.Kind {
	case syntax.NonNullType:
		text, of = r.ref(t.Of)
		return text + "!", of
	case syntax.ListType:
		text, of = r.ref(t.Of)
		return "[" + text + "]", of
	default:
		name := r.typeName(t.Text)
		return name, name
	}
}

func (r *reader) description(at uint32) string {
	if at == syntax.None {
		return ""
	}
	return r.doc.StringValue(&r.doc.Values[at])
}

// deprecated returns the directive of what is deprecated, else "".
func (r *reader) deprecated(uses syntax.Range) string {
	reason, is := sdl.Deprecation(r.doc, uses)
	if !is {
		return ""
	}
	return "@deprecated(reason: " + sdl.Quote(reason) + ")"
}

// uses returns the uses of a directive.
func (r *reader) uses(all syntax.Range, name string) (found []*syntax.Directive) {
	for i := all.Lo; i < all.Hi; i++ {
		if use := &r.doc.Directives[i]; string(r.doc.Bytes(use.Name)) == name {
			found = append(found, use)
		}
	}
	return found
}

// argument returns the value of a directive's argument, or nil.
func (r *reader) argument(use *syntax.Directive, name string) *syntax.Value {
	for _, arg := range r.doc.Arguments[use.Arguments.Lo:use.Arguments.Hi] {
		if string(r.doc.Bytes(arg.Name)) == name {
			return &r.doc.Values[arg.Value]
		}
	}
	return nil
}

// text returns the text of a string, "" for other values.
func (r *reader) text(v *syntax.Value) string {
	if v == nil || v.Kind != syntax.StringValue && v.Kind != syntax.BlockStringValue {
		return ""
	}
	return r.doc.StringValue(v)
}

// literal returns a value in the one notation in which values are compared and printed.
func literal(doc *syntax.Document, v *syntax.Value) string {
	var b strings.Builder
	switch v.Kind {
	case syntax.StringValue, syntax.BlockStringValue:
		return sdl.Quote(doc.StringValue(v))
	case syntax.ListValue:
		for i := v.Items.Lo; i < v.Items.Hi; i++ {
			b.WriteString(separator(i > v.Items.Lo) + literal(doc, &doc.Values[i]))
		}
		return "[" + b.String() + "]"
	case syntax.ObjectValue:
		members := slices.Clone(doc.Arguments[v.Items.Lo:v.Items.Hi])
		slices.SortFunc(members, func(a, b syntax.Argument) int { return bytes.Compare(doc.Bytes(a.Name), doc.Bytes(b.Name)) })
		for i, m := range members {
			b.WriteString(separator(i > 0) + doc.Text(m.Name) + ": " + literal(doc, &doc.Values[m.Value]))
		}
		return "{" + b.String() + "}"
	default:
		return doc.Text(v.Text)
	}
}

func separator(needed bool) string {
	if needed {
		return ", "
	}
	return ""
}
