// Package change says how one GraphQL schema differs from another, what that
// means for clients, and which rules and stored operations it breaks.
package change

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// Level is what a change means for clients that were right before it.
type Level string

// The levels, from bad to good.
const (
	Breaking  Level = "breaking"  // valid operations become invalid, or answers have another shape
	Dangerous Level = "dangerous" // operations stay valid, and clients may meet what they do not expect
	Safe      Level = "safe"
)

// rank is the level's place in lists.
func (l Level) rank() int { return slices.Index([]Level{Breaking, Dangerous, Safe}, l) }

// Kind is the kind of a change. Those that the reference implementation of
// GraphQL knows have its names.
type Kind string

// The kinds of changes.
const (
	TypeRemoved                 Kind = "TYPE_REMOVED"
	TypeAdded                   Kind = "TYPE_ADDED"
	TypeChangedKind             Kind = "TYPE_CHANGED_KIND"
	TypeRemovedFromUnion        Kind = "TYPE_REMOVED_FROM_UNION"
	TypeAddedToUnion            Kind = "TYPE_ADDED_TO_UNION"
	ValueRemovedFromEnum        Kind = "VALUE_REMOVED_FROM_ENUM"
	ValueAddedToEnum            Kind = "VALUE_ADDED_TO_ENUM"
	InterfaceRemoved            Kind = "IMPLEMENTED_INTERFACE_REMOVED"
	InterfaceAdded              Kind = "IMPLEMENTED_INTERFACE_ADDED"
	FieldRemoved                Kind = "FIELD_REMOVED"
	FieldAdded                  Kind = "FIELD_ADDED"
	FieldChangedType            Kind = "FIELD_CHANGED_KIND"
	RequiredInputFieldAdded     Kind = "REQUIRED_INPUT_FIELD_ADDED"
	OptionalInputFieldAdded     Kind = "OPTIONAL_INPUT_FIELD_ADDED"
	RequiredArgumentAdded       Kind = "REQUIRED_ARG_ADDED"
	OptionalArgumentAdded       Kind = "OPTIONAL_ARG_ADDED"
	ArgumentRemoved             Kind = "ARG_REMOVED"
	ArgumentChangedType         Kind = "ARG_CHANGED_KIND"
	ArgumentDefaultChanged      Kind = "ARG_DEFAULT_VALUE_CHANGE"
	InputFieldDefaultChanged    Kind = "INPUT_FIELD_DEFAULT_VALUE_CHANGE"
	OneOfChanged                Kind = "ONE_OF_CHANGED"
	DeprecationChanged          Kind = "DEPRECATION_CHANGED"
	RootTypeChanged             Kind = "ROOT_TYPE_CHANGED"
	DirectiveRemoved            Kind = "DIRECTIVE_REMOVED"
	DirectiveAdded              Kind = "DIRECTIVE_ADDED"
	DirectiveArgumentRemoved    Kind = "DIRECTIVE_ARG_REMOVED"
	DirectiveArgumentChanged    Kind = "DIRECTIVE_ARG_CHANGED"
	RequiredDirectiveArgument   Kind = "REQUIRED_DIRECTIVE_ARG_ADDED"
	OptionalDirectiveArgument   Kind = "OPTIONAL_DIRECTIVE_ARG_ADDED"
	DirectiveRepeatableChanged  Kind = "DIRECTIVE_REPEATABLE_CHANGED"
	DirectiveRepeatableRemoved  Kind = "DIRECTIVE_REPEATABLE_REMOVED"
	DirectiveLocationRemoved    Kind = "DIRECTIVE_LOCATION_REMOVED"
	DirectiveLocationAdded      Kind = "DIRECTIVE_LOCATION_ADDED"
	DirectiveArgumentHasDefault Kind = "DIRECTIVE_ARG_DEFAULT_VALUE_CHANGE"
)

