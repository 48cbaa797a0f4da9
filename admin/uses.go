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
	// Id of the object.
	ID string `json:"id"`
	// Name of the object.
	Name string `json:"name"`
	// State of a policy: active, draft or deny; left out for others.
	State string `json:"state,omitempty"`
	// Whether developers see a catalogue entry; left out for others.
	Shown *bool `json:"shown,omitempty"`
}

// apiUses is what depends on an API.
type apiUses struct {
	// Policies that name the API, the first 100 by name.
	Policies []usedBy `json:"policies" nullable:"false"`
	// Number of those policies; 10000 stands for more.
	PolicyCount int64 `json:"policy_count"`
	// Keys that may call the API, by a policy or by themselves, at most 10000.
	Keys int64 `json:"keys"`
	// Whether there are more keys.
	KeysCapped bool `json:"keys_capped"`
	// Supergraphs that are composed of the API.
	Supergraphs []usedBy `json:"supergraphs" nullable:"false"`
	// Catalogue entries that offer the API, the first 100.
	Catalogue []usedBy `json:"catalogue" nullable:"false"`
	// Number of those entries.
	CatalogueCount int64 `json:"catalogue_count"`
	// Calls of the API in the last 30 days.
	Calls int64 `json:"calls_30d"`
	// Those of calls_30d that were refused, failed, or were answered with a status from 400 on.
	Errors int64 `json:"errors_30d"`
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
	// Keys that have the policy, at most 10000.
	Keys int64 `json:"keys"`
	// Whether there are more keys.
	KeysCapped bool `json:"keys_capped"`
	// Number of the first 100 keys that were called in the last 24 hours.
	Called int `json:"keys_called_24h"`
	// Catalogue entries that offer the policy, the first 100.
	Catalogue []usedBy `json:"catalogue" nullable:"false"`
	// Number of those entries.
	CatalogueCount int64 `json:"catalogue_count"`
	// Key requests for the policy that wait for a decision.
	Pending int64 `json:"pending_requests"`
	// Calls of its keys in the last 30 days; left out if there are more than 100 keys.
	Calls *int64 `json:"calls_30d,omitempty"`
	// Those of calls_30d that were refused, failed, or were answered with a status from 400 on; left
	// out likewise.
	Errors *int64 `json:"errors_30d,omitempty"`
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
