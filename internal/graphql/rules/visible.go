package rules

import (
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/visible"
	"github.com/sluicegate/sluice/internal/rights"
)

// A Visible is what a caller may use of an API's schema, and how much at a time.
type Visible struct {
	// Whether the API may be called at all.
	Allowed bool `json:"allowed"`
	// Schema in SDL, without what the caller's field rules refuse; empty if no query is left.
	Schema string `json:"schema"`
	// Whether the caller may introspect.
	Introspection bool `json:"introspection"`
	// Whether only stored operations may be run.
	TrustedOnly bool `json:"trusted_only"`
	// Number that is added to the levels of an operation to give its depth.
	DepthBase int `json:"depth_base"`
	// Depth that an operation may have; 0: no limit.
	MaxDepth int `json:"max_depth"`
	// Aliases that an operation may have; 0: no limit.
	MaxAliases int `json:"max_aliases"`
	// Root fields that an operation may have; 0: no limit.
	MaxRootFields int `json:"max_root_fields"`
	// Cost that an operation may have; 0: no limit.
	MaxCost int64 `json:"max_cost"`
	// Size that costs assume of a list whose size is not known; 0: the default of gateways.
	ListSize int `json:"list_size"`
	// Names of the arguments that give the size of a list.
	SizeArguments []string `json:"size_arguments"`
	// Limits on what is nested below single fields.
	FieldDepths []FieldDepth `json:"field_depths"`
}

// A FieldDepth is the limit on what is nested below a field.
type FieldDepth struct {
	// Name of the type that has the field.
	Type string `json:"type_name"`
	// Name of the field.
	Field string `json:"field_name"`
	// Levels that may be nested below the field, in place of the limit on operations; -1: no limit.
	Max int `json:"max_query_depth"`
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
