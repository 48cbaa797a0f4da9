package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/requests"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
)

// ledger is the keys.Store of one transaction. Whatever it returns is locked until
// that ends.
type ledger struct {
	work  *Work
	shown func(hash string) string // what people read in place of a hash
	fresh bool                     // keys are made, and none is replaced

	made   string // hash of the key that was written last
	failed error  // of a look that could not return an error of its own
}

// Get implements keys.Store.
func (l *ledger) Get(ctx context.Context, hash string) (*definition.Session, error) {
	row, err := requests.LockKey(ctx, l.work.Tx, l.work.By.Org, hash)
	if err != nil {
		return nil, keyError(err)
	}
	return sessionOf(&row)
}

// List implements keys.Store; nobody lists keys within a transaction.
func (l *ledger) List(context.Context, string, int) (hashes []string, next string, err error) {
	return nil, "", errors.New("keys are not listed within a transaction")
}

// Commit implements keys.Store.
func (l *ledger) Commit(ctx context.Context, c keys.Change) error {
	switch {
	case l.failed != nil:
		return l.failed
	case l.fresh && !c.New:
		return keys.ErrExists
	}
	change := store.KeyChange{
		Hash: c.Hash, Session: c.Session, Reset: c.Reset, New: c.New, Successor: c.Successor, Gone: c.Gone, Found: c.Found,
		Shown: l.shown,
	}
	if err := l.work.CommitKey(ctx, l.work.By, &change); err != nil {
		return keyError(store.Translate(err))
	}
	l.made = c.Hash
	l.work.Touched(append(change.Others(), c.Hash)...)
	return nil
}

// api returns an API, or nil for an unknown one. When the database fails that is
// kept, and nothing is committed.
func (l *ledger) api(ctx context.Context, id string) *definition.API {
	body, err := requests.APIByID(ctx, l.work.Tx, l.work.By.Org, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	api := new(definition.API)
	if err == nil {
		err = json.Unmarshal(body, api)
	}
	if err != nil {
		l.failed = fmt.Errorf("reading API %s: %w", id, err)
		return nil
	}
	return api
}

// keyError is an error of the database as the rules of keys know it.
func keyError(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return keys.ErrNotFound
	}
	found, ok := errors.AsType[*store.ConflictError](err)
	switch {
	case ok && found.Kind == store.TakenID:
		return keys.ErrExists
	case ok && found.Kind == store.Stale:
		return keys.ErrChanged
	}
	return err
}

func sessionOf(row *store.Key) (*definition.Session, error) {
	session := new(definition.Session)
	if err := json.Unmarshal(row.Body, session); err != nil {
		return nil, fmt.Errorf("reading the session of key %.12s: %w", row.KeyHash, err)
	}
	return session, nil
}

// service returns the rules of keys over a transaction.
func (k *Keeper) service(ctx context.Context, book *ledger, policies map[string]requests.Policy) (*keys.Service, error) {
	set, err := policySet(policies)
	if err != nil {
		return nil, err
	}
	book.shown = k.PublicID
	return &keys.Service{
		Store: book, Counter: k.d.Counters, Naming: k.d.Naming, Options: k.d.Options, Now: k.d.Now,
		Policies: func() *definition.PolicySet { return set },
		API:      func(id string) *definition.API { return book.api(ctx, id) },
	}, nil
}

func policySet(found map[string]requests.Policy) (*definition.PolicySet, error) {
	all := make([]*definition.Policy, 0, len(found))
	for id, one := range found {
		p := new(definition.Policy)
		if err := json.Unmarshal(one.Body, p); err != nil {
			return nil, fmt.Errorf("reading policy %s: %w", id, err)
		}
		all = append(all, p)
	}
	return definition.NewPolicySet(all), nil
}

// wanted returns policies, which are not deleted until the transaction ends. Those
// that are given must be there and in force.
func (k *Keeper) wanted(ctx context.Context, w *Work, all, given []string) (map[string]requests.Policy, error) {
	found, err := requests.HoldPolicies(ctx, w.Tx, w.By.Org, all)
	if err != nil {
		return nil, err
	}
	return found, CheckPolicies(found, given)
}
