package store

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition"
)

// Policy is a stored policy: its body as JSON, and columns derived from it.
type Policy = db.Policy

// PolicyFilter filters a list of policies. Empty members do not filter.
type PolicyFilter struct {
	Search string   // part of a name in any case, or a whole id
	State  string   // active, draft or deny
	API    string   // an API that the policy names
	IDs    []string // one of these
}

// PolicyByID returns an organisation's policy.
func (s *Store) PolicyByID(ctx context.Context, org, id string) (Policy, error) {
	row, err := s.queries.PolicyByID(ctx, db.PolicyByIDParams{OrgID: org, ID: id})
	return row, translate(err)
}

// ListPolicies returns one page of an organisation's policies and how many
// there are in all, sorted as in ListAPIs.
func (s *Store) ListPolicies(ctx context.Context, org string, f PolicyFilter, sort string, page Page) ([]Policy, int64, error) {
	if f.IDs == nil {
		f.IDs = []string{}
	}
	total, err := s.queries.CountPolicies(ctx, db.CountPoliciesParams{
		OrgID: org, Search: f.Search, State: f.State, API: f.API, IDs: f.IDs,
	})
	if err != nil {
		return nil, 0, translate(err)
	}
	rows, err := s.queries.ListPolicies(ctx, db.ListPoliciesParams{
		OrgID: org, Search: f.Search, State: f.State, API: f.API, IDs: f.IDs,
		Sort: sort, Skip: page.offset(), Max: page.limit(),
	})
	return rows, total, translate(err)
}

// PolicyBodies returns those of an organisation's policies that ids name.
func (s *Store) PolicyBodies(ctx context.Context, org string, ids []string) ([][]byte, error) {
	bodies, err := s.queries.PoliciesByID(ctx, db.PoliciesByIDParams{OrgID: org, IDs: ids})
	return bodies, translate(err)
}

// CreatePolicy adds a policy, which then belongs to the author's organisation.
// Its rights may name APIs of that organisation only.
func (c *Change) CreatePolicy(ctx context.Context, p *definition.Policy) error {
	row, err := c.policyRow(ctx, p)
	if err != nil {
		return err
	}
	if err := c.checkPolicyTaken(ctx, row, true); err != nil {
		return err
	}
	err = c.q.InsertPolicy(ctx, db.InsertPolicyParams{
		ID: row.ID, OrgID: row.OrgID, Name: row.Name, State: row.State, APIs: row.APIs, Body: row.Body,
	})
	if err != nil {
		return err
	}
	return c.note(ctx, ObjectChange{kindPolicy, row.ID, row.Name, created}, nil, row.Body)
}

// UpdatePolicy replaces a policy that is at version have, or at any when have is
// 0, and returns its new version.
func (c *Change) UpdatePolicy(ctx context.Context, p *definition.Policy, have int64) (version int64, err error) {
	old, err := c.q.PolicyByID(ctx, db.PolicyByIDParams{OrgID: c.by.Org, ID: p.Key()})
	if err != nil {
		return 0, err
	}
	if err := CheckVersion(have, old.Version); err != nil {
		return 0, err
	}
	row, err := c.policyRow(ctx, p)
	if err != nil {
		return 0, err
	}
	if err := c.checkPolicyTaken(ctx, row, false); err != nil {
		return 0, err
	}
	version, err = c.q.UpdatePolicy(ctx, db.UpdatePolicyParams{
		OrgID: row.OrgID, ID: row.ID, Name: row.Name, State: row.State, APIs: row.APIs, Body: row.Body,
	})
	if err != nil {
		return 0, err
	}
	return version, c.note(ctx, ObjectChange{kindPolicy, row.ID, row.Name, updated}, old.Body, row.Body)
}

// DeletePolicy removes a policy at version have, or at any when have is 0. Keys
// that carry it lose what it gave them.
func (c *Change) DeletePolicy(ctx context.Context, id string, have int64) error {
	old, err := c.q.PolicyByID(ctx, db.PolicyByIDParams{OrgID: c.by.Org, ID: id})
	if err != nil {
		return err
	}
	if err := CheckVersion(have, old.Version); err != nil {
		return err
	}
	if err := c.q.DeletePolicy(ctx, db.DeletePolicyParams{OrgID: c.by.Org, ID: id}); err != nil {
		return err
	}
	return c.note(ctx, ObjectChange{kindPolicy, id, old.Name, deleted}, old.Body, nil)
}

func (c *Change) checkPolicyTaken(ctx context.Context, row db.Policy, creating bool) error {
	others, err := c.q.PolicyTaken(ctx, db.PolicyTakenParams{ID: row.ID, OrgID: row.OrgID, Name: row.Name})
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.ID != row.ID {
			return &ConflictError{Kind: TakenName, With: c.visible(other.OrgID, other.ID)}
		}
		if creating {
			return &ConflictError{Kind: TakenID, With: c.visible(other.OrgID, other.ID)}
		}
	}
	return nil
}

// policyRow derives a policy's columns, refusing APIs that are not there.
func (c *Change) policyRow(ctx context.Context, p *definition.Policy) (db.Policy, error) {
	row, err := c.plainPolicyRow(p)
	if err != nil {
		return db.Policy{}, err
	}
	known, err := c.q.KnownAPIs(ctx, db.KnownAPIsParams{OrgID: c.by.Org, IDs: row.APIs})
	if err != nil {
		return db.Policy{}, err
	}
	if len(known) == len(row.APIs) {
		return row, c.checkRights(ctx, p)
	}
	missing := slices.DeleteFunc(slices.Clone(row.APIs), func(id string) bool { return slices.Contains(known, id) })
	return db.Policy{}, &UnknownAPIsError{IDs: missing}
}

func (c *Change) plainPolicyRow(p *definition.Policy) (db.Policy, error) {
	stored := *p
	stored.OrgID = c.by.Org
	body, err := encode(&stored)
	if err != nil {
		return db.Policy{}, err
	}
	return db.Policy{
		// Names are unique; the id stands for a missing one.
		ID: p.Key(), OrgID: c.by.Org, Name: cmp.Or(p.Name, p.Key()), State: policyState(p),
		APIs: sortedNames(p.AccessRights), Body: body,
	}, nil
}

// policyState is the state that a list filters by. A policy that says nothing
// is active.
func policyState(p *definition.Policy) string {
	if p.IsInactive || p.Active != nil && !*p.Active {
		return "deny"
	}
	if p.State == "" {
		return "active"
	}
	return p.State
}

// sortedNames is never nil: the column is not null.
func sortedNames(rights map[string]*definition.Access) []string {
	names := slices.AppendSeq(make([]string, 0, len(rights)), maps.Keys(rights))
	slices.Sort(names)
	return names
}
