package graphql

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/rules"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/rights"
)

// EnforcedOn returns the rules that refuse operations of a request's key. A key that may
// not introspect gets the refusal.
func (s *Stage) EnforcedOn(ex *pipeline.Exchange) (*pipeline.OperationRules, *pipeline.Rejection) {
	may, refused := s.rulesFor(ex)
	if refused != nil {
		return nil, refused
	}
	if may.Enforced != nil {
		may = may.Enforced
	}
	if may.Hidden {
		return nil, s.restrictions.refusal(may, rules.Verdict{Kind: rules.Introspection})
	}
	return may, nil
}

// Visible returns what the key of a request may use of the schema. g is of the API's
// definition, and may are the rules that EnforcedOn returned.
func (s *Stage) Visible(ex *pipeline.Exchange, g *definition.GraphQL, may *pipeline.OperationRules) (*rules.Visible, error) {
	doc, err := sdl.Parse(g.Schema)
	if doc == nil {
		return nil, err
	}
	var mine *rights.Access
	if ex.Grant != nil {
		mine = s.accessOf(ex) // it has some, as EnforcedOn passed it
		if trial := trialOf(ex.Grant); trial != nil && mine != nil {
			mine = enforcedOf(mine, trial)
		}
	}
	return may.Visible(g, doc, mine)
}
