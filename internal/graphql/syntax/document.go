// Package syntax reads GraphQL documents, operations and schemas alike, into
// flat tables. It knows the grammar and nothing of types.
//
// Grammar: GraphQL specification, September 2025, section 2 and appendix B.
package syntax

import "strconv"

// A Span is a piece of Document.Source, in bytes. An empty one is absent.
type Span struct{ Start, End uint32 }

// A Range is a run of elements [Lo, Hi) of one of a Document's slices.
type Range struct{ Lo, Hi uint32 }

// Len returns how many elements the range has.
func (r Range) Len() int { return int(r.Hi - r.Lo) }

// None is the index of an absent element.
const None = ^uint32(0)

// A Document is a parsed document. Its parts lie in slices and name each other
// by index, so that a document that is parsed into again allocates nothing once
// its slices have grown. What belongs to one parent is contiguous.
type Document struct {
	Source []byte // what was parsed; spans refer to it
	Tokens int    // how many tokens it has, comments not counted

	Definitions []Definition // in document order
	Operations  []Operation
	Fragments   []Fragment
	Variables   []Variable
	Selections  []Selection
	Arguments   []Argument // of fields and directives, and fields of object values
	Directives  []Directive
	Values      []Value
	Types       []TypeRef

	// Of schemas only.
	TypeDefs   []TypeDef
	FieldDefs  []FieldDef
	InputDefs  []InputDef // arguments of fields and directives, and input fields
	EnumValues []EnumValue
	RootTypes  []RootType
	Names      []Span // interfaces, union members and directive locations

	// Of what is being parsed: the children of parents that are still open,
	// which go to the slices above when these are closed.
	selections []Selection
	arguments  []Argument
	values     []Value
}

// DefinitionKind is the slice that contains a Definition.
type DefinitionKind uint8

// The kinds of definitions.
const (
	OperationDefinition DefinitionKind = iota
	FragmentDefinition
	TypeSystemDefinition
)

// A Definition is one definition of a document: an element of Operations,
// Fragments or TypeDefs.
type Definition struct {
	Kind  DefinitionKind
	Index uint32
}

// OperationKind is the kind of an operation.
type OperationKind uint8

// The kinds of operations.
const (
	Query OperationKind = iota
	Mutation
	Subscription
)

// String returns the keyword: query, mutation or subscription.
func (k OperationKind) String() string {
	return [...]string{"query", "mutation", "subscription"}[k]
}

// An Operation is one operation of a document.
type Operation struct {
	Kind       OperationKind
	Start      uint32 // of the description, else of the keyword, of "{" in the short form
	Name       Span   // empty when anonymous
	Variables  Range
	Directives Range
	Selections Range
}

// A Fragment is the definition of a fragment.
type Fragment struct {
	Start         uint32 // of the description, else of the keyword
	Name          Span
	TypeCondition Span
	Directives    Range
	Selections    Range
}

// A Variable is the definition of a variable.
type Variable struct {
	Start      uint32 // of the description, else of "$"
	Name       Span   // without "$"
	Type       uint32 // in Types
	Default    uint32 // in Values, or None
	Directives Range
}

// SelectionKind is the kind of a selection.
type SelectionKind uint8

// The kinds of selections.
const (
	Field SelectionKind = iota
	FragmentSpread
	InlineFragment
)

// A Selection is an element of a selection set.
type Selection struct {
	Kind       SelectionKind
	Start      uint32 // of the alias or name of a field, of "..." else
	Name       Span   // of the field, of the fragment that is spread, of the type condition (empty: none)
	Alias      Span   // of a field; empty: none
	Arguments  Range
	Directives Range
	Selections Range  // empty when there is no selection set
	SetStart   uint32 // of the "{" of the selection set, 0 without one
}

// ResponseKey returns the span of a field's name in the answer.
func (s *Selection) ResponseKey() Span {
	if s.Alias.End > 0 {
		return s.Alias
	}
	return s.Name
}

// An Argument is a name with a value: an argument, or a field of an object
// value.
type Argument struct {
	Start uint32
	Name  Span
	Value uint32 // in Values
}

