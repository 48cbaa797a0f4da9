package admin

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

func (b *bench) commit(hash string, session *definition.Session, isNew bool) {
	b.t.Helper()
	by := store.Author{Org: "second", Name: "test", Kind: "user", Source: "api"}
	if err := b.store.CommitKey(b.t.Context(), by, store.KeyChange{Hash: hash, Session: session, New: isNew}); err != nil {
		b.t.Fatal(err)
	}
}

func TestChangedKeyReachesTheKeyStoreOnceItIsBack(t *testing.T) {
	b := start(t)
	b.keys.breakWith(errors.New("away"))
	b.commit("h1", &definition.Session{Alias: "old"}, true)
	b.server.supply.Deliver("h1")
	b.commit("h1", &definition.Session{Alias: "new"}, false)
	eventually(t, "a delivery has failed", func() bool { return count(t, b.dsn, "select max(attempts) from outbox") > 0 })
	b.keys.breakWith(nil)
	eventually(t, "the key arrived", func() bool { s, err := b.keys.Get(t.Context(), "h1"); return err == nil && s.Alias == "new" })
	eventually(t, "the outbox is empty", func() bool { return count(t, b.dsn, "select count(*) from outbox") == 0 })
	b.commit("h1", nil, false)
	b.server.supply.Deliver("h1")
	if _, err := b.keys.Get(t.Context(), "h1"); err == nil {
		t.Error("a deleted key is still in the key store after its delivery")
	}
}

func TestKeyLeftBehindByAnotherProcessIsDelivered(t *testing.T) {
	b := start(t)
	for i := range 120 { // more than are taken at once
		b.commit(fmt.Sprint("h", i), &definition.Session{}, true)
	}
	eventually(t, "all keys arrived", func() bool { return b.keys.len() == 120 })
}

func TestRefillPutsEveryKey(t *testing.T) {
	b := start(t)
	sqlExec(t, b.dsn, `insert into keys (key_hash, org_id, active, apis, policies, body)
		select 'k' || n, 'second', true, '{}', '{}', '{}' from generate_series(1, 2500) n`)
	if err := b.server.Refill(t.Context()); err != nil || b.keys.len() != 2500 {
		t.Errorf("%d keys: %v", b.keys.len(), err)
	}
	b.keys.breakWith(errors.New("away"))
	if err := b.server.Refill(t.Context()); err == nil {
		t.Error("no error from a store that is away")
	}
}

// epoch is the mark of a key store.
type epoch struct{ keys *shelfOfKeys }

func (e epoch) Filled(context.Context) (bool, error) {
	e.keys.mu.Lock()
	defer e.keys.mu.Unlock()
	return e.keys.sessions["mark"] != nil, e.keys.broken
}

func (e epoch) MarkFilled(ctx context.Context) error {
	return e.keys.Put(ctx, "mark", &definition.Session{})
}

func TestKeyStoreThatLostItsDataIsFilledAgain(t *testing.T) {
	var b *bench
	keys := newShelfOfKeys()
	b = start(t, func(d *Deps) { d.Keys, d.Epoch = keys, epoch{keys} })
	b.keys = keys
	b.commit("h1", &definition.Session{}, true)
	b.commit("h2", &definition.Session{}, true)
	eventually(t, "both keys and the mark are there", func() bool { return keys.len() == 3 })
	keys.mu.Lock()
	clear(keys.sessions)
	keys.mu.Unlock()
	eventually(t, "they are there again", func() bool { return keys.len() == 3 })
}
