package graphql

import (
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/graphql/rules"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// What a rule on trial would refuse is noted for the policy that it comes from:
// rules on fields are part of access rights, and sizes are not.
func TestRulesOnTrialAreNotedForTheirPolicy(t *testing.T) {
	for _, c := range []struct {
		v    rules.Verdict
		want pipeline.ReportOnlyRefusal
	}{
		{rules.Verdict{Kind: rules.Depth, Field: schema.NoField}, pipeline.ReportOnlyRefusal{Reason: pipeline.ReasonDepthLimit, Policy: "sizes"}},
		{rules.Verdict{Kind: rules.Depth, Field: 3}, pipeline.ReportOnlyRefusal{Reason: pipeline.ReasonDepthLimit, Policy: "lists"}},
		{rules.Verdict{Kind: rules.CostTooHigh, Field: schema.NoField}, pipeline.ReportOnlyRefusal{Reason: pipeline.ReasonOperationLimit, Policy: "sizes"}},
		{rules.Verdict{Kind: rules.Introspection, Field: schema.NoField}, pipeline.ReportOnlyRefusal{Reason: pipeline.ReasonIntrospectionDisabled, Policy: "lists"}},
		{rules.Verdict{Kind: rules.Restricted, Field: 3}, pipeline.ReportOnlyRefusal{Reason: pipeline.ReasonFieldRestricted, Policy: "lists"}},
	} {
		ex := new(pipeline.Exchange)
		spare(ex, &pipeline.OperationRules{ReportOnly: &pipeline.ReportOnlyPolicies{Access: "lists", Complexity: "sizes"}}, c.v)
		if ex.ReportOnly[0] != c.want {
			t.Errorf("%+v: noted %+v, want %+v", c.v, ex.ReportOnly[0], c.want)
		}
		enforced := new(pipeline.Exchange)
		spare(enforced, &pipeline.OperationRules{ReportOnly: new(pipeline.ReportOnlyPolicies)}, c.v)
		if enforced.ReportOnly[0] != (pipeline.ReportOnlyRefusal{}) {
			t.Errorf("%+v: noted %+v though nothing is on trial", c.v, enforced.ReportOnly[0])
		}
	}
}
