package sdl

import "github.com/sluicegate/sluice/internal/graphql/syntax"

// Check returns everything that is wrong with a schema, in order of position,
// each thing once: at most 1,000 problems, and then one that says that there are
// more. A schema that is too large is not looked at further.
func Check(doc *syntax.Document) []*Problem {
	c := newChecker(doc)
	if c.withinBounds() {
		c.index()
		c.checkDocument()
		c.checkSchema()
	}
	return c.problems()
}

// A checker holds one document against the rules.
//
// Names are numbered, so that what was seen under a name is found in a slice.
type checker struct {
	report
	doc  *syntax.Document
	text string // the source

	ids      map[string]uint32 // names
	fieldIDs []uint32          // the names of FieldDefs
	inputIDs []uint32          // the names of InputDefs

	types      []*typ          // by first appearance in the document, the built-in ones first
	typeAt     map[uint32]*typ // by name
	directives map[uint32]*directive

	members marks // of names, for whatever is being looked at
	others  marks // the same, for what is inside of that

	inputAt map[[2]uint32]uint32   // InputDefs by input object and name
	valueAt map[[2]uint32]struct{} // values of enums
}

func newChecker(doc *syntax.Document) *checker {
	return &checker{report: report{doc: doc}, doc: doc, text: string(doc.Source), ids: map[string]uint32{}}
}

// checkDocument checks what can be said without knowing what types are made of.
func (c *checker) checkDocument() {
	c.definitionsOnly()
	c.uniqueRoots()
	c.uniqueNames()
	c.uniqueMembers()
	c.knownTypes()
	c.extensions()
	c.directiveUses()
	c.objectLiterals()
}

// checkSchema checks the types that the document makes.
func (c *checker) checkSchema() {
	c.gather()
	c.roots()
	c.directiveDefinitions()
	for _, t := range c.types {
		if len(t.parts) > 0 {
			c.checkType(t)
		}
	}
	c.inputCycles()
	c.defaults()
	c.defaultCycles()
	c.directiveCycles()
}

// name returns the text of a span.
func (c *checker) name(s syntax.Span) string { return c.text[s.Start:s.End] }

// id numbers a name.
func (c *checker) id(name string) uint32 {
	id, ok := c.ids[name]
	if !ok {
		id = uint32(len(c.ids))
		c.ids[name] = id
	}
	return id
}

// withinBounds reports what there is too much of.
func (c *checker) withinBounds() bool {
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
			c.addf(0, nil, "the schema has %d %s, at most %d are possible", bound.have, bound.what, bound.max)
		}
	}
	c.narrowTypes()
	return len(c.faults) == 0
}

// narrowTypes reports types with more wrappers than a schema can hold. Every
// wrapped type is a type of the document too, so the one that has exactly one
// wrapper too many speaks for all around it.
func (c *checker) narrowTypes() {
	for i := range c.doc.Types {
		wrappers := 0
		for t := &c.doc.Types[i]; t.Kind != syntax.NamedType && wrappers <= MaxWrappers+1; t = &c.doc.Types[t.Of] {
			wrappers++
		}
		if wrappers == MaxWrappers+1 {
			c.addf(c.doc.Types[i].Text.Start, nil, "a type can be in at most %d lists and non-nulls", MaxWrappers)
		}
	}
}

// definitionsOnly reports operations and fragments, which a schema has none of.
func (c *checker) definitionsOnly() {
	for i := range c.doc.Operations {
		c.addf(c.doc.Operations[i].Start, nil, "a schema cannot hold operations, only definitions of types and directives")
	}
	for i := range c.doc.Fragments {
		c.addf(c.doc.Fragments[i].Start, nil, "a schema cannot hold fragments, only definitions of types and directives")
	}
}

// marks remembers a number for each of some names, and forgets all at once.
type marks struct {
	round uint32
	cells []mark
}

type mark struct{ round, value uint32 }

// clear forgets all names.
func (m *marks) clear() { m.round++ }

func (m *marks) set(id, value uint32) {
	for int(id) >= len(m.cells) {
		m.cells = append(m.cells, make([]mark, max(int(id)+1-len(m.cells), len(m.cells), 64))...)
	}
	m.cells[id] = mark{m.round, value}
}

// get returns the number that a name was set to since the last clear.
func (m *marks) get(id uint32) (uint32, bool) {
	if int(id) >= len(m.cells) || m.cells[id].round != m.round {
		return 0, false
	}
	return m.cells[id].value, true
}
