// Package requests keeps key requests in the database, and whose keys are whose.
package requests

import (
	"context"
	"strings"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// Request is a stored key request: the record as JSON, without its secret, and what
// the store keeps beside it.
type Request = db.KeyRequest

// kind names key requests in the audit log.
const kind = "key_request"

// Filter says which requests a list holds. Empty members do not restrict.
type Filter struct {
	State     string // pending, approved, rejected or Unapproved
	Developer string // id
	Plan      string
	Search    string // begins the developer's address, in any case, or is the request's whole id
}

// Unapproved is every state but approved.
const Unapproved = "unapproved"

// Get returns an organisation's request, or store.ErrNotFound.
func Get(ctx context.Context, st *store.Store, org, id string) (Request, error) {
	row, err := st.Read().KeyRequestByID(ctx, db.KeyRequestByIDParams{OrgID: org, ID: id})
	return row, store.Translate(err)
}

// Lock is Get for a change: until the transaction ends nobody else decides on the
// request.
func Lock(ctx context.Context, tx *store.Tx, org, id string) (Request, error) {
	row, err := tx.LockKeyRequest(ctx, db.LockKeyRequestParams{OrgID: org, ID: id})
	return row, store.Translate(err)
}

// List returns one page of an organisation's requests, newest first, and how many
// there are in all. A page has at most 1,000.
func List(ctx context.Context, st *store.Store, org string, f Filter, page store.Page) ([]Request, int64, error) {
	if f.Search != "" {
		if one, err := Get(ctx, st, org, f.Search); err == nil && f.holds(&one) {
			return alone(one, page), 1, nil
		}
	}
	q := statementsOf(st.Read(), org, f, page)
	total, err := q.count(ctx)
	if err != nil {
		return nil, 0, store.Translate(err)
	}
	rows, err := q.list(ctx)
	return rows, total, store.Translate(err)
}

func (f Filter) holds(r *Request) bool {
	state := f.State == "" || f.State == r.State || f.State == Unapproved && r.State != "approved"
	return state && (f.Plan == "" || f.Plan == r.Plan) && (f.Developer == "" || f.Developer == r.DeveloperID)
}

// alone is the page of a list that holds one request.
func alone(one Request, page store.Page) []Request {
	if page.Skip > 0 {
		return []Request{}
	}
	return []Request{one}
}

// statements are the two of a list.
type statements struct {
	count func(context.Context) (int64, error)
	list  func(context.Context) ([]Request, error)
}

// statementsOf chooses those whose index is the narrowest.
func statementsOf(q *db.Queries, org string, f Filter, page store.Page) statements {
	skip, most := page.Offset(), page.Limit()
	switch {
	case f.Developer != "":
		return statements{
			func(ctx context.Context) (int64, error) {
				return q.CountKeyRequestsByDeveloper(ctx, db.CountKeyRequestsByDeveloperParams{OrgID: org, DeveloperID: f.Developer, State: f.State, Plan: f.Plan})
			},
			func(ctx context.Context) ([]Request, error) {
				return q.ListKeyRequestsByDeveloper(ctx, db.ListKeyRequestsByDeveloperParams{OrgID: org, DeveloperID: f.Developer, State: f.State, Plan: f.Plan, Skip: skip, Max: most})
			},
		}
	case f.Search != "":
		prefix := store.LikePrefix(strings.ToLower(f.Search))
		return statements{
			func(ctx context.Context) (int64, error) {
				return q.CountKeyRequestsByEmail(ctx, db.CountKeyRequestsByEmailParams{OrgID: org, Prefix: prefix, State: f.State, Plan: f.Plan})
			},
			func(ctx context.Context) ([]Request, error) {
				return q.ListKeyRequestsByEmail(ctx, db.ListKeyRequestsByEmailParams{OrgID: org, Prefix: prefix, State: f.State, Plan: f.Plan, Skip: skip, Max: most})
			},
		}
	case f.Plan != "":
		return statements{
			func(ctx context.Context) (int64, error) {
				return q.CountKeyRequestsByPlan(ctx, db.CountKeyRequestsByPlanParams{OrgID: org, Plan: f.Plan, State: f.State})
			},
			func(ctx context.Context) ([]Request, error) {
				return q.ListKeyRequestsByPlan(ctx, db.ListKeyRequestsByPlanParams{OrgID: org, Plan: f.Plan, State: f.State, Skip: skip, Max: most})
			},
		}
	case f.State == Unapproved:
		return unapproved(q, org, page)
	case f.State != "":
		return statements{
			func(ctx context.Context) (int64, error) {
				return q.CountKeyRequestsByState(ctx, db.CountKeyRequestsByStateParams{OrgID: org, State: f.State})
			},
			func(ctx context.Context) ([]Request, error) {
				return q.ListKeyRequestsByState(ctx, db.ListKeyRequestsByStateParams{OrgID: org, State: f.State, Skip: skip, Max: most})
			},
		}
	}
	return statements{
		func(ctx context.Context) (int64, error) { return q.CountKeyRequests(ctx, org) },
		func(ctx context.Context) ([]Request, error) {
			return q.ListKeyRequests(ctx, db.ListKeyRequestsParams{OrgID: org, Skip: skip, Max: most})
		},
	}
}

func unapproved(q *db.Queries, org string, page store.Page) statements {
	return statements{
		func(ctx context.Context) (int64, error) { return q.CountUnapprovedKeyRequests(ctx, org) },
		func(ctx context.Context) ([]Request, error) {
			rows, err := q.ListUnapprovedKeyRequests(ctx, db.ListUnapprovedKeyRequestsParams{OrgID: org, Skip: page.Offset(), Max: page.Limit()})
			all := make([]Request, 0, len(rows))
			for i := range rows {
				all = append(all, Request(rows[i]))
			}
			return all, err
		},
	}
}
