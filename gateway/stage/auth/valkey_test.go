package auth

import (
	"context"
	"errors"
	"testing"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// following returns sessions that follow a store which everybody reaches.
func following(t *testing.T, st keystore.Store) *Sessions {
	t.Helper()
	o := options(st)
	s := NewSessions(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return s
}

func alias(s *Sessions, key string) string {
	e, err := find(s, key)
	switch {
	case errors.Is(err, keystore.ErrNotFound):
		return "unknown"
	case err != nil:
		return "away"
	}
	return e.session.Alias
}

func TestSessionsFollowASharedStoreThroughItsDeathAndReturn(t *testing.T) {
	server := testenv.Valkey(t)
	v, err := keystore.OpenValkey(keystore.ValkeyOptions{Addresses: []string{server.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	s := following(t, v)
	put := func(key, alias string) {
		t.Helper()
		wait.Until(t, "writing a session", func() bool {
			return v.Put(t.Context(), hasher.Hash(key), &definition.Session{Alias: alias}) == nil
		})
	}
	key, other := credential.Generate(hasher.Prefix), credential.Generate(hasher.Prefix)
	if got := alias(s, key); got != "unknown" {
		t.Errorf("before it is made: %s", got)
	}
	put(key, "one")
	wait.Until(t, "a key that is made", func() bool { return alias(s, key) == "one" })
	put(key, "two")
	wait.Until(t, "a key that is changed", func() bool { return alias(s, key) == "two" })
	put(other, "other")

	server.Kill()
	for range 20 {
		if got := alias(s, key); got != "two" {
			t.Fatalf("in memory, without the store: %s", got)
		}
		if got := alias(s, other); got != "away" {
			t.Fatalf("not in memory, without the store: %s", got)
		}
	}
	server.Restart()
	put(other, "again")
	wait.Until(t, "a key that was not in memory", func() bool { return alias(s, other) == "again" })
	wait.Until(t, "a key that the store lost", func() bool { return alias(s, key) == "unknown" })
	put(key, "three")
	wait.Until(t, "a key that is made again", func() bool { return alias(s, key) == "three" })
	if err := v.Delete(t.Context(), hasher.Hash(key)); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "a key that is deleted", func() bool { return alias(s, key) == "unknown" })
}

func TestASessionThatIsNoSessionInTheSharedStoreConcernsNoOther(t *testing.T) {
	server := testenv.Valkey(t)
	v, err := keystore.OpenValkey(keystore.ValkeyOptions{Addresses: []string{server.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	s := following(t, v)
	torn := credential.Generate(hasher.Prefix)
	server.Do("SET", "sluice:key:"+hasher.Hash(torn), `{"rate":`)
	for range 10 * tolerated {
		if got := alias(s, torn); got != "away" {
			t.Fatalf("a torn session: %s", got)
		}
	}
	if s.away.until.Load() != 0 {
		t.Error("the store is taken to be away")
	}
}

func TestSessionsFollowAStoreInTheProcessAtOnce(t *testing.T) {
	st := keystore.NewMemory()
	s := following(t, st)
	key := credential.Generate(hasher.Prefix)
	put := func(alias string) {
		t.Helper()
		if err := st.Put(t.Context(), hasher.Hash(key), &definition.Session{Alias: alias}); err != nil {
			t.Fatal(err)
		}
	}
	put("watching")
	wait.Until(t, "the watch", func() bool {
		put("first")
		alias(s, key)
		put("second")
		return alias(s, key) == "second"
	})
	for _, want := range []string{"third", "fourth", "fifth"} {
		put(want)
		if got := alias(s, key); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
