package pipeline

import "github.com/sluicegate/sluice/internal/graphql/rules"

// OperationRules are what a key may do with the operations of a GraphQL API.
// They are shared between keys with the same rights and never change.
type OperationRules struct {
	*rules.Table
	Hidden bool // no error may tell the key a name of the schema that it did not write itself

	Enforced *OperationRules // what refuses, where some of the rules are on trial; nil: all of them do
	Trial    *Measured       // the policies on whose behalf the others are measured; nil without Enforced
}

// Held is what a stage keeps for an exchange until that is over.
type Held interface {
	// Release takes back what was held. Nothing of the exchange is used after.
	Release()
}
