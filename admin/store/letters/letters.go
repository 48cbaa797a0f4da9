// Package letters keeps the local mailbox: letters that no server was there to
// send.
package letters

import (
	"context"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// Row is a letter as it is kept.
type Row = db.Delivery

// List returns one page of an organisation's letters, newest first, and how many
// there are in all; with an address, of those that went there.
func List(ctx context.Context, st *store.Store, org, to string, page store.Page) ([]Row, int64, error) {
	total, err := st.Read().CountLetters(ctx, db.CountLettersParams{OrgID: org, Target: to})
	if err != nil {
		return nil, 0, store.Translate(err)
	}
	rows, err := st.Read().ListLetters(ctx, db.ListLettersParams{OrgID: org, Target: to, Max: page.Limit(), Skip: page.Offset()})
	return rows, total, store.Translate(err)
}

// Read returns a letter, and notes who read it: letters hold keys.
func Read(ctx context.Context, st *store.Store, by store.Author, id string) (Row, error) {
	var row Row
	err := st.InTx(ctx, func(tx *store.Tx) (err error) {
		if row, err = tx.LetterByID(ctx, db.LetterByIDParams{OrgID: by.Org, ID: id}); err != nil {
			return err
		}
		return tx.Audit(ctx, by, store.Deed{Action: "read", Kind: "letter", ID: id})
	})
	return row, err
}

// Delete takes a letter out of the mailbox.
func Delete(ctx context.Context, st *store.Store, by store.Author, id string) error {
	return st.InTx(ctx, func(tx *store.Tx) error {
		gone, err := tx.DeleteLetter(ctx, db.DeleteLetterParams{OrgID: by.Org, ID: id})
		if err != nil {
			return err
		}
		if gone == 0 {
			return store.ErrNotFound
		}
		return tx.Audit(ctx, by, store.Deed{Action: "deleted", Kind: "letter", ID: id})
	})
}

// Trim forgets the oldest letters of an organisation that has more than most.
func Trim(ctx context.Context, tx *store.Tx, org string, most int) error {
	return tx.TrimLetters(ctx, db.TrimLettersParams{OrgID: org, Most: store.Page{Skip: most}.Offset()})
}
