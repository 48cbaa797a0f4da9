package rotatemaster

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/secret"
)

// The check value: what it holds, and the additional data that it is sealed with.
var (
	checkText  = []byte("sluice")
	checkPlace = []byte("master_key_check")
)

// A WrongKeyError means that a key is not the master key of the database.
type WrongKeyError struct{ Cause error }

// Error says why.
func (e *WrongKeyError) Error() string {
	return "this is not the master key of the database: its secrets are " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *WrongKeyError) Unwrap() error { return e.Cause }

// Check refuses with a *WrongKeyError a key that is not the master key of the database.
// The first key that is checked becomes it, if it opens what is sealed already: a database
// of an earlier release may hold sealed values and no check value.
func Check(ctx context.Context, st *store.Store, key secret.Key) error {
	sealed, err := st.MasterKeyCheck(ctx)
	if errors.Is(err, store.ErrNotFound) {
		sealed, err = firstCheck(ctx, st, key)
	}
	if err != nil {
		return err
	}
	if _, err := key.Open(sealed, checkPlace); err != nil {
		return &WrongKeyError{err}
	}
	return nil
}

// Verify is Check for a key that does not become the master key: without a check value it
// is enough that it opens what is sealed already.
func Verify(ctx context.Context, st *store.Store, key secret.Key) error {
	sealed, err := st.MasterKeyCheck(ctx)
	if errors.Is(err, store.ErrNotFound) {
		return opensSome(ctx, st, key)
	}
	if err != nil {
		return err
	}
	if _, err := key.Open(sealed, checkPlace); err != nil {
		return &WrongKeyError{err}
	}
	return nil
}

// firstCheck stores a check value. If another admin was first, it returns that one's.
func firstCheck(ctx context.Context, st *store.Store, key secret.Key) ([]byte, error) {
	if err := opensSome(ctx, st, key); err != nil {
		return nil, err
	}
	sealed, err := key.Seal(checkText, checkPlace)
	if err != nil {
		return nil, err
	}
	return st.AddMasterKeyCheck(ctx, sealed)
}

// opensSome refuses a key that opens no sealed value although there are some. It
// looks at the first ones of each table.
func opensSome(ctx context.Context, st *store.Store, key secret.Key) error {
	var refused error
	tables := store.SealedTables()
	for i := range tables {
		found, _, err := tables[i].Next(ctx, st, "")
		if err != nil {
			return fmt.Errorf("reading %s: %w", tables[i].Name, err)
		}
		for j := range found {
			_, err := key.Open(found[j].Sealed, found[j].Place())
			if err == nil {
				return nil
			}
			refused = err
		}
	}
	if refused != nil {
		return &WrongKeyError{refused}
	}
	return nil
}

// renew seals the check value with the new key, after everything else.
func (r *Rotation) renew(ctx context.Context) error {
	sealed, err := r.Store.MasterKeyCheck(ctx)
	if errors.Is(err, store.ErrNotFound) {
		return Check(ctx, r.Store, r.New)
	}
	if err != nil {
		return err
	}
	if _, err := r.New.Open(sealed, checkPlace); err == nil {
		return nil
	}
	fresh, err := r.New.Seal(checkText, checkPlace)
	if err != nil {
		return err
	}
	return r.Store.ReplaceMasterKeyCheck(ctx, sealed, fresh)
}