// A Change is one difference between two schemas.
type Change struct {
	// breaking: valid operations become invalid, or answers have another shape; dangerous: operations
	// stay valid, and clients may meet what they do not expect; safe: all others.
	Level Level `json:"level" enum:"breaking,dangerous,safe"`
	// Kind of the change, which does not change between releases.
	// Example: "FIELD_REMOVED"
	Kind Kind `json:"kind"`
	// What changes, as a schema coordinate: Type.field(argument:) or @directive.
	// Example: "Query.orders"
	Place string `json:"place"`
	// The change in one sentence of English.
	Message string `json:"message"`
}

// Compare returns the differences that matter to clients, breaking ones first,
// then by place. Descriptions and what directives of the schema itself say are
// not compared, nor are directives that operations cannot use.
func Compare(old, new *schema.Schema) []Change {
	c := &comparison{old: old, new: new}
	c.roots()
	c.types()
	c.directives()
	slices.SortStableFunc(c.changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Level.rank(), b.Level.rank()), cmp.Compare(a.Place, b.Place), cmp.Compare(a.Message, b.Message))
	})
	return c.changes
}

// CountBreaking returns how many changes are breaking.
func CountBreaking(changes []Change) (n int) {
	for _, c := range changes {
		if c.Level == Breaking {
			n++
		}
	}
	return n
}

// comparison gathers changes.
type comparison struct {
	old, new *schema.Schema
	changes  []Change
}

func (c *comparison) add(level Level, kind Kind, place string, message ...string) {
	c.changes = append(c.changes, Change{level, kind, place, strings.Join(message, "")})
}

// own reports whether a name is one that the schema's author chose: the names of
// introspection are the same everywhere.
func own(name string) bool { return !strings.HasPrefix(name, "__") }

func (c *comparison) roots() {
	for _, root := range []struct {
		name     string
		old, new schema.TypeID
	}{
		{"query", c.old.Query, c.new.Query},
		{"mutation", c.old.Mutation, c.new.Mutation},
		{"subscription", c.old.Subscription, c.new.Subscription},
	} {
		was, is := rootName(c.old, root.old), rootName(c.new, root.new)
		switch {
		case was == is:
		case was == "":
			c.add(Safe, RootTypeChanged, is, "A ", root.name, " type was added: ", is, ".")
		case is == "":
			c.add(Breaking, RootTypeChanged, was, "There is no ", root.name, " type any more; it was ", was, ".")
		default:
			// Operations begin with the keyword; the type's name shows in __typename,
			// in fragments, and in rules.
			c.add(Dangerous, RootTypeChanged, was, "The ", root.name, " type changed from ", was, " to ", is, ".")
		}
	}
}

func rootName(s *schema.Schema, t schema.TypeID) string {
	if t == schema.NoType {
		return ""
	}
	return s.Types[t].Name
}

func (c *comparison) types() {
	for i := range c.old.Types {
		was := schema.TypeID(i)
		name := c.old.Types[i].Name
		is, found := c.new.TypeNamed([]byte(name))
		switch {
		case !own(name):
		case !found:
			c.add(Breaking, TypeRemoved, name, name, " was removed.")
		case c.old.Types[was].Kind != c.new.Types[is].Kind:
			c.add(Breaking, TypeChangedKind, name, name, " changed from ", kindName(c.old.Types[was].Kind), " to ", kindName(c.new.Types[is].Kind), ".")
		default:
			c.contents(was, is)
		}
	}
	for i := range c.new.Types {
		name := c.new.Types[i].Name
		if _, found := c.old.TypeNamed([]byte(name)); !found && own(name) {
			c.add(Safe, TypeAdded, name, name, " was added.")
		}
	}
}

func kindName(k schema.Kind) string {
	return [...]string{"a Scalar type", "an Object type", "an Interface type", "a Union type", "an Enum type", "an Input type"}[k]
}

// contents compares two types of one kind and name.
func (c *comparison) contents(was, is schema.TypeID) {
	switch c.old.Types[was].Kind {
	case schema.Object, schema.Interface:
		c.interfaces(was, is)
		c.fields(was, is)
	case schema.Union:
		c.members(was, is)
	case schema.Enum:
		c.values(was, is)
	case schema.InputObject:
		c.oneOf(was, is)
		c.inputFields(was, is)
	}
}
