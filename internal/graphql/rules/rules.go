// Package rules compiles what a key may do with a GraphQL API into tables, and
// evaluates them for operations.
//
// # Field lists
//
// Lists name fields of types; "*" is all fields of that one type, and does
// not extend to the types that they return. When anything is allowed by name,
// nothing else is, and the list of restricted fields is ignored.
//
// With an allow list, a field of an object passes when it is listed. A field
// that is selected on an interface passes when it is listed for the interface,
// whatever objects come; else every object that can come must list it.
//
// With a block list, a field of an object is refused when it is listed, or is
// listed for an interface of the object. A field that is selected on an
// interface is refused when it is listed for the interface, or is refused on any
// object that can come.
//
// What can come are the objects of the type that a field is selected on, less
// those that fragments around it leave out. So no detour by an interface, a
// union or a fragment changes the verdict. Aliases and directives do not either:
// a field that a variable may skip is held to be read. Arguments, input fields
// and enum values are not ruled.
//
// __typename always passes. So does introspection, which has a switch of its own
// and no other effect: other fields beside __schema are checked as usual. An
// API without keys can always be introspected.
//
// Where the root types have other names, lists may still call them Query,
// Mutation and Subscription, unless the schema has another type of that name.
//
// # Depth
//
// The depth of an operation is its most nested fields plus a base of 0 or 1:
// with 1, { a { b } } has 3. The limit of a field counts what is nested beneath
// the field, plus the base: with 1, a has 2 there. On a root field it takes the
// place of the limit on operations, which then counts the other root fields
// only; -1 leaves the root field unlimited. On any other field it holds besides,
// as it does where the field is reached by an interface: a field that is
// selected on an interface is held to the limits of the interface and of all its
// objects, and one of an object to those of its interfaces. Operations that only
// introspect have no limit of depth; in all others introspection counts too.
package rules

import (
	"math"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// Kind is the kind of a rule that an operation breaks.
type Kind uint8

// The kinds of rules, None for an operation that breaks none. Of several the
// first in this order counts.
const (
	None Kind = iota
	Depth
	Introspection
	Restricted    // Verdict.Field is restricted
	AllRestricted // every field of the type of Verdict.Field is
	Aliases
	RootFields
	Directives
	Tokens
	CostTooHigh
)

// A Verdict is what came of holding an operation against a table.
type Verdict struct {
	Kind  Kind
	Field schema.FieldID // of Restricted and AllRestricted, and of Depth when the limit is the field's; else schema.NoField
	Found int64          // of Depth and the limits: what the operation has
	Max   int64          // and what is allowed
}

// A Table holds the compiled rules of a key for an API. It is immutable and safe for
// concurrent use.
type Table struct {
	TrustedOnly bool     // only operations that the API stores may be run
	Unknown     []string // names in the key's lists that the schema does not have, at most a few; such entries have no effect

	schema *schema.Schema
	base   int64
	hidden bool        // introspection is refused
	limits Limits      // of the key and of the API together, but for Depth, which is the key's
	most   int         // the API's Depth
	bounds []bound     // in the order of fields
	fields *fieldLists // nil: every field passes

	bounded fieldSet // which fields have a bound; nil: none
}

// passed is the verdict on an operation that breaks no rule.
var passed = Verdict{Field: schema.NoField}

// Check evaluates the rules for an operation. cost is the cost of the operation with
// the variables of the request. Check does not allocate.
func (t *Table) Check(f *validate.Facts, cost uint64) Verdict {
	if v := t.checkDepth(f); v.Kind != None {
		return v
	}
	if t.hidden && f.Introspects {
		return Verdict{Kind: Introspection, Field: schema.NoField}
	}
	if t.fields != nil {
		if v := t.fields.check(t.schema, f); v.Kind != None {
			return v
		}
	}
	return t.checkSizes(f, cost)
}

func (t *Table) checkSizes(f *validate.Facts, cost uint64) Verdict {
	l := &t.limits
	switch {
	case exceeds(f.Aliases, l.Aliases):
		return over(Aliases, f.Aliases, l.Aliases)
	case exceeds(f.RootFields, l.RootFields):
		return over(RootFields, f.RootFields, l.RootFields)
	case exceeds(f.Directives, l.Directives):
		return over(Directives, f.Directives, l.Directives)
	case exceeds(f.Tokens, l.Tokens):
		return over(Tokens, f.Tokens, l.Tokens)
	case l.Cost > 0 && cost > uint64(l.Cost):
		found := int64(min(cost, math.MaxInt64))
		return Verdict{Kind: CostTooHigh, Field: schema.NoField, Found: found, Max: l.Cost}
	}
	return passed
}

// exceeds reports whether n is more than a limit, 0 or less being none.
func exceeds(n, limit int) bool { return limit > 0 && n > limit }

func over(kind Kind, found, limit int) Verdict {
	return Verdict{Kind: kind, Field: schema.NoField, Found: int64(found), Max: int64(limit)}
}

// HidesFields reports whether lists rule which fields may be selected.
func (t *Table) HidesFields() bool { return t.fields != nil }

// Passes reports whether a field may be selected where all objects of its type can come.
func (t *Table) Passes(f schema.FieldID) bool { return t.fields == nil || t.fields.passes.has(f) }

// Limits returns the limits on operations, the stricter of key and API each.
func (t *Table) Limits() Limits {
	l := t.limits
	l.Depth = stricter(l.Depth, t.most)
	return l
}
