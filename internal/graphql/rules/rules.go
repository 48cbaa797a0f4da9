// Package rules compiles what a key may do with a GraphQL API into tables, and
// holds operations against them.
package rules

import "github.com/sluicegate/sluice/internal/graphql/schema"

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
	Field schema.FieldID // of Restricted and AllRestricted, and of Depth when the limit is the field's
	Found int64          // of Depth and the limits: what the operation has
	Max   int64          // and what is allowed
}
