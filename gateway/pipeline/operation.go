package pipeline

import "github.com/sluicegate/sluice/internal/graphql/rules"

// OperationRules say which operations of a GraphQL API a key may run. They are
// immutable and shared between keys with the same access rights.
type OperationRules struct {
	*rules.Table
	Hidden bool // errors name nothing of the schema that the client did not write itself

	Enforced   *OperationRules     // the rules that refuse, where others are report-only; nil: all of them refuse
	ReportOnly *ReportOnlyPolicies // the policies of the report-only rules; nil without Enforced
}

// Held is the state that a stage keeps for an exchange until it is released.
type Held interface {
	// Release frees the state. The exchange is not used afterwards.
	Release()
}
