package store

import (
	"context"

	"github.com/sluicegate/sluice/admin/store/db"
)

// Tx is one transaction. It is used by one goroutine, and only within InTx.
type Tx struct {
	*db.Queries
}

// InTx runs work in one transaction, which is committed if work returns nil. Errors of
// the driver are translated, as in all of this package.
func (s *Store) InTx(ctx context.Context, work func(*Tx) error) error {
	return s.inTx(ctx, func(q *db.Queries) error { return work(&Tx{q}) })
}

// Tx returns the transaction of a change.
func (c *Change) Tx() *Tx { return &Tx{c.q} }

// Revision returns the number that the change has once it is committed.
func (c *Change) Revision() int64 { return c.revision }

// A Reader reads, within a transaction or outside of one.
type Reader struct{ q *db.Queries }

// Reader returns a reader outside of any transaction.
func (s *Store) Reader() Reader { return Reader{s.queries} }

// Reader returns a reader that sees what the transaction sees.
func (tx *Tx) Reader() Reader { return Reader{tx.Queries} }

// Read returns the statements outside of a transaction, for reading. Their errors are
// those of the driver: see Translate.
func (s *Store) Read() *db.Queries { return s.queries }

// Audit adds an entry to the audit log.
func (tx *Tx) Audit(ctx context.Context, by Author, d AuditEntry) error {
	return audit(ctx, tx.Queries, by, d)
}

// CommitKey changes one key as part of the transaction: the row, the audit log and the
// outbox of the key store.
func (tx *Tx) CommitKey(ctx context.Context, by Author, c *KeyChange) error {
	return commitKey(ctx, tx.Queries, by, c)
}

// Limit returns the size of the page for a statement: at most 1,000.
func (p Page) Limit() int32 { return p.bounded() }

// Offset returns how many rows a statement skips.
func (p Page) Offset() int32 { return p.offset() }

// LikePrefix returns the LIKE pattern for texts that begin with text.
func LikePrefix(text string) string { return likeEscapes.Replace(text) + "%" }
