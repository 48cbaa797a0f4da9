// Package schema holds a GraphQL schema in flat tables that operations are held
// against: a type or field is a number, and questions about them are look-ups.
//
// Types and rules: GraphQL specification, September 2025, section 3.
package schema

// A TypeID is the index of a type in a schema.
type TypeID uint32

// A FieldID is the index of a field of an object or interface type in a schema:
// one number for each pair of owner and name.
type FieldID uint32

// NoType and NoField stand for what does not exist.
const (
	NoType  = ^TypeID(0)
	NoField = ^FieldID(0)
)

// Kind is the kind of a type.
type Kind uint8

// The kinds of types.
const (
	Scalar Kind = iota
	Object
	Interface
	Union
	Enum
	InputObject
)

// Composite reports whether fields can be selected on the kind, or fragments
// spread on it.
func (k Kind) Composite() bool { return k == Object || k == Interface || k == Union }

// Input reports whether variables and arguments can be of the kind.
func (k Kind) Input() bool { return k == Scalar || k == Enum || k == InputObject }

// A TypeRef is a type with its list and non-null wrappers: the type in the low
// 32 bits, above them two bits for each wrapper, the outermost lowest.
type TypeRef uint64

const (
	wrapNonNull = 1
	wrapList    = 2
	wrapBits    = 2

	// MaxWrappers is how many wrappers a reference can have.
	MaxWrappers = 16
)

// Named returns the reference to a type without wrappers.
func Named(t TypeID) TypeRef { return TypeRef(t) }

// Type returns the innermost type.
func (r TypeRef) Type() TypeID { return TypeID(r) }

func (r TypeRef) wrap() uint64 { return uint64(r) >> 32 }

// IsNonNull reports whether the outermost wrapper is non-null.
func (r TypeRef) IsNonNull() bool { return r.wrap()&3 == wrapNonNull }

// IsList reports whether the outermost wrapper is a list.
func (r TypeRef) IsList() bool { return r.wrap()&3 == wrapList }

// IsNamed reports whether the reference has no wrappers.
func (r TypeRef) IsNamed() bool { return r.wrap() == 0 }

// Inner returns what the outermost wrapper wraps.
func (r TypeRef) Inner() TypeRef {
	return TypeRef(r.wrap()>>wrapBits<<32 | uint64(uint32(r)))
}

// Nullable returns the reference without an outermost non-null.
func (r TypeRef) Nullable() TypeRef {
	if r.IsNonNull() {
		return r.Inner()
	}
	return r
}

// NonNull returns the reference wrapped in non-null; false when it has
// MaxWrappers already.
func (r TypeRef) NonNull() (TypeRef, bool) { return r.wrapped(wrapNonNull) }

// List returns the reference wrapped in a list; false when it has MaxWrappers
// already.
func (r TypeRef) List() (TypeRef, bool) { return r.wrapped(wrapList) }

func (r TypeRef) wrapped(by uint64) (TypeRef, bool) {
	full := r.wrap()>>(wrapBits*(MaxWrappers-1)) != 0
	return TypeRef((r.wrap()<<wrapBits|by)<<32 | uint64(uint32(r))), !full
}

// Span is a run [Lo, Hi) of elements of one of a schema's tables.
type Span struct{ Lo, Hi uint32 }

// A Type is a row of Schema.Types.
type Type struct {
	Name    string
	Kind    Kind
	BuiltIn bool // a scalar of the specification or a type of introspection
	OneOf   bool // of an input object: exactly one field is given
	Fields  Span // in Schema.Fields: of objects and interfaces; FieldIDs are these indices
	Inputs  Span // in Schema.Inputs: of input objects
	Values  Span // in Schema.Values: of enums
}

// A Field is a row of Schema.Fields.
type Field struct {
	Name       string
	Owner      TypeID
	Type       TypeRef
	Arguments  Span // in Schema.Inputs
	Deprecated bool
}

// An Input is an argument or an input field: a row of Schema.Inputs.
type Input struct {
	Name       string
	Type       TypeRef
	HasDefault bool
	Deprecated bool
	Default    string // as written, "" without one
}

