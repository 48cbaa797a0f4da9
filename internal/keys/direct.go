package keys

import (
	"context"
	"fmt"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// Direct is a Store over a key store and a counter, for processes without a database.
type Direct struct {
	Keys     keystore.Store
	Counters counter.Counter
}

// Get implements Store.
func (d Direct) Get(ctx context.Context, hash string) (*definition.Session, error) {
	return d.Keys.Get(ctx, hash)
}

// List implements Store.
func (d Direct) List(ctx context.Context, cursor string, count int) (hashes []string, next string, err error) {
	return d.Keys.List(ctx, cursor, count)
}

// Commit implements Store, in two steps that can be repeated: counters are reset after
// a key has changed, so that no call counts under its former session, and before one
// is deleted. An error that names the counters means that only their reset is missing.
// If two callers create one key at the same time, the later one wins.
func (d Direct) Commit(ctx context.Context, c Change) error {
	now, err := d.Keys.Get(ctx, c.Hash)
	switch {
	case err != nil && !isAbsent(err):
		return err
	case err == nil && c.New:
		return ErrExists
	case err != nil && !c.New:
		return ErrNotFound
	case err == nil && c.Found != nil && !definition.SameCredentials(now, c.Found):
		return ErrChanged
	}
	if err := d.further(ctx, c); err != nil {
		return err
	}
	if c.Session == nil {
		if err := d.reset(ctx, c.Reset); err != nil {
			return fmt.Errorf("the key is not deleted: %w", err)
		}
		return d.Keys.Delete(ctx, c.Hash)
	}
	if err := d.Keys.Put(ctx, c.Hash, c.Session); err != nil {
		return err
	}
	if err := d.reset(ctx, c.Reset); err != nil {
		return fmt.Errorf("the key is stored: %w", err)
	}
	return nil
}

// further deletes the further keys that were removed and stores a new one, before the
// session names it. If the session cannot be stored, the new one has no effect: a
// further key is valid only while its session names it.
func (d Direct) further(ctx context.Context, c Change) error {
	for _, hash := range c.Gone {
		if err := d.Keys.Delete(ctx, hash); err != nil && !isAbsent(err) {
			return fmt.Errorf("deleting a key that was replaced: %w", err)
		}
	}
	if c.Successor == "" {
		return nil
	}
	if err := d.Keys.Put(ctx, c.Successor, definition.NewSuccessor(c.Hash, c.Session.OrgID)); err != nil {
		return fmt.Errorf("storing the key's successor: %w", err)
	}
	return nil
}

func (d Direct) reset(ctx context.Context, counters []string) error {
	if len(counters) == 0 {
		return nil
	}
	if err := d.Counters.Reset(ctx, counters...); err != nil {
		return fmt.Errorf("resetting its quota counters: %w", err)
	}
	return nil
}
