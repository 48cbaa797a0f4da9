package keystore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/testenv"
)

func newSeal(t *testing.T, secret string) *keystore.Seal {
	t.Helper()
	s, err := keystore.NewSeal(secret)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestValkeyWithASeal(t *testing.T) {
	server := testenv.Valkey(t)
	suite(t, func(t *testing.T) keystore.Store {
		server.Do("FLUSHALL")
		return openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}, Seal: newSeal(t, "token")})
	})
}

func TestOnlySealedSessionsCount(t *testing.T) {
	server := testenv.Valkey(t)
	open := func(seal *keystore.Seal) *keystore.Valkey {
		return openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}, Seal: seal})
	}
	admin, intruder, next := open(newSeal(t, "token")), open(nil), newSeal(t, "the next token")
	unreadable := func(what, hash string) {
		t.Helper()
		if s, err := admin.Get(t.Context(), hash); !errors.Is(err, keystore.ErrUnreadable) {
			t.Errorf("%s: %+v, %v", what, s, err)
		}
	}
	put(t, admin, "own", alias("own"))
	put(t, admin, "empty", new(definition.Session))
	get(t, admin, "empty")
	text := server.Do("GET", "sluice:key:own")
	if !strings.HasPrefix(text, `{"sluice_seal":"`) || !strings.Contains(text, `"alias":"own"`) {
		t.Errorf("stored as %s", text)
	}
	if s := get(t, intruder, "own"); s.Alias != "own" {
		t.Errorf("an older release reads %+v", s)
	}
	put(t, intruder, "foreign", alias("foreign"))
	unreadable("without a seal", "foreign")
	server.Do("SET", "sluice:key:moved", text)
	unreadable("the session of another key", "moved")
	for _, bad := range []string{
		strings.Replace(text, `"own"`, `"root"`, 1), text[:20], `{"sluice_seal":""}`, `{"sluice_seal":"` + strings.Repeat("A", 43) + `"}`,
		`{"sluice_seal":"` + strings.Repeat("!", 43) + `","alias":"x"}`, strings.Replace(text, text[16:18], string([]byte{text[16] ^ 1, text[17]}), 1),
	} {
		server.Do("SET", "sluice:key:own", bad)
		unreadable(bad, "own")
	}
	put(t, open(next), "rotated", alias("rotated"))
	unreadable("sealed with another key", "rotated")
	own := newSeal(t, "token")
	own.Accept(next.Keys())
	if s := get(t, open(own), "rotated"); s.Alias != "rotated" {
		t.Errorf("%+v", s)
	}
	if _, err := keystore.NewSeal(""); err == nil {
		t.Error("an empty secret seals")
	}
}

func TestReconcilingWritesWhatDiffersAndDeletesWhatDoesNotExist(t *testing.T) {
	server := testenv.Valkey(t)
	v := openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}, Fed: true, Seal: newSeal(t, "token")})
	older := openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}})
	all := many(2500)
	fill(t, v, all)
	put(t, v, "gone", alias("gone"))
	put(t, v, "00", alias("made while it runs"))
	hash := func(name string) string { return strings.Repeat("0", 64-len(name)) + name }
	put(t, v, hash("7"), alias("changed"))
	put(t, older, hash("8"), all[hash("8")])
	if err := v.Delete(t.Context(), hash("2000")); err != nil {
		t.Fatal(err)
	}
	exist := func(_ context.Context, hashes []string) (found []string, err error) {
		for _, h := range hashes {
			if h != "gone" {
				found = append(found, h)
			}
		}
		return found, nil
	}
	did, err := v.Reconcile(t.Context(), keystore.Truth{Entries: entries(all), Exist: exist, Position: "5.x"})
	if want := (keystore.Difference{Written: 3, Deleted: 1, Unchanged: 2497}); err != nil || did != want {
		t.Errorf("%+v, %v, want %+v", did, err, want)
	}
	lacks(t, v, "gone")
	if s := get(t, v, hash("7")); s.Alias != "7" {
		t.Errorf("%+v", s)
	}
	get(t, v, hash("8"))
	get(t, v, hash("2000"))
	if at, err := v.Marked(t.Context()); err != nil || at != "5.x" {
		t.Errorf("marked %s, %v", at, err)
	}
}

func TestAMarkOnlyRises(t *testing.T) {
	server := testenv.Valkey(t)
	v := openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}})
	marked := func(want string) {
		t.Helper()
		if at, err := v.Marked(t.Context()); err != nil || at != want {
			t.Errorf("marked %q, %v, want %q", at, err, want)
		}
	}
	marked("")
	for _, c := range []struct {
		seq        int64
		text, want string
	}{{9, "9.a", "9.a"}, {10, "10.b", "10.b"}, {9, "9.a", "10.b"}, {10, "10.c", "10.c"}, {100, "100.d", "100.d"}} {
		if err := v.Mark(t.Context(), c.seq, c.text); err != nil {
			t.Fatal(err)
		}
		marked(c.want)
	}
	server.Kill()
	if _, err := v.Marked(t.Context()); !errors.Is(err, keystore.ErrUnavailable) {
		t.Errorf("away: %v", err)
	}
}
