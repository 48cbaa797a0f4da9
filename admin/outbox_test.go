package admin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/testenv/wait"
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
	b.server.gateways.Deliver("h1")
	b.commit("h1", &definition.Session{Alias: "new"}, false)
	wait.Until(t, "a delivery has failed", func() bool { return b.Count("select max(attempts) from outbox") > 0 })
	b.keys.breakWith(nil)
	wait.Until(t, "the key arrived", func() bool { s, err := b.keys.Get(t.Context(), "h1"); return err == nil && s.Alias == "new" })
	wait.Until(t, "the outbox is empty", func() bool { return b.Count("select count(*) from outbox") == 0 })
	b.commit("h1", nil, false)
	b.server.gateways.Deliver("h1")
	if _, err := b.keys.Get(t.Context(), "h1"); err == nil {
		t.Error("a deleted key is still in the key store after its delivery")
	}
}

func TestKeyLeftBehindByAnotherProcessIsDelivered(t *testing.T) {
	b := start(t)
	for i := range 120 { // more than are taken at once
		b.commit(fmt.Sprint("h", i), &definition.Session{}, true)
	}
	wait.Until(t, "all keys arrived", func() bool { return b.keys.len() == 120 })
}

func TestRefillPutsEveryKey(t *testing.T) {
	b := start(t)
	b.Exec(`insert into keys (key_hash, org_id, active, apis, policies, body)
		select 'k' || n, 'second', true, '{}', '{}', '{}' from generate_series(1, 2500) n`)
	if err := b.server.Refill(t.Context()); err != nil || b.keys.len() != 2500 {
		t.Errorf("%d keys: %v", b.keys.len(), err)
	}
	b.keys.breakWith(errors.New("away"))
	if err := b.server.Refill(t.Context()); err == nil {
		t.Error("no error from a store that is away")
	}
}

// shared makes a key store one that many share.
type shared struct{ keys *keyStore }

func (s shared) Filled(context.Context) (bool, error) {
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	return s.keys.sessions["mark"] != nil, s.keys.broken
}

func (s shared) Fill(ctx context.Context, all iter.Seq2[keystore.Entry, error]) (n int, err error) {
	for e, err := range all {
		if err != nil {
			return n, err
		}
		if err := s.keys.Put(ctx, e.Hash, e.Session); err != nil {
			return n, err
		}
		n++
	}
	return n, s.keys.Put(ctx, "mark", &definition.Session{})
}

func TestKeyStoreThatLostItsDataIsFilledAgain(t *testing.T) {
	kept := newKeyStore()
	b := start(t, func(d *Deps) { d.Keys, d.Shared = kept, shared{kept} })
	b.commit("h1", &definition.Session{}, true)
	b.commit("h2", &definition.Session{}, true)
	wait.Until(t, "both keys and the mark are there", func() bool { return kept.len() == 3 })
	kept.mu.Lock()
	clear(kept.sessions)
	kept.mu.Unlock()
	wait.Until(t, "they are there again", func() bool { return kept.len() == 3 })
}

// counted counts how often the key store is asked whether it has all keys.
type counted struct {
	shared
	asked *atomic.Int64
}

func (c counted) Filled(ctx context.Context) (bool, error) {
	c.asked.Add(1)
	return c.shared.Filled(ctx)
}

func TestFillingThatADeliveryHoldsBackIsTriedAgain(t *testing.T) {
	kept, asked := newKeyStore(), new(atomic.Int64)
	b := start(t, func(d *Deps) { d.Keys, d.Shared = kept, counted{shared{kept}, asked} })
	b.commit("h1", &definition.Session{}, true)
	wait.Until(t, "the key and the mark are there", func() bool { return kept.len() == 2 })
	release := holdLock(t, b.DSN, "select pg_advisory_xact_lock_shared(7209772)")
	kept.mu.Lock()
	clear(kept.sessions)
	kept.mu.Unlock()
	before := asked.Load()
	wait.Until(t, "the first look", func() bool { return asked.Load() > before })
	wait.Until(t, "five further looks", func() bool { return asked.Load() > before+5 })
	// The mark ends a filling; the key may have been delivered once more.
	if filled, err := (shared{kept}).Filled(t.Context()); filled || err != nil {
		t.Errorf("it was filled during a delivery: %v, %v", filled, err)
	}
	release()
	wait.Until(t, "it is filled", func() bool { return kept.len() == 2 })
}
