package requests

import (
	"context"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// Insert adds a pending request to the author's organisation.
func Insert(ctx context.Context, tx *store.Tx, by store.Author, r *Request) (Request, error) {
	row, err := tx.InsertKeyRequest(ctx, db.InsertKeyRequestParams{
		ID: r.ID, OrgID: by.Org, DeveloperID: r.DeveloperID, Plan: r.Plan, Policies: texts(r.Policies),
		KeyHash: r.KeyHash, AuthType: r.AuthType, SealedSecret: octets(r.SealedSecret), Body: r.Body,
	})
	if err != nil {
		return Request{}, store.Translate(err)
	}
	return row, tx.Audit(ctx, by, store.Deed{Action: "created", Kind: kind, ID: row.ID, After: row.Body})
}

// Update replaces what a request, which the transaction has locked, asks for.
func Update(ctx context.Context, tx *store.Tx, by store.Author, old, r *Request) (Request, error) {
	row, err := tx.UpdateKeyRequest(ctx, db.UpdateKeyRequestParams{
		OrgID: by.Org, ID: old.ID, DeveloperID: r.DeveloperID, Plan: r.Plan, Policies: texts(r.Policies),
		KeyHash: r.KeyHash, AuthType: r.AuthType, SealedSecret: octets(r.SealedSecret), Body: r.Body,
	})
	if err != nil {
		return Request{}, store.Translate(err)
	}
	return row, tx.Audit(ctx, by, store.Deed{Action: "updated", Kind: kind, ID: row.ID, Before: old.Body, After: row.Body})
}

// A Decision ends a request.
type Decision struct {
	State  string // approved or rejected
	Reason string
	Hash   string // of the key that it came to
}

// Decide ends a request, which the transaction has locked.
func Decide(ctx context.Context, tx *store.Tx, by store.Author, old *Request, d Decision) (Request, error) {
	row, err := tx.DecideKeyRequest(ctx, db.DecideKeyRequestParams{
		OrgID: by.Org, ID: old.ID, State: d.State, Reason: d.Reason, DecidedBy: by.Name, KeyHash: d.Hash,
	})
	if err != nil {
		return Request{}, store.Translate(err)
	}
	return row, tx.Audit(ctx, by, store.Deed{Action: d.State, Kind: kind, ID: row.ID, Before: old.Body, After: row.Body})
}

// Delete removes a request, which the transaction has locked.
func Delete(ctx context.Context, tx *store.Tx, by store.Author, old *Request) error {
	if err := tx.DeleteKeyRequest(ctx, db.DeleteKeyRequestParams{OrgID: by.Org, ID: old.ID}); err != nil {
		return store.Translate(err)
	}
	return tx.Audit(ctx, by, store.Deed{Action: "deleted", Kind: kind, ID: old.ID, Before: old.Body})
}

// texts and octets are never nil: the columns are not null.
func texts(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func octets(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
