package rules

import (
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/visible"
	"github.com/sluicegate/sluice/internal/rights"
)

// A Visible is what a caller may use of an API's schema, and how much at a time.
type Visible struct {
	Allowed       bool         `json:"allowed" doc:"whether the API may be called at all"`
	Schema        string       `json:"schema" doc:"in SDL, without what the caller's field rules refuse; empty if no query is left"`
	Introspection bool         `json:"introspection" doc:"whether the caller may introspect"`
	TrustedOnly   bool         `json:"trusted_only" doc:"whether only stored operations may be run"`
	DepthBase     int          `json:"depth_base" doc:"added to the levels of an operation to give its depth"`
	MaxDepth      int          `json:"max_depth" doc:"0: no limit, as for all limits"`
	MaxAliases    int          `json:"max_aliases"`
	MaxRootFields int          `json:"max_root_fields"`
	MaxCost       int64        `json:"max_cost"`
	ListSize      int          `json:"list_size" doc:"that costs assume of a list whose size is not known; 0: the default of gateways"`
	SizeArguments []string     `json:"size_arguments" doc:"that give the size of a list"`
	FieldDepths   []FieldDepth `json:"field_depths"`
}

// A FieldDepth is the limit on what is nested below a field.
type FieldDepth struct {
	Type  string `json:"type_name"`
	Field string `json:"field_name"`
	Max   int    `json:"max_query_depth" doc:"-1: none, in place of the limit on operations"`
}

// Visible returns what passes of the schema of g, whose document is doc. may is what the
// table was compiled from. It takes time in proportion to the schema.
func (t *Table) Visible(g *definition.GraphQL, doc *syntax.Document, may *rights.Access) (*Visible, error) {
	most := t.Limits()
	v := &Visible{
		Allowed: true, Schema: g.Schema, Introspection: !t.hidden, TrustedOnly: t.TrustedOnly, DepthBase: int(t.base),
		MaxDepth: max(most.Depth, 0), MaxAliases: max(most.Aliases, 0), MaxRootFields: max(most.RootFields, 0), MaxCost: max(most.Cost, 0),
		SizeArguments: []string{}, FieldDepths: []FieldDepth{},
	}
	if t.HidesFields() {
		var err error
		if v.Schema, err = visible.Cut(t.schema, t.Passes).SDL(doc); err != nil {
			return nil, err
		}
	}
	if g.Cost != nil {
		v.ListSize, v.SizeArguments = g.Cost.ListSize, append(v.SizeArguments, g.Cost.SizeArguments...)
	}
	if may != nil {
		for i := range may.FieldAccess {
			f := &may.FieldAccess[i].Value
			v.FieldDepths = append(v.FieldDepths, FieldDepth{f.TypeName, f.FieldName, f.Limits.MaxQueryDepth})
		}
	}
	return v, nil
}
