// Package validate holds operations against a schema by all the rules of the
// GraphQL specification, and gathers what governance asks about an operation.
//
// Rules: GraphQL specification, September 2025, section 5. Texts and locations
// are those that users of the reference implementation know.
package validate

import (
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// Facts are what is to be known about one operation of a valid document. They
// depend on schema and text alone, never on who asks, and never change.
type Facts struct {
	Kind syntax.OperationKind
	Name string // "" when anonymous

	// Fields are the fields that the operation can read, each once, in the
	// order of their first appearance. A field is named with the type that it is
	// selected on. Where enclosing fragments leave fewer objects possible than
	// that type has, it is in Narrowed instead, and the same field of each
	// object that is left is in Fields. __typename, and all that is selected
	// beneath __schema and __type, are in neither.
	Fields   []schema.FieldID
	Narrowed []schema.FieldID

	Below []uint16 // for each of Fields: most nested selection sets beneath any of its appearances
	Roots []Root   // root fields, each once, __typename left out
	Depth uint16   // most nested selection sets, the outermost included

	Introspects     bool   // __schema or __type is selected anywhere
	OnlyIntrospects bool   // nothing else is, but for __typename
	OnlyTypename    string // the answer's "data" object when nothing but __typename is selected, else ""

	Aliases    int // fields with an alias, fragments counted where they are spread
	RootFields int // fields of the outermost selection set, fragments expanded
	Directives int // uses of directives, fragments counted where they are spread
	Tokens     int // of the whole document
	Cost       Cost

	Variables []Variable
}

// A Root is a root field and how deep it goes.
type Root struct {
	Field schema.FieldID
	Below uint16 // most nested selection sets beneath it
}

// A Variable is a variable of an operation, to be filled from JSON.
type Variable struct {
	Name       string
	Type       schema.TypeRef
	HasDefault bool
}
