package graphql

import (
	"github.com/sluicegate/sluice/gateway/graphql/request"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/graphql/rules"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/rights"
)

// tried returns the rules of a key some of which are on trial: all of them, and
// beside them those that refuse.
func (s *Stage) tried(all *pipeline.OperationRules, mine *rights.Access, trial *pipeline.Measured) *pipeline.OperationRules {
	enforced := s.rulesOf(enforcedOf(mine, trial))
	return &pipeline.OperationRules{Table: all.Table, Hidden: enforced.Hidden, Enforced: enforced, Trial: trial}
}

// enforcedOf returns rights without what is on trial.
func enforcedOf(mine *rights.Access, trial *pipeline.Measured) *rights.Access {
	left := *mine
	if trial.Complexity != "" {
		none := rights.Value[int]{From: rights.Origin{Kind: rights.Default}}
		left.Depth, left.Aliases, left.RootFields, left.Directives, left.Tokens = none, none, none, none, none
		left.Cost = rights.Value[int64]{From: none.From}
	}
	if trial.Access != "" {
		off := rights.Value[bool]{From: rights.Origin{Kind: rights.Default}}
		left.RestrictedTypes, left.AllowedTypes, left.FieldAccess = nil, nil, nil
		left.DisableIntrospection, left.TrustedDocumentsOnly = off, off
	}
	return &left
}

// spare notes that a rule on trial would have refused an operation.
func spare(ex *pipeline.Exchange, may *pipeline.OperationRules, v rules.Verdict) {
	policy, reason := may.Trial.Complexity, pipeline.ReasonFieldRestricted
	if v.Kind != rules.Restricted && v.Kind != rules.AllRestricted {
		reason = limitReasons[v.Kind]
	}
	if v.Kind == rules.Introspection || v.Field != schema.NoField { // fields have rules in access rights alone
		policy = may.Trial.Access
	}
	if policy != "" {
		ex.Spare(reason, policy)
	}
}

// resolve finds the document that a request names, as documents.resolve does. That
// only stored ones may be run is noted where it is on trial.
func (s *Stage) resolve(ex *pipeline.Exchange, r *request.Request, may *pipeline.OperationRules) (*document, *pipeline.Rejection) {
	doc, refused := s.documents.resolve(r, may.TrustedOnly)
	if refused == nil || may.Enforced == nil || may.Enforced.TrustedOnly || !may.TrustedOnly {
		return doc, refused
	}
	doc, anyway := s.documents.resolve(r, false)
	if anyway == nil {
		ex.Spare(pipeline.ReasonUntrustedDocument, may.Trial.Access)
	}
	return doc, anyway
}
