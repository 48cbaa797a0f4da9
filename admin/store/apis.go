package store

import (
	"context"
	"strings"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition"
)

// API is a stored API: its definition as JSON, and columns derived from it.
type API = db.API

// APIByID returns an organisation's API.
func (s *Store) APIByID(ctx context.Context, org, id string) (API, error) {
	row, err := s.queries.APIByID(ctx, db.APIByIDParams{OrgID: org, ID: id})
	return row, translate(err)
}

// ListAPIs returns one page of an organisation's APIs and their total number. Search
// matches part of a name in any case, or a whole id. Sort is name, created_at or
// updated_at, with "-" in front for descending order.
func (s *Store) ListAPIs(ctx context.Context, org, search, sort string, page Page) ([]API, int64, error) {
	total, err := s.queries.CountAPIs(ctx, db.CountAPIsParams{OrgID: org, Search: search})
	if err != nil {
		return nil, 0, translate(err)
	}
	rows, err := s.queries.ListAPIs(ctx, db.ListAPIsParams{
		OrgID: org, Search: search, Sort: sort, Skip: page.offset(), Max: page.limit(),
	})
	return rows, total, translate(err)
}

// CreateAPI adds an API to the author's organisation.
func (c *Change) CreateAPI(ctx context.Context, api *definition.API) error {
	row, err := c.apiRow(api)
	if err != nil {
		return err
	}
	if err := c.checkTaken(ctx, row, true); err != nil {
		return err
	}
	if err := c.checkPolicies(ctx, api, nil); err != nil {
		return err
	}
	if err := c.checkMembers(ctx, api, nil); err != nil {
		return err
	}
	err = c.q.InsertAPI(ctx, db.InsertAPIParams{
		ID: row.ID, OrgID: row.OrgID, Name: row.Name, Domain: row.Domain,
		ListenPath: row.ListenPath, Routed: row.Routed, Definition: row.Definition, SyncSeconds: row.SyncSeconds, Secrets: row.Secrets, Events: row.Events, Subgraphs: row.Subgraphs,
	})
	if err != nil {
		return err
	}
	if err := c.noteSchema(ctx, api); err != nil {
		return err
	}
	return c.note(ctx, ObjectChange{kindAPI, row.ID, row.Name, created}, nil, row.Definition)
}

// UpdateAPI replaces an API that is at version have, or at any if have is 0, and returns
// its new version.
func (c *Change) UpdateAPI(ctx context.Context, api *definition.API, have int64) (version int64, err error) {
	old, err := c.q.APIByID(ctx, db.APIByIDParams{OrgID: c.by.Org, ID: api.ID})
	if err != nil {
		return 0, err
	}
	if err := CheckVersion(have, old.Version); err != nil {
		return 0, err
	}
	row, err := c.apiRow(api)
	if err != nil {
		return 0, err
	}
	if err := c.checkTaken(ctx, row, false); err != nil {
		return 0, err
	}
	if err := c.checkPolicies(ctx, api, old.Definition); err != nil {
		return 0, err
	}
	if err := c.checkMembers(ctx, api, old.Subgraphs); err != nil {
		return 0, err
	}
	if err := c.checkComposable(ctx, api); err != nil {
		return 0, err
	}
	version, err = c.q.UpdateAPI(ctx, db.UpdateAPIParams{
		OrgID: row.OrgID, ID: row.ID, Name: row.Name, Domain: row.Domain,
		ListenPath: row.ListenPath, Routed: row.Routed, Definition: row.Definition, SyncSeconds: row.SyncSeconds, Secrets: row.Secrets, Events: row.Events, Subgraphs: row.Subgraphs,
	})
	if err != nil {
		return 0, err
	}
	if err := c.noteSchema(ctx, api); err != nil {
		return 0, err
	}
	return version, c.note(ctx, ObjectChange{kindAPI, row.ID, row.Name, updated}, old.Definition, row.Definition)
}

// DeleteAPI deletes an API at version have, or at any if have is 0. If policies or
// supergraphs name it, force must be set; they keep naming it.
func (c *Change) DeleteAPI(ctx context.Context, id string, have int64, force bool) error {
	old, err := c.q.APIByID(ctx, db.APIByIDParams{OrgID: c.by.Org, ID: id})
	if err != nil {
		return err
	}
	if err := CheckVersion(have, old.Version); err != nil {
		return err
	}
	if !force {
		if err := c.checkUnused(ctx, id); err != nil {
			return err
		}
	}
	delete(c.refer, id)
	delete(c.hooked, id)
	if err := c.q.DeleteAPI(ctx, db.DeleteAPIParams{OrgID: c.by.Org, ID: id}); err != nil {
		return err
	}
	if err := c.forgetSchemas(ctx, id); err != nil {
		return err
	}
	return c.note(ctx, ObjectChange{kindAPI, id, old.Name, deleted}, old.Definition, nil)
}

func (c *Change) checkUnused(ctx context.Context, api string) error {
	naming, err := c.q.PoliciesNaming(ctx, db.PoliciesNamingParams{OrgID: c.by.Org, API: api})
	if err != nil {
		return err
	}
	if len(naming) == 0 {
		return c.checkUncomposed(ctx, api)
	}
	conflict := &ConflictError{Kind: InUse}
	for _, p := range naming {
		conflict.With = append(conflict.With, p.ID)
	}
	return conflict
}

// checkTaken looks for another API with the id or the route of row.
func (c *Change) checkTaken(ctx context.Context, row db.API, creating bool) error {
	others, err := c.q.APIsTaken(ctx, db.APIsTakenParams{
		ID: row.ID, Routed: row.Routed, Domain: row.Domain, ListenPath: row.ListenPath,
	})
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.ID != row.ID {
			return &ConflictError{Kind: TakenRoute, With: c.visible(other.OrgID, other.ID)}
		}
		if creating {
			return &ConflictError{Kind: TakenID, With: c.visible(other.OrgID, other.ID)}
		}
	}
	return nil
}

// visible returns the id of an object unless it is another organisation's.
func (c *Change) visible(org, id string) []string {
	if org != c.by.Org {
		return nil
	}
	return []string{id}
}

// apiRow derives an API's columns from its definition.
func (c *Change) apiRow(api *definition.API) (db.API, error) {
	stored := *api
	stored.OrgID = c.by.Org
	body, err := encode(&stored)
	if err != nil {
		return db.API{}, err
	}
	return db.API{
		ID: api.ID, OrgID: c.by.Org, Name: api.Name,
		Domain: strings.ToLower(api.Domain), ListenPath: routePath(api.Proxy.ListenPath),
		Routed: api.IsActive() && !api.Internal, Definition: body, SyncSeconds: syncSeconds(api), Secrets: c.refers(api), Events: api.PortalEvents(), Subgraphs: api.MemberAPIs(),
	}, nil
}

// routePath returns a listen path without final slashes: "/a" and "/a/" match the same
// requests.
func routePath(listenPath string) string {
	if trimmed := strings.TrimRight(listenPath, "/"); trimmed != "" {
		return trimmed
	}
	return "/"
}
