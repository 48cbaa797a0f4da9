package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/rights"
)

// NamesError reports that an object names others, or parts of them, that the organisation
// does not have.
type NamesError struct {
	Kind, ID string // of the object
	Problems definition.Problems
}

// Error lists the names, with their places in the object.
func (e *NamesError) Error() string { return e.Problems.Error() }

// Unwrap returns the problems of the object alone.
func (e *NamesError) Unwrap() error { return &e.Problems }

// Texts returns the problems as they are reported for one object of many.
func (e *NamesError) Texts() []string {
	list := map[string]string{kindAPI: "apis", kindPolicy: "policies"}[e.Kind]
	all := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		all = append(all, object.Member(object.Entry(list, e.ID), p.String()))
	}
	return all
}

// readAtOnce is how many definitions are read in one query, which may be large.
const readAtOnce = 100

// checkRights refuses access rights to versions and GraphQL fields that their APIs do not
// have. The APIs must be known to exist.
func (c *Change) checkRights(ctx context.Context, p *definition.Policy) error {
	var unread []string
	for _, id := range sortedNames(p.AccessRights) {
		a := p.AccessRights[id]
		if a == nil || len(a.Versions)+len(a.AllowedTypes)+len(a.RestrictedTypes)+len(a.FieldAccessRights) == 0 {
			continue
		}
		if c.named[id] == nil {
			unread = append(unread, id)
		}
	}
	for ids := range slices.Chunk(unread, readAtOnce) {
		if err := c.readNamed(ctx, ids); err != nil {
			return err
		}
	}
	if c.catalog.API == nil {
		c.catalog.API = func(id string) *definition.API {
			if def := c.named[id]; def != nil {
				return def
			}
			return new(definition.API) // of which nothing but the id is named
		}
	}
	if wrong := c.catalog.Check(p.AccessRights); len(wrong) > 0 {
		return &NamesError{Kind: kindPolicy, ID: p.Key(), Problems: wrong}
	}
	return nil
}

func (c *Change) readNamed(ctx context.Context, ids []string) error {
	rows, err := c.q.BundleAPIsByID(ctx, ids)
	if err != nil {
		return err
	}
	if c.named == nil {
		c.named = make(map[string]*definition.API)
	}
	for _, row := range rows {
		def := new(definition.API)
		if err := json.Unmarshal(row.Definition, def); err != nil {
			return fmt.Errorf("reading API %s: %w", row.ID, err)
		}
		c.named[row.ID] = def
	}
	return nil
}

// checkPolicies refuses an API that gives tokens policies that do not exist. A policy that
// the definition before, nil for none, names as well may have been deleted since.
func (c *Change) checkPolicies(ctx context.Context, api *definition.API, before []byte) error {
	places := policiesOf(api)
	if len(places) == 0 {
		return nil
	}
	ids := make([]string, 0, len(places))
	for _, one := range places {
		ids = append(ids, one.policy)
	}
	known, err := c.q.KnownPolicies(ctx, db.KnownPoliciesParams{OrgID: c.by.Org, IDs: ids})
	if err != nil {
		return err
	}
	if len(before) > 0 && len(known) < len(ids) {
		old := new(definition.API)
		if err := json.Unmarshal(before, old); err != nil {
			return fmt.Errorf("reading API %s: %w", api.ID, err)
		}
		for _, one := range policiesOf(old) {
			known = append(known, one.policy)
		}
	}
	wrong := &NamesError{Kind: kindAPI, ID: api.ID}
	for _, one := range places {
		if !slices.Contains(known, one.policy) {
			wrong.Problems = append(wrong.Problems, definition.Problem{
				Path:    one.path,
				Message: fmt.Sprintf("names the policy %q, which does not exist; create it first, or both in one batch", one.policy),
			})
		}
	}
	if len(wrong.Problems) == 0 {
		return nil
	}
	return wrong
}

// A policyName is a policy that a definition names, and where.
type policyName struct{ path, policy string }

// policiesOf returns the policies that tokens of an API get.
func policiesOf(api *definition.API) (all []policyName) {
	if !api.EnableJWT || api.JWT == nil {
		return nil
	}
	for i, id := range api.JWT.DefaultPolicies {
		all = append(all, policyName{object.Item("jwt_default_policies", i), id})
	}
	for _, scope := range object.SortedKeys(api.JWT.ScopePolicies) {
		all = append(all, policyName{object.Entry("jwt_scope_to_policy_mapping", scope), api.JWT.ScopePolicies[scope]})
	}
	return all
}

// names caches what checkRights has read.
type names struct {
	named   map[string]*definition.API
	catalog rights.Catalog
}
