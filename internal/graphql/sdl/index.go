package sdl

import (
	"slices"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A typ holds all definitions and extensions of a type.
type typ struct {
	id      uint32 // of the name
	name    string
	kind    syntax.TypeDefKind // of the first definition
	builtIn bool
	defined bool              // or built-in; else extended only
	all     []*syntax.TypeDef // every definition and extension, in document order
	parts   []*syntax.TypeDef // those that count: the first definition, and extensions of its kind; none when built-in
	oneOf   bool

	// Filled by gather, of the parts, names once each.
	fields     []uint32 // in FieldDefs
	inputs     []uint32 // in InputDefs
	required   []uint32 // those of inputs that have to be given
	interfaces []link   // as written, double ones included
	members    []link
	supers     []uint32 // names of interfaces, sorted
	subs       []uint32 // names of members, sorted
}

// start returns where the definition begins.
func (t *typ) start() uint32 { return t.parts[0].Start }

// starts returns where the extensions begin.
func (t *typ) starts() (at []uint32) {
	for _, part := range t.parts[1:] {
		at = append(at, part.Start)
	}
	return at
}

// A link is the name of a type in the list of another one.
type link struct {
	at uint32
	to *typ
}

// A directive is the definition of a directive, the document's own or a
// built-in one.
type directive struct {
	name       string
	doc        *syntax.Document
	def        *syntax.TypeDef
	places     uint32 // bits by place
	repeatable bool
	arguments  map[string]*syntax.InputDef
	required   []*syntax.InputDef // those of arguments that have to be given
}

// index numbers the names and gathers the definitions under them.
func (c *checker) index() {
	c.typeAt, c.directives = map[uint32]*typ{}, map[uint32]*directive{}
	builtIns := BuiltIns()
	for i := range builtIns.TypeDefs {
		def := &builtIns.TypeDefs[i]
		if def.Kind == syntax.DirectiveDef {
			c.defineDirective(builtIns, def)
			continue
		}
		t := c.typeNamed(builtIns.Text(def.Name))
		t.kind, t.builtIn, t.defined = def.Kind, true, true
	}
	c.fieldIDs, c.inputIDs = make([]uint32, len(c.doc.FieldDefs)), make([]uint32, len(c.doc.InputDefs))
	for i := range c.doc.FieldDefs {
		c.fieldIDs[i] = c.id(c.name(c.doc.FieldDefs[i].Name))
	}
	for i := range c.doc.InputDefs {
		c.inputIDs[i] = c.id(c.name(c.doc.InputDefs[i].Name))
	}
	for i := range c.doc.TypeDefs {
		switch def := &c.doc.TypeDefs[i]; def.Kind {
		case syntax.SchemaDef:
		case syntax.DirectiveDef:
			c.defineDirective(c.doc, def)
		default:
			c.defineType(def)
		}
	}
	for _, t := range c.types {
		t.choose()
	}
}

func (c *checker) typeNamed(name string) *typ {
	id := c.id(name)
	t := c.typeAt[id]
	if t == nil {
		t = &typ{id: id, name: name}
		c.typeAt[id] = t
		c.types = append(c.types, t)
	}
	return t
}

func (c *checker) defineType(def *syntax.TypeDef) {
	t := c.typeNamed(c.name(def.Name))
	t.all = append(t.all, def)
	if !def.Extension && !t.defined {
		t.kind, t.defined = def.Kind, true
		t.oneOf = def.Kind == syntax.InputObjectDef && c.use(def.Directives, "oneOf") != nil
	}
}

// choose picks the parts that make up the type.
func (t *typ) choose() {
	if t.builtIn || !t.defined {
		return
	}
	first := slices.IndexFunc(t.all, func(def *syntax.TypeDef) bool { return !def.Extension })
	t.parts = append(t.parts, t.all[first])
	for _, def := range t.all {
		if def.Extension && def.Kind == t.kind {
			t.parts = append(t.parts, def)
		}
	}
}

// defineDirective notes a directive. A later definition replaces an earlier one,
// and so a document's own replaces the built-in one.
func (c *checker) defineDirective(doc *syntax.Document, def *syntax.TypeDef) {
	d := &directive{name: doc.Text(def.Name), doc: doc, def: def, repeatable: def.Repeatable, arguments: map[string]*syntax.InputDef{}}
	for i := def.Inputs.Lo; i < def.Inputs.Hi; i++ {
		input := &doc.InputDefs[i]
		d.arguments[doc.Text(input.Name)] = input
		if required(doc, input) {
			d.required = append(d.required, input)
		}
	}
	for _, at := range doc.Names[def.Members.Lo:def.Members.Hi] {
		if i := slices.Index(places[:], string(doc.Bytes(at))); i >= 0 {
			d.places |= 1 << i
		}
	}
	c.directives[c.id(d.name)] = d
}

// gather collects what types are made of.
func (c *checker) gather() {
	c.inputAt, c.valueAt = map[[2]uint32]uint32{}, map[[2]uint32]struct{}{}
	for _, t := range c.types {
		for _, part := range t.parts {
			c.gatherPart(t, part)
		}
		slices.Sort(t.supers)
		slices.Sort(t.subs)
	}
}

func (c *checker) gatherPart(t *typ, part *syntax.TypeDef) {
	if part == t.parts[0] {
		c.members.clear()
	}
	for i := part.Fields.Lo; i < part.Fields.Hi; i++ {
		if c.first(c.fieldIDs[i]) {
			t.fields = append(t.fields, i)
		}
	}
	for i := part.Inputs.Lo; i < part.Inputs.Hi; i++ {
		if !c.first(c.inputIDs[i]) {
			continue
		}
		t.inputs = append(t.inputs, i)
		c.inputAt[[2]uint32{t.id, c.inputIDs[i]}] = i
		if required(c.doc, &c.doc.InputDefs[i]) {
			t.required = append(t.required, i)
		}
	}
	for i := part.EnumValues.Lo; i < part.EnumValues.Hi; i++ {
		c.valueAt[[2]uint32{t.id, c.id(c.name(c.doc.EnumValues[i].Name))}] = struct{}{}
	}
	t.interfaces, t.supers = c.links(t.interfaces, t.supers, part.Interfaces)
	t.members, t.subs = c.links(t.members, t.subs, part.Members)
}

// first reports whether a name comes up for the first time.
func (c *checker) first(id uint32) bool {
	_, known := c.members.get(id)
	c.members.set(id, 0)
	return !known
}

// links appends the types of a list of names, those that exist.
func (c *checker) links(all []link, ids []uint32, names syntax.Range) ([]link, []uint32) {
	for _, at := range c.doc.Names[names.Lo:names.Hi] {
		if t := c.typeAt[c.id(c.name(at))]; t != nil && t.defined {
			all, ids = append(all, link{at.Start, t}), append(ids, t.id)
		}
	}
	return all, ids
}

// required reports whether an argument or input field has to be given.
func required(doc *syntax.Document, input *syntax.InputDef) bool {
	return doc.Types[input.Type].Kind == syntax.NonNullType && input.Default == syntax.None
}
