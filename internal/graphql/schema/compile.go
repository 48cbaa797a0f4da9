package schema

import (
	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A source is a document that definitions come from.
type source struct {
	doc     *syntax.Document
	text    string // the document's source, so that names are parts of it
	builtIn bool
}

// name returns the text of a span, which holds on to the whole source.
func (s *source) name(at syntax.Span) string { return s.text[at.Start:at.End] }

// A part is the definition of a type or one of its extensions.
type part struct {
	*source
	def *syntax.TypeDef
}

// A merged is a type with all its parts, the definition first.
type merged struct {
	name  string
	parts []part
}

// A compiler turns documents into the tables of a schema.
type compiler struct {
	*Schema
	texts   *texts
	sources []*source
	types   []merged // by TypeID once they are ordered
	ids     map[string]TypeID
	known   map[string]struct{} // names of the type that rows are made for
	roots   [3]string           // by syntax.OperationKind
}

// Compile turns a document that sdl.Check finds nothing wrong with into a
// schema. Of others it makes a schema that may be of no use. The document is not
// held on to.
func Compile(doc *syntax.Document) *Schema {
	builtIns := sdl.BuiltIns()
	c := compiler{
		Schema: &Schema{Query: NoType, Mutation: NoType, Subscription: NoType, SchemaField: NoField, TypeField: NoField},
		texts:  newTexts(),
		sources: []*source{
			{doc: doc, text: string(doc.Source)},
			{doc: builtIns, text: string(builtIns.Source), builtIn: true},
		},
		ids:   map[string]TypeID{},
		known: map[string]struct{}{},
	}
	c.reserve()
	c.collect()
	c.order()
	c.findRoots()
	for t := range c.types {
		c.addType(TypeID(t))
	}
	c.addDirectives()
	c.relate()
	c.index()
	return c.Schema
}

// reserve makes room for what the documents hold, and no more than that.
func (c *compiler) reserve() {
	fields, inputs, values := 2, 1, 0 // __schema and __type(name:)
	for _, s := range c.sources {
		fields += len(s.doc.FieldDefs)
		inputs += len(s.doc.InputDefs)
		values += len(s.doc.EnumValues)
	}
	c.Fields, c.Inputs, c.Values = make([]Field, 0, fields), make([]Input, 0, inputs), make([]Value, 0, values)
}

// collect gathers the definitions of types, each with its extensions. A
// built-in type cannot be redefined: a definition of it is passed over.
func (c *compiler) collect() {
	reserved := c.reserved()
	at := map[string]int{}
	c.eachDefinition(func(p part) {
		name := p.name(p.def.Name)
		_, twice := at[name]
		if p.def.Extension || twice || reserved[name] && !p.builtIn {
			return
		}
		at[name] = len(c.types)
		c.types = append(c.types, merged{name: name, parts: []part{p}})
	})
	c.eachDefinition(func(p part) {
		i, ok := at[p.name(p.def.Name)]
		if !p.def.Extension || !ok || c.types[i].parts[0].builtIn {
			return
		}
		c.types[i].parts = append(c.types[i].parts, p)
	})
}

func (c *compiler) reserved() map[string]bool {
	names := map[string]bool{}
	c.eachDefinition(func(p part) {
		if p.builtIn {
			names[p.name(p.def.Name)] = true
		}
	})
	return names
}

// eachDefinition calls do for each definition and extension of a type.
func (c *compiler) eachDefinition(do func(part)) {
	for _, s := range c.sources {
		for i := range s.doc.TypeDefs {
			def := &s.doc.TypeDefs[i]
			if def.Kind != syntax.SchemaDef && def.Kind != syntax.DirectiveDef {
				do(part{s, def})
			}
		}
	}
}

// order numbers the types, objects first: sets of objects are then short.
func (c *compiler) order() {
	ordered := make([]merged, 0, len(c.types))
	for _, objects := range []bool{true, false} {
		for _, t := range c.types {
			if (t.parts[0].def.Kind == syntax.ObjectDef) == objects {
				c.ids[t.name] = TypeID(len(ordered))
				ordered = append(ordered, t)
			}
		}
	}
	c.types = ordered
}

// findRoots finds the types that operations start from: those that the schema
// definition and its extensions name, else those of the default names.
func (c *compiler) findRoots() {
	explicit := false
	for _, s := range c.sources {
		for i := range s.doc.TypeDefs {
			if def := &s.doc.TypeDefs[i]; def.Kind == syntax.SchemaDef {
				explicit = explicit || !def.Extension
				c.nameRoots(s, def)
			}
		}
	}
	if !explicit {
		c.defaultRoots()
	}
	for kind, id := range []*TypeID{&c.Query, &c.Mutation, &c.Subscription} {
		if t, ok := c.ids[c.roots[kind]]; ok {
			*id = t
		}
	}
}

func (c *compiler) nameRoots(s *source, def *syntax.TypeDef) {
	for _, root := range s.doc.RootTypes[def.RootTypes.Lo:def.RootTypes.Hi] {
		c.roots[root.Operation] = s.name(root.Type)
	}
}

func (c *compiler) defaultRoots() {
	for kind, name := range []string{"Query", "Mutation", "Subscription"} {
		if _, ok := c.ids[name]; ok {
			c.roots[kind] = name
		}
	}
}
