package sdl

import "github.com/sluicegate/sluice/internal/graphql/syntax"

// Check returns everything that is wrong with a schema, in order of position,
// each thing once: at most maxProblems, and then one that says that there are
// more.
func Check(doc *syntax.Document) []*Problem {
	c := &checker{report: report{doc: doc}, doc: doc, text: string(doc.Source)}
	if !c.withinBounds() {
		return c.problems()
	}
	c.index()
	c.knownTypes()
	return c.problems()
}

// A checker holds one document against the rules.
type checker struct {
	report
	doc  *syntax.Document
	text string // the source

	types map[string]*typ
}

// A typ is a type as its first definition and all extensions make it.
type typ struct {
	name    string
	kind    syntax.TypeDefKind
	builtIn bool
	parts   []*syntax.TypeDef // the definition, then the extensions; of a built-in type none
}

// name returns the text of a span.
func (c *checker) name(s syntax.Span) string { return c.text[s.Start:s.End] }

// withinBounds reports what there is too much of.
func (c *checker) withinBounds() bool {
	ok := true
	for _, bound := range []struct {
		what      string
		have, max int
	}{
		{"bytes", len(c.doc.Source), MaxBytes},
		{"definitions", len(c.doc.TypeDefs), MaxTypes},
		{"fields", len(c.doc.FieldDefs), MaxFields},
		{"arguments and input fields", len(c.doc.InputDefs), MaxArguments},
		{"enum values", len(c.doc.EnumValues), MaxValues},
	} {
		if bound.have > bound.max {
			ok = false
			c.addf(0, nil, "the schema has %d %s, the limit is %d", bound.have, bound.what, bound.max)
		}
	}
	return c.narrowTypes() && ok
}

// narrowTypes reports types with more wrappers than a schema can hold.
func (c *checker) narrowTypes() bool {
	ok := true
	depth := make([]uint16, len(c.doc.Types))
	for i := range c.doc.Types {
		t := &c.doc.Types[i]
		if t.Kind == syntax.NamedType {
			continue
		}
		n := 0
		for at := uint32(i); c.doc.Types[at].Kind != syntax.NamedType; at = c.doc.Types[at].Of {
			n++
		}
		depth[i] = uint16(n)
	}
	for i := range depth {
		if depth[i] == MaxWrappers+1 {
			ok = false
			c.addf(c.doc.Types[i].Text.Start, nil, "a type can have at most %d lists and non-nulls around it", MaxWrappers)
		}
	}
	return ok
}

// index gathers the definitions.
func (c *checker) index() {
	c.types = map[string]*typ{}
	builtIns := BuiltIns()
	for i := range builtIns.TypeDefs {
		if def := &builtIns.TypeDefs[i]; def.Kind != syntax.DirectiveDef {
			name := builtIns.Text(def.Name)
			c.types[name] = &typ{name: name, kind: def.Kind, builtIn: true}
		}
	}
	for i := range c.doc.TypeDefs {
		def := &c.doc.TypeDefs[i]
		name := c.name(def.Name)
		if def.Kind == syntax.SchemaDef || def.Kind == syntax.DirectiveDef || def.Extension || c.types[name] != nil {
			continue
		}
		c.types[name] = &typ{name: name, kind: def.Kind, parts: []*syntax.TypeDef{def}}
	}
}

// knownTypes reports names of types that there are not.
func (c *checker) knownTypes() {
	for i := range c.doc.Types {
		if t := &c.doc.Types[i]; t.Kind == syntax.NamedType {
			c.knownType(t.Text)
		}
	}
	for i := range c.doc.TypeDefs {
		def := &c.doc.TypeDefs[i]
		for _, name := range c.doc.Names[def.Interfaces.Lo:def.Interfaces.Hi] {
			c.knownType(name)
		}
		if def.Kind == syntax.UnionDef {
			for _, name := range c.doc.Names[def.Members.Lo:def.Members.Hi] {
				c.knownType(name)
			}
		}
	}
	for i := range c.doc.RootTypes {
		c.knownType(c.doc.RootTypes[i].Type)
	}
}

func (c *checker) knownType(name syntax.Span) {
	if c.types[c.name(name)] == nil {
		c.addf(name.Start, nil, "Unknown type %q.", c.name(name))
	}
}
