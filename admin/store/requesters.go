package store

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/admin/store/db"
)

// A Requester is the part of a developer that key requests need.
type Requester struct {
	ID, Email string
	Inactive  bool
	Fields    []byte // JSON
	CreatedAt time.Time
}

// Requesters returns those of an organisation's developers that exist, by id.
func (s *Store) Requesters(ctx context.Context, org string, ids []string) (map[string]Requester, error) {
	rows, err := s.queries.Requesters(ctx, db.RequestersParams{OrgID: org, IDs: orEmpty(ids)})
	if err != nil {
		return nil, translate(err)
	}
	found := make(map[string]Requester, len(rows))
	for _, row := range rows {
		found[row.ID] = Requester(row)
	}
	return found, nil
}

// HoldRequester returns a developer, locked against deletion until the transaction
// ends, or ErrNotFound.
func (tx *Tx) HoldRequester(ctx context.Context, org, id string) (Requester, error) {
	row, err := tx.Queries.HoldRequester(ctx, db.HoldRequesterParams{OrgID: org, ID: id})
	return Requester(row), translate(err)
}

// LockRequester is HoldRequester that also serialises transactions of one developer.
func (tx *Tx) LockRequester(ctx context.Context, org, id string) (Requester, error) {
	row, err := tx.Queries.LockRequester(ctx, db.LockRequesterParams{OrgID: org, ID: id})
	return Requester(row), translate(err)
}

// CountKeyRequests returns the number of requests of a developer in a state.
func (tx *Tx) CountKeyRequests(ctx context.Context, org, developer, state string) (int64, error) {
	n, err := tx.Queries.CountKeyRequestsByDeveloper(ctx, db.CountKeyRequestsByDeveloperParams{OrgID: org, DeveloperID: developer, State: state})
	return n, translate(err)
}

// A RequestedPolicy is a policy that requests name.
type RequestedPolicy struct {
	ID, Name string
	State    string // active, draft or deny
	Body     []byte // JSON
}

// FindPolicies returns those of an organisation's policies that exist, by id.
func (s *Store) FindPolicies(ctx context.Context, org string, ids []string) (map[string]RequestedPolicy, error) {
	rows, err := s.queries.FindPolicies(ctx, db.FindPoliciesParams{OrgID: org, IDs: orEmpty(ids)})
	found := make(map[string]RequestedPolicy, len(rows))
	for _, row := range rows {
		found[row.ID] = RequestedPolicy(row)
	}
	return found, translate(err)
}

// HoldPolicies is FindPolicies with the policies locked against deletion until the
// transaction ends.
func (tx *Tx) HoldPolicies(ctx context.Context, org string, ids []string) (map[string]RequestedPolicy, error) {
	rows, err := tx.Queries.HoldPolicies(ctx, db.HoldPoliciesParams{OrgID: org, IDs: orEmpty(ids)})
	found := make(map[string]RequestedPolicy, len(rows))
	for _, row := range rows {
		found[row.ID] = RequestedPolicy(row)
	}
	return found, translate(err)
}
