package store

import (
	"context"
	"slices"

	"github.com/sluicegate/sluice/admin/store/db"
)

// LockKey returns a key of an organisation, locked until the transaction ends, or
// ErrNotFound.
func (tx *Tx) LockKey(ctx context.Context, org, hash string) (Key, error) {
	row, err := tx.Queries.LockKey(ctx, db.LockKeyParams{OrgID: org, KeyHash: hash})
	return row, translate(err)
}

// APIDefinition returns the definition of an organisation's API as JSON, or
// ErrNotFound.
func (tx *Tx) APIDefinition(ctx context.Context, org, id string) ([]byte, error) {
	row, err := tx.Queries.APIByID(ctx, db.APIByIDParams{OrgID: org, ID: id})
	return row.Definition, translate(err)
}

// KeyOwnership is the developer who has a key, and the policies that it was issued for.
type KeyOwnership = db.DeveloperKey

// A DeveloperKey is a key with its owner.
type DeveloperKey struct {
	Owner KeyOwnership
	Key   Key
}

// DeveloperKey returns a key of a developer, or ErrNotFound.
func (r Reader) DeveloperKey(ctx context.Context, org, developer, hash string) (DeveloperKey, error) {
	row, err := r.q.DeveloperKey(ctx, db.DeveloperKeyParams{OrgID: org, DeveloperID: developer, KeyHash: hash})
	return DeveloperKey{Owner: row.DeveloperKey, Key: row.Key}, translate(err)
}

// DeveloperKeyWith returns the hash of the newest key of a developer that has all given
// policies, or ErrNotFound.
func (r Reader) DeveloperKeyWith(ctx context.Context, org, developer string, policies []string) (string, error) {
	hash, err := r.q.DeveloperKeyWith(ctx, db.DeveloperKeyWithParams{OrgID: org, DeveloperID: developer, Policies: orEmpty(policies)})
	return hash, translate(err)
}

// DeveloperKeys returns one page of a developer's keys, oldest first, and how many there
// are in all. A page has at most 1,000.
func (r Reader) DeveloperKeys(ctx context.Context, org, developer string, page Page) ([]DeveloperKey, int64, error) {
	total, err := r.CountDeveloperKeys(ctx, org, developer)
	if err != nil {
		return nil, 0, err
	}
	rows, err := r.q.ListDeveloperKeys(ctx, db.ListDeveloperKeysParams{OrgID: org, DeveloperID: developer, Skip: page.Offset(), Max: page.Limit()})
	all := make([]DeveloperKey, 0, len(rows))
	for _, row := range rows {
		all = append(all, DeveloperKey{Owner: row.DeveloperKey, Key: row.Key})
	}
	return all, total, translate(err)
}

// CountDeveloperKeys returns how many keys a developer has.
func (r Reader) CountDeveloperKeys(ctx context.Context, org, developer string) (int64, error) {
	n, err := r.q.CountDeveloperKeys(ctx, db.CountDeveloperKeysParams{OrgID: org, DeveloperID: developer})
	return n, translate(err)
}

// SetKeyOwner stores the owner of a new key, which becomes their newest one for its
// policies.
func (tx *Tx) SetKeyOwner(ctx context.Context, k *KeyOwnership) error {
	err := tx.Queries.InsertDeveloperKey(ctx, db.InsertDeveloperKeyParams{
		KeyHash: k.KeyHash, OrgID: k.OrgID, DeveloperID: k.DeveloperID, RequestID: k.RequestID, Policies: orEmpty(k.Policies),
	})
	if err != nil {
		return translate(err)
	}
	return subscribe(ctx, tx, k)
}

// subscribe writes the rows in a fixed order, so that concurrent transactions of a
// developer do not deadlock.
func subscribe(ctx context.Context, tx *Tx, k *KeyOwnership) error {
	for _, policy := range slices.Sorted(slices.Values(k.Policies)) {
		err := tx.Queries.PutSubscription(ctx, db.PutSubscriptionParams{DeveloperID: k.DeveloperID, PolicyID: policy, KeyHash: k.KeyHash})
		if err != nil {
			return translate(err)
		}
	}
	return nil
}