// A Directive is the use of a directive.
type Directive struct {
	Start     uint32 // of "@"
	Name      Span   // without "@"
	Arguments Range
}

// ValueKind is the kind of a value.
type ValueKind uint8

// The kinds of values.
const (
	VariableValue ValueKind = iota
	IntValue
	FloatValue
	StringValue
	BlockStringValue
	BooleanValue
	NullValue
	EnumValueKind
	ListValue
	ObjectValue
)

// A Value is a literal or a variable.
type Value struct {
	Kind  ValueKind
	Text  Span  // as written: with "$", quotes and brackets
	Items Range // of a list: in Values; of an object: in Arguments
}

// TypeRefKind is the kind of a reference to a type.
type TypeRefKind uint8

// The kinds of references to types.
const (
	NamedType TypeRefKind = iota
	ListType
	NonNullType
)

// A TypeRef is a reference to a type.
type TypeRef struct {
	Kind TypeRefKind
	Text Span   // as written: the name alone for a named type
	Of   uint32 // in Types: what is wrapped, None for a named type
}

// TypeDefKind is the kind of a type system definition.
type TypeDefKind uint8

// The kinds of type system definitions.
const (
	SchemaDef TypeDefKind = iota
	ScalarDef
	ObjectDef
	InterfaceDef
	UnionDef
	EnumDef
	InputObjectDef
	DirectiveDef
)

// A TypeDef is a definition of a schema, or the extension of one.
type TypeDef struct {
	Kind        TypeDefKind
	Extension   bool
	Repeatable  bool   // of a directive
	EmptyBody   bool   // braces with nothing in between
	Start       uint32 // of the description, else of the keyword
	Description uint32 // in Values, or None
	Name        Span   // empty for a schema
	Interfaces  Range  // in Names
	Directives  Range
	Fields      Range // in FieldDefs
	Inputs      Range // in InputDefs: input fields, arguments of a directive
	EnumValues  Range
	RootTypes   Range
	Members     Range // in Names: of a union, locations of a directive
}

// A FieldDef is a field of an object or interface type.
type FieldDef struct {
	Start       uint32
	Description uint32 // in Values, or None
	Name        Span
	Arguments   Range  // in InputDefs
	Type        uint32 // in Types
	Directives  Range
}

// An InputDef is an argument or an input field.
type InputDef struct {
	Start       uint32
	Description uint32 // in Values, or None
	Name        Span
	Type        uint32 // in Types
	Default     uint32 // in Values, or None
	Directives  Range
}

// An EnumValue is a value of an enum type.
type EnumValue struct {
	Start       uint32
	Description uint32 // in Values, or None
	Name        Span
	Directives  Range
}

// A RootType is the root type of a kind of operations.
type RootType struct {
	Start     uint32
	Operation OperationKind
	Type      Span
}

// Bytes returns the bytes of a span. They are those of Source.
func (d *Document) Bytes(s Span) []byte { return d.Source[s.Start:s.End] }

// Text returns the text of a span.
func (d *Document) Text(s Span) string { return string(d.Source[s.Start:s.End]) }

// A Location is a place in a document as GraphQL clients read it: both numbers
// from 1, the column in UTF-16 code units.
type Location struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// An Error is a fault in a document, with the places it is about.
type Error struct {
	Message   string
	Locations []Location
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Limits bound what is parsed. Zero is no limit, but nesting and size are bounded
// in any case: at 1,000 and at 2 GiB.
type Limits struct {
	Bytes      int // of the document
	Tokens     int
	Depth      int // of nested selection sets; an operation's own is the first
	ValueDepth int // of nested lists and objects in values, and of lists in types
	Aliases    int
	Directives int // uses of directives
	Literals   int // values that are not variables, and each value in them
	Fragments  int
	Operations int
}

// A LimitError reports a document that exceeds Limits.
type LimitError struct {
	What string // what there is too much of: bytes, tokens, depth, value depth, aliases, directives, literals, fragments or operations
	Max  int    // how much is allowed
}

// Error names the limit and its value.
func (e *LimitError) Error() string {
	return "document exceeds the limit on " + e.What + ": at most " + strconv.Itoa(e.Max)
}
