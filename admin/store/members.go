package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
)

// A Supergraph names one that is composed of APIs.
type Supergraph = db.SupergraphsOfRow

// SupergraphsOf returns an organisation's supergraphs that name an API, by name.
func (s *Store) SupergraphsOf(ctx context.Context, org, api string) ([]Supergraph, error) {
	rows, err := s.queries.SupergraphsOf(ctx, db.SupergraphsOfParams{OrgID: org, APIs: []string{api}})
	return rows, translate(err)
}

// checkMembers refuses a supergraph that names APIs that do not exist. An API that it has
// named before may have been deleted since.
func (c *Change) checkMembers(ctx context.Context, api *definition.API, before []string) error {
	ids := api.MemberAPIs()
	if len(ids) == 0 {
		return nil
	}
	known, err := c.q.KnownAPIs(ctx, db.KnownAPIsParams{OrgID: c.by.Org, IDs: ids})
	if err != nil {
		return err
	}
	wrong := &NamesError{Kind: kindAPI, ID: api.ID}
	for i, m := range api.Members() {
		id := m.APIID
		if id != "" && !slices.Contains(known, id) && !slices.Contains(before, id) {
			wrong.Problems = append(wrong.Problems, definition.Problem{
				Path:    object.Member(object.Item("graphql.supergraph.subgraphs", i), "api_id"),
				Message: "names no API of the organisation",
			})
		}
	}
	if len(wrong.Problems) == 0 {
		return nil
	}
	return wrong
}

// checkComposable refuses APIs without a schema for the supergraphs that name them.
func (c *Change) checkComposable(ctx context.Context, apis ...*definition.API) error {
	var without []string
	for _, api := range apis {
		if api.FederatedSchema() == "" {
			without = append(without, api.ID)
		}
	}
	if len(without) == 0 {
		return nil
	}
	naming, err := c.q.SupergraphsOf(ctx, db.SupergraphsOfParams{OrgID: c.by.Org, APIs: without})
	if err != nil || len(naming) == 0 {
		return err
	}
	at := slices.IndexFunc(without, func(id string) bool { return slices.Contains(naming[0].Subgraphs, id) })
	return &NamesError{Kind: kindAPI, ID: without[at], Problems: definition.Problems{{
		Path: "graphql",
		Message: fmt.Sprintf("must stay that of a GraphQL API with a schema of its own: the supergraph %q is composed of the API; take it out of graphql.supergraph.subgraphs there first, or do both in one batch",
			naming[0].ID),
	}}}
}

// checkUncomposed refuses an API to be deleted that supergraphs name.
func (c *Change) checkUncomposed(ctx context.Context, api string) error {
	naming, err := c.q.SupergraphsOf(ctx, db.SupergraphsOfParams{OrgID: c.by.Org, APIs: []string{api}})
	if err != nil || len(naming) == 0 {
		return err
	}
	conflict := &ConflictError{Kind: Composed}
	for i := range naming {
		conflict.With = append(conflict.With, naming[i].ID)
	}
	return conflict
}
