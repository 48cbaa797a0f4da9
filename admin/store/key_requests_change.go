package store

import (
	"context"

	"github.com/sluicegate/sluice/admin/store/db"
)

// CreateKeyRequest adds a pending request to the author's organisation.
func (tx *Tx) CreateKeyRequest(ctx context.Context, by Author, r *KeyRequest) (KeyRequest, error) {
	row, err := tx.Queries.InsertKeyRequest(ctx, db.InsertKeyRequestParams{
		ID: r.ID, OrgID: by.Org, DeveloperID: r.DeveloperID, Plan: r.Plan, Policies: orEmpty(r.Policies),
		KeyHash: r.KeyHash, AuthType: r.AuthType, SealedSecret: orEmpty(r.SealedSecret), Body: r.Body,
	})
	if err != nil {
		return KeyRequest{}, translate(err)
	}
	return row, tx.Audit(ctx, by, AuditEntry{Action: "created", Kind: kindKeyRequest, ID: row.ID, After: row.Body})
}

// UpdateKeyRequest replaces a request that the transaction has locked.
func (tx *Tx) UpdateKeyRequest(ctx context.Context, by Author, old, r *KeyRequest) (KeyRequest, error) {
	row, err := tx.Queries.UpdateKeyRequest(ctx, db.UpdateKeyRequestParams{
		OrgID: by.Org, ID: old.ID, DeveloperID: r.DeveloperID, Plan: r.Plan, Policies: orEmpty(r.Policies),
		KeyHash: r.KeyHash, AuthType: r.AuthType, SealedSecret: orEmpty(r.SealedSecret), Body: r.Body,
	})
	if err != nil {
		return KeyRequest{}, translate(err)
	}
	return row, tx.Audit(ctx, by, AuditEntry{Action: "updated", Kind: kindKeyRequest, ID: row.ID, Before: old.Body, After: row.Body})
}

// A Decision approves or rejects a request.
type Decision struct {
	State  string // approved or rejected
	Reason string
	Hash   string // of the issued key
}

// DecideKeyRequest approves or rejects a request that the transaction has locked.
func (tx *Tx) DecideKeyRequest(ctx context.Context, by Author, old *KeyRequest, d Decision) (KeyRequest, error) {
	row, err := tx.Queries.DecideKeyRequest(ctx, db.DecideKeyRequestParams{
		OrgID: by.Org, ID: old.ID, State: d.State, Reason: d.Reason, DecidedBy: by.Name, KeyHash: d.Hash,
	})
	if err != nil {
		return KeyRequest{}, translate(err)
	}
	return row, tx.Audit(ctx, by, AuditEntry{Action: d.State, Kind: kindKeyRequest, ID: row.ID, Before: old.Body, After: row.Body})
}

// DeleteKeyRequest deletes a request that the transaction has locked.
func (tx *Tx) DeleteKeyRequest(ctx context.Context, by Author, old *KeyRequest) error {
	if err := tx.Queries.DeleteKeyRequest(ctx, db.DeleteKeyRequestParams{OrgID: by.Org, ID: old.ID}); err != nil {
		return translate(err)
	}
	return tx.Audit(ctx, by, AuditEntry{Action: "deleted", Kind: kindKeyRequest, ID: old.ID, Before: old.Body})
}
