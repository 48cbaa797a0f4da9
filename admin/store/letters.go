package store

import (
	"context"

	"github.com/sluicegate/sluice/admin/store/db"
)

// ListLetters returns one page of an organisation's letters to an address, "" for all,
// newest first, and their total number.
func (s *Store) ListLetters(ctx context.Context, org, to string, page Page) ([]Message, int64, error) {
	total, err := s.queries.CountLetters(ctx, db.CountLettersParams{OrgID: org, Target: to})
	if err != nil {
		return nil, 0, translate(err)
	}
	rows, err := s.queries.ListLetters(ctx, db.ListLettersParams{OrgID: org, Target: to, Max: page.Limit(), Skip: page.Offset()})
	return rows, total, translate(err)
}

// ReadLetter returns a letter, and records the reader in the audit log: letters may
// hold keys.
func (s *Store) ReadLetter(ctx context.Context, by Author, id string) (Message, error) {
	var row Message
	err := s.InTx(ctx, func(tx *Tx) (err error) {
		if row, err = tx.Queries.LetterByID(ctx, db.LetterByIDParams{OrgID: by.Org, ID: id}); err != nil {
			return err
		}
		return tx.Audit(ctx, by, AuditEntry{Action: "read", Kind: "letter", ID: id})
	})
	return row, err
}

// DeleteLetter deletes a letter from the mailbox.
func (s *Store) DeleteLetter(ctx context.Context, by Author, id string) error {
	return s.InTx(ctx, func(tx *Tx) error {
		gone, err := tx.Queries.DeleteLetter(ctx, db.DeleteLetterParams{OrgID: by.Org, ID: id})
		if err != nil {
			return err
		}
		if gone == 0 {
			return ErrNotFound
		}
		return tx.Audit(ctx, by, AuditEntry{Action: "deleted", Kind: "letter", ID: id})
	})
}

// TrimLetters deletes the oldest letters of an organisation beyond most.
func (tx *Tx) TrimLetters(ctx context.Context, org string, most int) error {
	return tx.Queries.TrimLetters(ctx, db.TrimLettersParams{OrgID: org, Most: Page{Skip: most}.Offset()})
}
