package store

import (
	"context"

	"github.com/sluicegate/sluice/admin/store/db"
)

// AuditEntry is one entry of the audit log, about one object.
type AuditEntry struct {
	Action        string // created, updated, deleted, …
	Kind, ID      string // of the object
	Before, After []byte // JSON or nil; secrets in it are masked before it is stored
	Revision      int64  // of the configuration; 0 if it did not change
}

// AuditRow is one entry of the audit log.
type AuditRow = db.AuditLog

// AuditFilter filters a list of entries. Empty members do not filter.
type AuditFilter struct{ Kind, ID, Actor string }

// audit adds an entry. Entries are never changed or deleted.
func audit(ctx context.Context, q *db.Queries, by Author, d AuditEntry) error {
	row := db.InsertAuditParams{
		OrgID: by.Org, Actor: by.Name, ActorKind: by.Kind, IP: by.IP,
		Action: d.Action, ObjectKind: d.Kind, ObjectID: d.ID,
		Before: mask(d.Before), After: mask(d.After),
	}
	if d.Revision != 0 {
		row.Revision = &d.Revision
	}
	return q.InsertAudit(ctx, row)
}

// ListAudit returns one page of an organisation's audit log, newest first, and the total
// number of entries. A page has at most 1,000.
func (s *Store) ListAudit(ctx context.Context, org string, f AuditFilter, page Page) ([]AuditRow, int64, error) {
	total, err := s.queries.CountAudit(ctx, db.CountAuditParams{
		OrgID: org, ObjectKind: f.Kind, ObjectID: f.ID, Actor: f.Actor,
	})
	if err != nil {
		return nil, 0, translate(err)
	}
	rows, err := s.queries.ListAudit(ctx, db.ListAuditParams{
		OrgID: org, ObjectKind: f.Kind, ObjectID: f.ID, Actor: f.Actor,
		Skip: page.offset(), Max: page.bounded(),
	})
	return rows, total, translate(err)
}
