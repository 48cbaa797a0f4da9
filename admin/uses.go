package admin

import (
	"context"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/usage"
)

// usesRoutes are the routes that say what depends on an object.
func (s *Server) usesRoutes() []rest.Route {
	all := []rest.Route{{
		Method: "GET", Path: "/api/apis/{id}/uses", Summary: "Say what depends on an API: policies, keys, supergraphs, entries of the catalogue, calls", Tag: "APIs", Role: rest.Viewer,
		Reply: apiUses{}, Wrong: []int{404}, Handle: s.usesOfAPI,
	}}
	for _, path := range []string{"/api/portal/policies/{id}/uses", "/api/policies/{id}/uses"} {
		all = append(all, rest.Route{
			Method: "GET", Path: path, Summary: "Say what depends on a policy: keys, entries of the catalogue, key requests, calls", Tag: "Policies", Role: rest.Viewer,
			Reply: policyUses{}, Wrong: []int{404}, Handle: s.usesOfPolicy,
		})
	}
	return all
}

// Bounds of what an answer lists and adds up.
const (
	usesListed = 100 // of each kind
	usesSummed = 100 // keys whose calls are added up
)

const month = 30 * day

// usedBy is an object that depends on another.
type usedBy struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	State string `json:"state,omitempty" doc:"of policies"`
	Shown *bool  `json:"shown,omitempty" doc:"of entries: whether developers see it"`
}

// apiUses is what depends on an API.
type apiUses struct {
	Policies       []usedBy `json:"policies" nullable:"false" doc:"that name it, the first 100"`
	PolicyCount    int64    `json:"policy_count" doc:"at most 10000"`
	Keys           int64    `json:"keys" doc:"that may call it, by a policy or by themselves; at most 10000"`
	KeysCapped     bool     `json:"keys_capped" doc:"there are more than keys"`
	Supergraphs    []usedBy `json:"supergraphs" nullable:"false" doc:"that are composed of it"`
	Catalogue      []usedBy `json:"catalogue" nullable:"false" doc:"entries that offer it, the first 100"`
	CatalogueCount int64    `json:"catalogue_count"`
	Calls          int64    `json:"calls_30d"`
	Errors         int64    `json:"errors_30d" doc:"of these, refused, failed, or answered with a status from 400 on"`
}

// usesOfAPI answers with what depends on an API.
func (s *Server) usesOfAPI(ctx context.Context, c *rest.Call) (any, error) {
	id := c.Param("id")
	if _, err := s.deps.Store.APIByID(ctx, c.Who.Org, id); err != nil {
		return nil, rest.Missing(err, noAPI)
	}
	policies, count, err := s.deps.Store.PolicyRows(ctx, c.Who.Org, &store.RowFilter{API: id}, "name", store.Page{Max: usesListed})
	if err != nil {
		return nil, err
	}
	_, keys, err := s.deps.Store.KeyRows(ctx, c.Who.Org, &store.RowFilter{API: id}, "", store.Page{Max: 1})
	if err != nil {
		return nil, err
	}
	supergraphs, err := s.deps.Store.SupergraphsOf(ctx, c.Who.Org, id)
	if err != nil {
		return nil, err
	}
	entries, offered, err := s.entries(ctx, c, store.CatalogueFilter{API: id})
	if err != nil {
		return nil, err
	}
	calls, err := s.usage.CallsOfAPIs(ctx, c.Who.Org, []string{id}, month)
	if err != nil {
		return nil, err
	}
	answer := apiUses{
		Policies: make([]usedBy, 0, len(policies)), PolicyCount: min(count, store.MostCounted), Keys: min(keys, store.MostCounted), KeysCapped: keys > store.MostCounted,
		Supergraphs: make([]usedBy, 0, len(supergraphs)), Catalogue: entries, CatalogueCount: offered, Calls: calls[id].Hits, Errors: calls[id].Errors,
	}
	for i := range supergraphs {
		answer.Supergraphs = append(answer.Supergraphs, usedBy{ID: supergraphs[i].ID, Name: supergraphs[i].Name})
	}
	for i := range policies {
		answer.Policies = append(answer.Policies, usedBy{ID: policies[i].ID, Name: policies[i].Name, State: policies[i].State})
	}
	return answer, nil
}

// policyUses is what depends on a policy.
type policyUses struct {
	Keys           int64    `json:"keys" doc:"that carry it, at most 10000"`
	KeysCapped     bool     `json:"keys_capped" doc:"there are more than keys"`
	Called         int      `json:"keys_called_24h" doc:"of the first 100 keys"`
	Catalogue      []usedBy `json:"catalogue" nullable:"false" doc:"entries that offer it, the first 100"`
	CatalogueCount int64    `json:"catalogue_count"`
	Pending        int64    `json:"pending_requests" doc:"key requests for it that nobody has decided on"`
	Calls          *int64   `json:"calls_30d,omitempty" doc:"of its keys; left out if there are more than 100"`
	Errors         *int64   `json:"errors_30d,omitempty" doc:"of these, refused, failed, or answered with a status from 400 on"`
}

// usesOfPolicy answers with what depends on a policy.
func (s *Server) usesOfPolicy(ctx context.Context, c *rest.Call) (any, error) {
	id, org := c.Param("id"), c.Who.Org
	if _, err := s.deps.Store.PolicyByID(ctx, org, id); err != nil {
		return nil, rest.Missing(err, "Could not retrieve portal object.")
	}
	keys, count, err := s.deps.Store.KeyRows(ctx, org, &store.RowFilter{Policy: id}, "", store.Page{Max: usesSummed})
	if err != nil {
		return nil, err
	}
	entries, offered, err := s.entries(ctx, c, store.CatalogueFilter{Policy: id})
	if err != nil {
		return nil, err
	}
	_, pending, err := s.deps.Store.ListKeyRequests(ctx, org, store.KeyRequestFilter{Plan: id, State: "pending"}, store.Page{Max: 1})
	if err != nil {
		return nil, err
	}
	answer := policyUses{
		Keys: min(count, store.MostCounted), KeysCapped: count > store.MostCounted, Catalogue: entries, CatalogueCount: offered, Pending: pending,
	}
	hashes := make([]string, len(keys))
	for i := range keys {
		hashes[i] = keys[i].Hash
	}
	today, err := s.usage.CallsOfKeys(ctx, org, hashes, day)
	if err != nil {
		return nil, err
	}
	answer.Called = len(today)
	if count > usesSummed {
		return answer, nil
	}
	calls, err := s.usage.CallsOfKeys(ctx, org, hashes, month)
	if err != nil {
		return nil, err
	}
	sum := sumOf(calls)
	answer.Calls, answer.Errors = &sum.Hits, &sum.Errors
	return answer, nil
}

func sumOf(calls map[string]usage.Calls) (sum usage.Calls) {
	for _, one := range calls {
		sum.Hits += one.Hits
		sum.Errors += one.Errors
	}
	return sum
}

// entries returns the first entries of the catalogue that a filter finds.
func (s *Server) entries(ctx context.Context, c *rest.Call, f store.CatalogueFilter) ([]usedBy, int64, error) {
	rows, count, err := s.deps.Store.ListCatalogueEntries(ctx, c.Who.Org, f, store.Page{Max: usesListed})
	if err != nil {
		return nil, 0, err
	}
	found := make([]usedBy, 0, len(rows))
	for i := range rows {
		found = append(found, usedBy{ID: rows[i].ID, Name: rows[i].Name, Shown: &rows[i].Shown})
	}
	return found, count, nil
}
