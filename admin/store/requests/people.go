package requests

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// A Requester is a developer, as far as key requests have to do with one.
type Requester struct {
	ID, Email string
	Inactive  bool
	Fields    []byte // JSON
	CreatedAt time.Time
}

// Requesters returns those of an organisation's developers that there are, by id.
func Requesters(ctx context.Context, st *store.Store, org string, ids []string) (map[string]Requester, error) {
	rows, err := st.Read().Requesters(ctx, db.RequestersParams{OrgID: org, IDs: texts(ids)})
	if err != nil {
		return nil, store.Translate(err)
	}
	found := make(map[string]Requester, len(rows))
	for _, row := range rows {
		found[row.ID] = Requester(row)
	}
	return found, nil
}

// HoldRequester returns a developer who is not deleted until the transaction ends,
// or store.ErrNotFound.
func HoldRequester(ctx context.Context, tx *store.Tx, org, id string) (Requester, error) {
	row, err := tx.HoldRequester(ctx, db.HoldRequesterParams{OrgID: org, ID: id})
	return Requester(row), store.Translate(err)
}

// LockRequester is HoldRequester, and has what is done for one developer happen one
// after the other.
func LockRequester(ctx context.Context, tx *store.Tx, org, id string) (Requester, error) {
	row, err := tx.LockRequester(ctx, db.LockRequesterParams{OrgID: org, ID: id})
	return Requester(row), store.Translate(err)
}

// CountOf returns how many requests of a developer are in a state.
func CountOf(ctx context.Context, tx *store.Tx, org, developer, state string) (int64, error) {
	n, err := tx.CountKeyRequestsByDeveloper(ctx, db.CountKeyRequestsByDeveloperParams{OrgID: org, DeveloperID: developer, State: state})
	return n, store.Translate(err)
}

// A Policy is one that requests name.
type Policy struct {
	ID, Name string
	State    string // active, draft or deny
	Body     []byte // JSON
}

// FindPolicies returns those of an organisation's policies that there are, by id.
func FindPolicies(ctx context.Context, st *store.Store, org string, ids []string) (map[string]Policy, error) {
	rows, err := st.Read().FindPolicies(ctx, db.FindPoliciesParams{OrgID: org, IDs: texts(ids)})
	found := make(map[string]Policy, len(rows))
	for _, row := range rows {
		found[row.ID] = Policy(row)
	}
	return found, store.Translate(err)
}

// HoldPolicies is FindPolicies for policies that are not deleted until the
// transaction ends.
func HoldPolicies(ctx context.Context, tx *store.Tx, org string, ids []string) (map[string]Policy, error) {
	rows, err := tx.HoldPolicies(ctx, db.HoldPoliciesParams{OrgID: org, IDs: texts(ids)})
	found := make(map[string]Policy, len(rows))
	for _, row := range rows {
		found[row.ID] = Policy(row)
	}
	return found, store.Translate(err)
}
