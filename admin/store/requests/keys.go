package requests

import (
	"context"
	"slices"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// Statements are those of a transaction, or of a store for reading.
type Statements = db.Queries

// LockKey returns a key of an organisation, which nobody else changes until the
// transaction ends, or store.ErrNotFound.
func LockKey(ctx context.Context, tx *store.Tx, org, hash string) (store.Key, error) {
	row, err := tx.LockKey(ctx, db.LockKeyParams{OrgID: org, KeyHash: hash})
	return row, store.Translate(err)
}

// APIByID returns the definition of an organisation's API as JSON, or
// store.ErrNotFound.
func APIByID(ctx context.Context, tx *store.Tx, org, id string) ([]byte, error) {
	row, err := tx.APIByID(ctx, db.APIByIDParams{OrgID: org, ID: id})
	return row.Definition, store.Translate(err)
}

// Owned says whose a key is.
type Owned = db.DeveloperKey

// A DeveloperKey is a key, and whose it is.
type DeveloperKey struct {
	Owner Owned
	Key   store.Key
}

// KeyOf returns a key of a developer, or store.ErrNotFound.
func KeyOf(ctx context.Context, q *Statements, org, developer, hash string) (DeveloperKey, error) {
	row, err := q.DeveloperKey(ctx, db.DeveloperKeyParams{OrgID: org, DeveloperID: developer, KeyHash: hash})
	return DeveloperKey{Owner: row.DeveloperKey, Key: row.Key}, store.Translate(err)
}

// KeyWith returns the hash of the newest key of a developer that has all of some
// policies, or store.ErrNotFound.
func KeyWith(ctx context.Context, q *Statements, org, developer string, policies []string) (string, error) {
	hash, err := q.DeveloperKeyWith(ctx, db.DeveloperKeyWithParams{OrgID: org, DeveloperID: developer, Policies: texts(policies)})
	return hash, store.Translate(err)
}

// KeysOf returns one page of a developer's keys, oldest first, and how many there
// are in all. A page has at most 1,000.
func KeysOf(ctx context.Context, q *Statements, org, developer string, page store.Page) ([]DeveloperKey, int64, error) {
	total, err := CountKeys(ctx, q, org, developer)
	if err != nil {
		return nil, 0, err
	}
	rows, err := q.ListDeveloperKeys(ctx, db.ListDeveloperKeysParams{OrgID: org, DeveloperID: developer, Skip: page.Offset(), Max: page.Limit()})
	all := make([]DeveloperKey, 0, len(rows))
	for _, row := range rows {
		all = append(all, DeveloperKey{Owner: row.DeveloperKey, Key: row.Key})
	}
	return all, total, store.Translate(err)
}

// CountKeys returns how many keys a developer has.
func CountKeys(ctx context.Context, q *Statements, org, developer string) (int64, error) {
	n, err := q.CountDeveloperKeys(ctx, db.CountDeveloperKeysParams{OrgID: org, DeveloperID: developer})
	return n, store.Translate(err)
}

// Own notes whose a new key is. It is the developer's newest for its policies.
func Own(ctx context.Context, tx *store.Tx, k *Owned) error {
	err := tx.InsertDeveloperKey(ctx, db.InsertDeveloperKeyParams{
		KeyHash: k.KeyHash, OrgID: k.OrgID, DeveloperID: k.DeveloperID, RequestID: k.RequestID, Policies: texts(k.Policies),
	})
	if err != nil {
		return store.Translate(err)
	}
	return subscribe(ctx, tx, k)
}

// subscribe writes the rows in one order, so that two transactions of a developer
// do not wait for each other.
func subscribe(ctx context.Context, tx *store.Tx, k *Owned) error {
	for _, policy := range slices.Sorted(slices.Values(k.Policies)) {
		err := tx.PutSubscription(ctx, db.PutSubscriptionParams{DeveloperID: k.DeveloperID, PolicyID: policy, KeyHash: k.KeyHash})
		if err != nil {
			return store.Translate(err)
		}
	}
	return nil
}
