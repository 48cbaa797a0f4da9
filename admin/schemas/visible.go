package schemas

import (
	"context"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/rules"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/graphql/visible"
	"github.com/sluicegate/sluice/internal/rights"
)

// A Visible is what a caller may use of an API's schema, and how much at a time.
type Visible struct {
	Allowed       bool     `json:"allowed" doc:"whether the API may be called at all"`
	Schema        string   `json:"schema" doc:"in SDL, without what the caller's field rules refuse; empty if no query is left"`
	Introspection bool     `json:"introspection" doc:"whether the caller may introspect"`
	TrustedOnly   bool     `json:"trusted_only" doc:"whether only stored operations may be run"`
	DepthBase     int      `json:"depth_base" doc:"added to the levels of an operation to give its depth"`
	MaxDepth      int      `json:"max_depth" doc:"0: no limit, as for all limits"`
	MaxAliases    int      `json:"max_aliases"`
	MaxRootFields int      `json:"max_root_fields"`
	MaxCost       int64    `json:"max_cost"`
	ListSize      int      `json:"list_size" doc:"that costs assume of a list whose size is not known; 0: the default of gateways"`
	SizeArguments []string `json:"size_arguments" doc:"that give the size of a list"`
	FieldDepths   []Depth  `json:"field_depths"`
}

// A Depth is the limit on what is nested below a field.
type Depth struct {
	Type  string `json:"type_name"`
	Field string `json:"field_name"`
	Max   int    `json:"max_query_depth" doc:"-1: none, in place of the limit on operations"`
}

// Visible returns what a session may use of an API's schema. A nil session is that of a
// caller without a key, who may use all of it if the API is keyless, and whom the API's
// own limits alone bind. policies holds those of the session.
func (k *Keeper) Visible(ctx context.Context, org, id string, session *definition.Session, policies *definition.PolicySet) (*Visible, error) {
	_, api, err := k.graphQLAPI(ctx, org, id)
	if err != nil {
		return nil, err
	}
	doc, err := sdl.Parse(api.GraphQL.Schema)
	if doc == nil {
		return nil, &Refusal{Status: conflict, Message: InvalidSchema, Errors: []string{err.Error()}}
	}
	var may *rights.Access
	if session != nil && !api.UseKeyless {
		if may = accessOf(session, policies, id); may == nil {
			return &Visible{SizeArguments: []string{}, FieldDepths: []Depth{}}, nil
		}
	}
	compiled := schema.Compile(doc)
	table := rules.Compile(compiled, may, rules.OptionsOf(api.GraphQL))
	left := api.GraphQL.Schema
	if table.HidesFields() {
		if left, err = visible.Cut(compiled, table.Passes).SDL(doc); err != nil {
			return nil, err
		}
	}
	v := describe(api.GraphQL, table, may)
	v.Schema = left
	return v, nil
}

// describe returns all but the schema.
func describe(g *definition.GraphQL, table *rules.Table, may *rights.Access) *Visible {
	most := table.Limits()
	v := &Visible{
		Allowed: true, Introspection: may == nil || !g.HidesSchema() && !may.DisableIntrospection.Value, TrustedOnly: table.TrustedOnly, DepthBase: g.Base(),
		MaxDepth: max(most.Depth, 0), MaxAliases: max(most.Aliases, 0), MaxRootFields: max(most.RootFields, 0), MaxCost: max(most.Cost, 0),
		SizeArguments: []string{}, FieldDepths: []Depth{},
	}
	if g.Cost != nil {
		v.ListSize, v.SizeArguments = g.Cost.ListSize, append(v.SizeArguments, g.Cost.SizeArguments...)
	}
	if may != nil {
		for i := range may.FieldAccess {
			f := &may.FieldAccess[i].Value
			v.FieldDepths = append(v.FieldDepths, Depth{f.TypeName, f.FieldName, f.Limits.MaxQueryDepth})
		}
	}
	return v
}

// accessOf returns what a session may do with an API, or nil if it may not call it.
func accessOf(session *definition.Session, policies *definition.PolicySet, api string) *rights.Access {
	all, err := rights.Effective(session, policies)
	if err != nil { // the key cannot be used at all
		return nil
	}
	may, ok := all.For(api)
	if !ok || all.Inactive.Value {
		return nil
	}
	return may
}
