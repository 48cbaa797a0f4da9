package store

import (
	"context"
	"errors"
	"time"

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

// maxDeveloperEntries is how many entries a developer may cause in a day, so that nobody
// without rights of their own can fill the database.
const maxDeveloperEntries = 1000

// ErrAuditSpent reports that a developer caused too many entries of the audit log in a
// day. The change was not made.
var ErrAuditSpent = errors.New("too many changes in a day")

// audit adds an entry. Entries are never changed, and are deleted by ForgetAudit only.
func audit(ctx context.Context, q *db.Queries, by Author, d AuditEntry) error {
	if by.Kind == kindDeveloper {
		spent, err := q.SpentAudit(ctx, db.SpentAuditParams{OrgID: by.Org, Actor: by.Name, Budget: maxDeveloperEntries})
		if err != nil {
			return err
		}
		if spent {
			return ErrAuditSpent
		}
	}
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

// forgotAtOnce bounds the entries that one statement deletes.
const forgotAtOnce = 10_000

// ForgetAudit deletes the entries of all organisations from before a moment.
func (s *Store) ForgetAudit(ctx context.Context, before time.Time) error {
	for {
		deleted, err := s.queries.ForgetAudit(ctx, db.ForgetAuditParams{Before: before, Most: forgotAtOnce})
		if err != nil || deleted < forgotAtOnce {
			return translate(err)
		}
	}
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
