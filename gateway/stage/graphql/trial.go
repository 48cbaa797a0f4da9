package graphql

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql/request"
	"github.com/sluicegate/sluice/internal/graphql/rules"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/rights"
)

// tried returns the rules of a key with report-only policies: all rules, and those
// that are enforced.
func (s *Stage) tried(all *pipeline.OperationRules, mine *rights.Access, trial *pipeline.ReportOnlyPolicies) *pipeline.OperationRules {
	enforced := s.rulesOf(enforcedOf(mine, trial))
	return &pipeline.OperationRules{Table: all.Table, Hidden: enforced.Hidden, Enforced: enforced, ReportOnly: trial}
}

// enforcedOf returns rights without report-only limits.
func enforcedOf(mine *rights.Access, trial *pipeline.ReportOnlyPolicies) *rights.Access {
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

// recordReportOnly records that a report-only rule would have refused an operation.
func spare(ex *pipeline.Exchange, may *pipeline.OperationRules, v rules.Verdict) {
	policy, reason := may.ReportOnly.Complexity, pipeline.ReasonFieldRestricted
	if v.Kind != rules.Restricted && v.Kind != rules.AllRestricted {
		reason = limitReasons[v.Kind]
	}
	if v.Kind == rules.Introspection || v.Field != schema.NoField { // fields are restricted by access rights only
		policy = may.ReportOnly.Access
	}
	if policy != "" {
		ex.ReportOnly.Add(reason, policy)
	}
}

// resolve is documents.resolve, with a report-only restriction to stored documents
// recorded instead of enforced.
func (s *Stage) resolve(ex *pipeline.Exchange, r *request.Request, may *pipeline.OperationRules) (*document, *pipeline.Rejection) {
	doc, refused := s.documents.resolve(r, may.TrustedOnly)
	if refused == nil || may.Enforced == nil || may.Enforced.TrustedOnly || !may.TrustedOnly {
		return doc, refused
	}
	doc, anyway := s.documents.resolve(r, false)
	if anyway == nil {
		ex.ReportOnly.Add(pipeline.ReasonUntrustedDocument, may.ReportOnly.Access)
	}
	return doc, anyway
}
