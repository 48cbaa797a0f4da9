package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
)

// keyStore is the keys.Store of one transaction. The keys that it returns are locked
// until the transaction ends.
type keyStore struct {
	work  *KeyTx
	shown func(hash string) string // what people see in place of a hash
	fresh bool                     // keys are created; an existing one is a conflict

	made   string // hash of the last written key
	failed error  // of a read that could not return an error
}

// Get implements keys.Store.
func (l *keyStore) Get(ctx context.Context, hash string) (*definition.Session, error) {
	row, err := l.work.Tx.LockKey(ctx, l.work.By.Org, hash)
	if err != nil {
		return nil, store.KeyError(err)
	}
	return store.SessionOf(&row)
}

// List implements keys.Store. Keys are not listed within a transaction.
func (l *keyStore) List(context.Context, string, int) (hashes []string, next string, err error) {
	return nil, "", errors.New("keys are not listed within a transaction")
}

// Commit implements keys.Store.
func (l *keyStore) Commit(ctx context.Context, c keys.Change) error {
	switch {
	case l.failed != nil:
		return l.failed
	case l.fresh && !c.New:
		return keys.ErrExists
	}
	change := store.NewKeyChange(c, l.shown)
	if err := l.work.CommitKey(ctx, l.work.By, &change); err != nil {
		return store.KeyError(store.Translate(err))
	}
	l.made = c.Hash
	l.work.Touched(append(change.Others(), c.Hash)...)
	return nil
}

// api returns an API, or nil for an unknown one. An error of the database is kept, and
// then nothing is committed.
func (l *keyStore) api(ctx context.Context, id string) *definition.API {
	body, err := l.work.Tx.APIDefinition(ctx, l.work.By.Org, id)
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

// service returns the rules of keys over a transaction.
func (k *Keys) service(ctx context.Context, txKeys *keyStore, policies map[string]store.RequestedPolicy) (*keys.Service, error) {
	set, err := policySet(policies)
	if err != nil {
		return nil, err
	}
	txKeys.shown = k.PublicID
	return &keys.Service{
		Store: txKeys, Counter: k.d.Counters, Naming: k.d.Naming, Options: k.d.Options, Now: k.d.Now,
		Policies: func() *definition.PolicySet { return set },
		API:      func(id string) *definition.API { return txKeys.api(ctx, id) },
		Failed:   func() error { return txKeys.failed },
	}, nil
}

func policySet(found map[string]store.RequestedPolicy) (*definition.PolicySet, error) {
	bodies := make([][]byte, 0, len(found))
	for _, one := range found {
		bodies = append(bodies, one.Body)
	}
	return store.PolicySet(bodies)
}

// lockPolicies returns policies and locks them against deletion. The given ones must
// exist and be active.
func (k *Keys) lockPolicies(ctx context.Context, w *KeyTx, all, given []string) (map[string]store.RequestedPolicy, error) {
	found, err := w.Tx.HoldPolicies(ctx, w.By.Org, all)
	if err != nil {
		return nil, err
	}
	return found, CheckPolicies(found, given)
}
