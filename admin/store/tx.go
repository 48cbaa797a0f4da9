package store

import (
	"context"

	"github.com/sluicegate/sluice/admin/store/db"
)

// Tx is one transaction, for the rooms below this one: each keeps the statements
// of its own tables, and what they change together happens together or not at
// all. It is used by one goroutine, and only within InTx.
type Tx struct {
	*db.Queries
}

// InTx runs work in one transaction: all of it happens, or nothing. What work
// returns is translated as all errors of this package are.
func (s *Store) InTx(ctx context.Context, work func(*Tx) error) error {
	return s.inTx(ctx, func(q *db.Queries) error { return work(&Tx{q}) })
}

// Tx is the transaction of a change, for the rooms below this one.
func (c *Change) Tx() *Tx { return &Tx{c.q} }

// Revision is the number that a change will have once it is committed.
func (c *Change) Revision() int64 { return c.revision }

// Read returns the statements outside of any transaction, for reading. Their
// errors are the driver's: see Translate.
func (s *Store) Read() *db.Queries { return s.queries }

// Audit adds an entry to the audit log.
func (t *Tx) Audit(ctx context.Context, by Author, d Deed) error {
	return audit(ctx, t.Queries, by, d)
}

// CommitKey carries out a change of one key as a part of the transaction: the
// row, the audit log and the note that the key store is behind.
func (t *Tx) CommitKey(ctx context.Context, by Author, c *KeyChange) error {
	return commitKey(ctx, t.Queries, by, c)
}

// Limit is the page's size as a statement has it: at most 1,000.
func (p Page) Limit() int32 { return p.bounded() }

// Offset is how many rows a statement skips.
func (p Page) Offset() int32 { return p.offset() }

// LikePrefix is the pattern of LIKE for texts that begin with one.
func LikePrefix(text string) string { return likeEscapes.Replace(text) + "%" }
