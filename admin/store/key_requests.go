package store

import (
	"context"
	"strings"

	"github.com/sluicegate/sluice/admin/store/db"
)

// KeyRequest is a stored key request: its JSON without the secret, and columns derived
// from it.
type KeyRequest = db.KeyRequest

// kindKeyRequest names key requests in the audit log.
const kindKeyRequest = "key_request"

// KeyRequestFilter filters a list of requests. Empty members do not filter.
type KeyRequestFilter struct {
	State     string // pending, approved, rejected or Unapproved
	Developer string // id
	Plan      string
	Search    string // beginning of the developer's address, in any case, or a whole id
}

// Unapproved is every state but approved.
const Unapproved = "unapproved"

// KeyRequestByID returns an organisation's request, or ErrNotFound.
func (s *Store) KeyRequestByID(ctx context.Context, org, id string) (KeyRequest, error) {
	row, err := s.queries.KeyRequestByID(ctx, db.KeyRequestByIDParams{OrgID: org, ID: id})
	return row, translate(err)
}

// LockKeyRequest is KeyRequestByID, with the request locked until the transaction ends.
func (tx *Tx) LockKeyRequest(ctx context.Context, org, id string) (KeyRequest, error) {
	row, err := tx.Queries.LockKeyRequest(ctx, db.LockKeyRequestParams{OrgID: org, ID: id})
	return row, translate(err)
}

// ListKeyRequests returns one page of an organisation's requests, newest first, and
// their total number. A page has at most 1,000.
func (s *Store) ListKeyRequests(ctx context.Context, org string, f KeyRequestFilter, page Page) ([]KeyRequest, int64, error) {
	if f.Search != "" {
		if one, err := s.KeyRequestByID(ctx, org, f.Search); err == nil && f.holds(&one) {
			return onlyRequest(one, page), 1, nil
		}
	}
	q := requestStatementsOf(s.queries, org, f, page)
	total, err := q.count(ctx)
	if err != nil {
		return nil, 0, translate(err)
	}
	rows, err := q.list(ctx)
	return rows, total, translate(err)
}

func (f KeyRequestFilter) holds(r *KeyRequest) bool {
	state := f.State == "" || f.State == r.State || f.State == Unapproved && r.State != "approved"
	return state && (f.Plan == "" || f.Plan == r.Plan) && (f.Developer == "" || f.Developer == r.DeveloperID)
}

// onlyRequest returns the page of a list of one request.
func onlyRequest(one KeyRequest, page Page) []KeyRequest {
	if page.Skip > 0 {
		return []KeyRequest{}
	}
	return []KeyRequest{one}
}

// requestStatements are the statements that count and list requests.
type requestStatements struct {
	count func(context.Context) (int64, error)
	list  func(context.Context) ([]KeyRequest, error)
}

// requestStatementsOf returns the statements with the most selective index.
func requestStatementsOf(q *db.Queries, org string, f KeyRequestFilter, page Page) requestStatements {
	skip, most := page.Offset(), page.Limit()
	switch {
	case f.Developer != "":
		return requestStatements{
			func(ctx context.Context) (int64, error) {
				return q.CountKeyRequestsByDeveloper(ctx, db.CountKeyRequestsByDeveloperParams{OrgID: org, DeveloperID: f.Developer, State: f.State, Plan: f.Plan})
			},
			func(ctx context.Context) ([]KeyRequest, error) {
				return q.ListKeyRequestsByDeveloper(ctx, db.ListKeyRequestsByDeveloperParams{OrgID: org, DeveloperID: f.Developer, State: f.State, Plan: f.Plan, Skip: skip, Max: most})
			},
		}
	case f.Search != "":
		prefix := LikePrefix(strings.ToLower(f.Search))
		return requestStatements{
			func(ctx context.Context) (int64, error) {
				return q.CountKeyRequestsByEmail(ctx, db.CountKeyRequestsByEmailParams{OrgID: org, Prefix: prefix, State: f.State, Plan: f.Plan})
			},
			func(ctx context.Context) ([]KeyRequest, error) {
				return q.ListKeyRequestsByEmail(ctx, db.ListKeyRequestsByEmailParams{OrgID: org, Prefix: prefix, State: f.State, Plan: f.Plan, Skip: skip, Max: most})
			},
		}
	case f.Plan != "":
		return requestStatements{
			func(ctx context.Context) (int64, error) {
				return q.CountKeyRequestsByPlan(ctx, db.CountKeyRequestsByPlanParams{OrgID: org, Plan: f.Plan, State: f.State})
			},
			func(ctx context.Context) ([]KeyRequest, error) {
				return q.ListKeyRequestsByPlan(ctx, db.ListKeyRequestsByPlanParams{OrgID: org, Plan: f.Plan, State: f.State, Skip: skip, Max: most})
			},
		}
	case f.State == Unapproved:
		return unapprovedStatements(q, org, page)
	case f.State != "":
		return requestStatements{
			func(ctx context.Context) (int64, error) {
				return q.CountKeyRequestsByState(ctx, db.CountKeyRequestsByStateParams{OrgID: org, State: f.State})
			},
			func(ctx context.Context) ([]KeyRequest, error) {
				return q.ListKeyRequestsByState(ctx, db.ListKeyRequestsByStateParams{OrgID: org, State: f.State, Skip: skip, Max: most})
			},
		}
	}
	return requestStatements{
		func(ctx context.Context) (int64, error) { return q.CountKeyRequests(ctx, org) },
		func(ctx context.Context) ([]KeyRequest, error) {
			return q.ListKeyRequests(ctx, db.ListKeyRequestsParams{OrgID: org, Skip: skip, Max: most})
		},
	}
}

func unapprovedStatements(q *db.Queries, org string, page Page) requestStatements {
	return requestStatements{
		func(ctx context.Context) (int64, error) { return q.CountUnapprovedKeyRequests(ctx, org) },
		func(ctx context.Context) ([]KeyRequest, error) {
			rows, err := q.ListUnapprovedKeyRequests(ctx, db.ListUnapprovedKeyRequestsParams{OrgID: org, Skip: page.Offset(), Max: page.Limit()})
			all := make([]KeyRequest, 0, len(rows))
			for i := range rows {
				all = append(all, KeyRequest(rows[i]))
			}
			return all, err
		},
	}
}
