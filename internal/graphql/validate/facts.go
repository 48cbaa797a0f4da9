// Package validate checks operations against a schema by all rules of the GraphQL
// specification, and gathers facts about an operation for governance.
//
// Rules: GraphQL specification, September 2025, section 5. Messages and locations
// are those of the reference implementation.
package validate

import (
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// Facts describe one operation of a valid document. They depend on the schema and
// the text only, not on the client, and are immutable.
type Facts struct {
	Kind syntax.OperationKind
	Name string // "" if anonymous

	// Fields are the fields that the operation can read, each once, in the
	// order of their first appearance. A field is named with the type that it is
	// selected on: the type condition around it, else the declared type of the
	// field above. __typename, and all that is selected beneath __schema and
	// __type, are not in it; __schema and __type themselves are.
	//
	// What a field is selected on can turn out to be all objects of that type,
	// unless fragments around it, up to the selection set that they are in, leave
	// fewer. Such a field is in Narrowed instead. One that is left no object at
	// all, which no answer can hold, is in Fields like those that are left all.
	Fields   []schema.FieldID
	Below    []uint16         // for each of Fields: levels beneath the deepest of its appearances
	Narrowed []Narrowed       // each pair of field and objects once
	Objects  []schema.FieldID // what Narrowed refers to

	// A level is a field other than __typename: a selection set of only __typename
	// is no level. Fragments are no levels.
	Depth uint16 // most nested levels, 1 for { a }
	Roots []Root // root fields as the root type has them, each once; __typename, and what is left no object, left out

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
	Below uint16 // levels beneath the deepest of its appearances as a root
}

// Narrowed is a field that is selected on an interface where fragments around it
// leave some of the interface's objects only.
type Narrowed struct {
	Field   schema.FieldID // of the interface
	Objects syntax.Range   // in Facts.Objects: the field of each object that is left
	Below   uint16         // levels beneath the deepest of its appearances with these objects
}

// A Variable is a variable of an operation, to be filled from JSON.
type Variable struct {
	Name       string
	Type       schema.TypeRef
	HasDefault bool
	Location   syntax.Location // of its definition, that of "$"
}