// Required reports whether a value has to be given.
func (i *Input) Required() bool { return i.Type.IsNonNull() && !i.HasDefault }

// A Value is a value of an enum: a row of Schema.Values.
type Value struct {
	Name       string
	Deprecated bool
}

// Location is a place in a document where a directive may stand.
type Location uint32

// A Directive is a directive that operations or schemas may use: a row of
// Schema.Directives.
type Directive struct {
	Name       string
	Repeatable bool
	BuiltIn    bool     // of the specification, and not defined by the schema itself
	Arguments  Span     // in Schema.Inputs
	Locations  Location // bits: 1 << the place's DirectiveLocation
}

// DirectiveLocation is a place where a directive can stand.
type DirectiveLocation uint8

// The places in operations where directives can stand.
const (
	OnQuery DirectiveLocation = iota
	OnMutation
	OnSubscription
	OnField
	OnFragmentDefinition
	OnFragmentSpread
	OnInlineFragment
	OnVariableDefinition
)

// Allows reports whether the directive may stand at a place.
func (d *Directive) Allows(at DirectiveLocation) bool { return d.Locations&(1<<at) != 0 }

// A Set is a set of types by TypeID, a bit each.
type Set []uint64

// Has reports whether a type is in the set.
func (s Set) Has(t TypeID) bool { return int(t>>6) < len(s) && s[t>>6]&(1<<(t&63)) != 0 }

// Schema is a compiled schema. It never changes and is safe for concurrent use.
//
// The built-in scalars, the introspection types and the directives that every
// schema has are in its tables like all others. The fields __schema and __type
// are fields of the query type; __typename is no field: Typename names it.
type Schema struct {
	Types      []Type
	Fields     []Field
	Inputs     []Input
	Values     []Value
	Directives []Directive

	Query        TypeID // never NoType
	Mutation     TypeID // NoType when there are none
	Subscription TypeID // NoType when there are none

	SchemaField FieldID // __schema of the query type
	TypeField   FieldID // __type of the query type

	possible   []Set      // by TypeID: the objects that a composite type can turn out to be; nil for others
	implements [][]TypeID // by TypeID: interfaces of objects and interfaces, in order of declaration

	types      names
	fields     names
	inputs     names // those of owners with more than fewNames
	values     names
	directives names
}

// RootNamed returns the root type that a name means by default: Query, Mutation or
// Subscription, whatever the schema calls it. It is false for other names, and
// where the schema has no such root.
func (s *Schema) RootNamed(name string) (TypeID, bool) {
	t := NoType
	switch name {
	case "Query":
		t = s.Query
	case "Mutation":
		t = s.Mutation
	case "Subscription":
		t = s.Subscription
	}
	return t, t != NoType
}

// Typename is the meta field that every composite type has.
const Typename = "__typename"

// Possible returns the objects that a composite type can turn out to be, the
// type itself for an object. Objects are numbered before all other types. The
// set must not be changed, and may end before the highest TypeID.
func (s *Schema) Possible(t TypeID) Set { return s.possible[t] }

// Implements returns the interfaces of an object or interface type. The list
// must not be changed.
func (s *Schema) Implements(t TypeID) []TypeID { return s.implements[t] }

// IsMeta reports whether a field is __schema or __type of the query type, which
// printed schemas and comparisons leave out.
func (s *Schema) IsMeta(f FieldID) bool { return f == s.SchemaField || f == s.TypeField }

// RefString returns a reference as it is written: [Int!]!. Of a reference to no
// type it is "".
func (s *Schema) RefString(r TypeRef) string {
	if r.Type() == NoType {
		return ""
	}
	var wrappers [2 * MaxWrappers]byte // brackets to the left, then what closes them
	open, shut := MaxWrappers, 2*MaxWrappers
	for ; !r.IsNamed(); r = r.Inner() {
		shut--
		if wrappers[shut] = '!'; r.IsList() {
			wrappers[shut] = ']'
			open--
			wrappers[open] = '['
		}
	}
	return string(wrappers[open:MaxWrappers]) + s.Types[r.Type()].Name + string(wrappers[shut:])
}
