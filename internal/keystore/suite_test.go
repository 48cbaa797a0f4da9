package keystore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/testenv"
)

// suite is what every Store must do, whatever is behind it.
func suite(t *testing.T, open func(*testing.T) keystore.Store) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, keystore.Store)
	}{
		{"a key that was never put is not found", absent},
		{"what was put is read back, unknown members included", kept},
		{"a second put replaces the first", replaced},
		{"what was deleted is not found, nor deleted again", deleted},
		{"list pages through every key", listed},
		{"a foreign cursor is refused", foreignCursor},
		{"watch hears of every put and delete until its context ends", watched},
		{"concurrent writers and readers see whole sessions", concurrent},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func TestMemory(t *testing.T) {
	suite(t, func(*testing.T) keystore.Store { return keystore.NewMemory() })
}

func TestFile(t *testing.T) {
	suite(t, func(t *testing.T) keystore.Store { return openFile(t, filepath.Join(t.TempDir(), "keys")) })
}

func TestValkey(t *testing.T) {
	server := testenv.Valkey(t)
	suite(t, func(t *testing.T) keystore.Store {
		server.Do("FLUSHALL")
		return openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}})
	})
}

func TestValkeyFedByAnAdmin(t *testing.T) {
	server := testenv.Valkey(t)
	suite(t, func(t *testing.T) keystore.Store {
		server.Do("FLUSHALL")
		v := openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}, Fed: true})
		fill(t, v, nil)
		return v
	})
}

func TestValkeyCluster(t *testing.T) {
	cluster := testenv.ValkeyCluster(t)
	suite(t, func(t *testing.T) keystore.Store {
		for _, node := range cluster.Nodes {
			node.Do("FLUSHALL")
		}
		v := openValkey(t, keystore.ValkeyOptions{Addresses: cluster.Addresses(), Cluster: true, Fed: true})
		fill(t, v, nil)
		return v
	})
}

func openFile(t *testing.T, path string) *keystore.File {
	t.Helper()
	f, err := keystore.OpenFile(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// patience is a time-out that a busy machine does not take for an outage.
const patience = 60 * time.Second

func openValkey(t *testing.T, o keystore.ValkeyOptions) *keystore.Valkey {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = patience
	}
	v, err := keystore.OpenValkey(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

func session(t testing.TB, text string) *definition.Session {
	t.Helper()
	s := new(definition.Session)
	if err := json.Unmarshal([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func alias(name string) *definition.Session { return &definition.Session{Alias: name} }

func put(t testing.TB, s keystore.Store, hash string, one *definition.Session) {
	t.Helper()
	if err := s.Put(t.Context(), hash, one); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, s keystore.Store, hash string) *definition.Session {
	t.Helper()
	one, err := s.Get(t.Context(), hash)
	if err != nil {
		t.Fatalf("get %s: %v", hash, err)
	}
	return one
}

func lacks(t testing.TB, s keystore.Store, hash string) {
	t.Helper()
	if one, err := s.Get(t.Context(), hash); !errors.Is(err, keystore.ErrNotFound) || one != nil {
		t.Fatalf("get %s: %v, %v", hash, one, err)
	}
}

func absent(t *testing.T, s keystore.Store) { lacks(t, s, "nobody") }

func kept(t *testing.T, s keystore.Store) {
	one := session(t, `{"org_id": "o", "rate": 5, "per": 0.5, "quota_max": 9007199254740991, "vendor": {"n": 1.50, "x": null},
		"access_rights": {"a": {"limit": {"quota_max": 3, "vendor": []}}}, "tags": ["<é\u2028>"], "meta_data": {"a": {"b": 1}}}`)
	put(t, s, "h", one)
	if got, want := text(t, get(t, s, "h")), text(t, one); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func text(t *testing.T, s *definition.Session) string {
	t.Helper()
	out, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func replaced(t *testing.T, s keystore.Store) {
	put(t, s, "h", &definition.Session{Alias: "one", Tags: []string{"a"}})
	put(t, s, "h", alias("two"))
	if got := get(t, s, "h"); got.Alias != "two" || got.Tags != nil {
		t.Errorf("got %+v", got)
	}
}

func deleted(t *testing.T, s keystore.Store) {
	put(t, s, "h", alias("one"))
	put(t, s, "other", alias("two"))
	if err := s.Delete(t.Context(), "h"); err != nil {
		t.Fatal(err)
	}
	lacks(t, s, "h")
	get(t, s, "other")
	if err := s.Delete(t.Context(), "h"); !errors.Is(err, keystore.ErrNotFound) {
		t.Errorf("second delete: %v", err)
	}
}

func listed(t *testing.T, s keystore.Store) {
	var want []string
	for i := range 500 {
		want = append(want, fmt.Sprintf("hash-%03d", i))
		put(t, s, want[i], alias("x"))
	}
	var got []string
	cursor, pages := "", 0
	for {
		page, next, err := s.List(t.Context(), cursor, 20)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > 100 {
			t.Errorf("a page of %d where 20 were asked for", len(page))
		}
		got = append(got, page...)
		if pages++; next == "" || pages > 1000 {
			break
		}
		cursor = next
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) || pages < 5 {
		t.Errorf("%d hashes on %d pages, want 500", len(got), pages)
	}
}

func foreignCursor(t *testing.T, s keystore.Store) {
	if _, _, err := s.List(t.Context(), "nonsense", 10); err == nil {
		t.Error("accepted")
	}
}

// heard collects what Watch says, so that tests can wait for it.
type heard struct {
	mu     sync.Mutex
	hashes []string
	more   chan struct{} // holds one token after a change
	ended  chan error
}

func watch(ctx context.Context, s keystore.Store) *heard {
	h := &heard{more: make(chan struct{}, 1), ended: make(chan error, 1)}
	go func() {
		h.ended <- s.Watch(ctx, func(hash string) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.hashes = append(h.hashes, hash)
			select {
			case h.more <- struct{}{}:
			default:
			}
		})
	}()
	return h
}

// await waits until hash was heard, and forgets everything up to it.
func (h *heard) await(t *testing.T, hash string) {
	t.Helper()
	h.first(t, hash, hash)
}

// hears is await for a hash that "" may stand for; then it returns false.
func (h *heard) hears(t *testing.T, hash string) bool {
	t.Helper()
	return h.first(t, hash, "") == hash
}

// first waits until hash, or else other, was heard, forgets everything up to
// it, and returns which it was.
func (h *heard) first(t *testing.T, hash, other string) string {
	t.Helper()
	deadline := time.After(2 * patience)
	for {
		h.mu.Lock()
		for _, want := range []string{hash, other} {
			if i := slices.Index(h.hashes, want); i >= 0 {
				h.hashes = h.hashes[i+1:]
				h.mu.Unlock()
				return want
			}
		}
		h.mu.Unlock()
		select {
		case <-h.more:
		case <-deadline:
			t.Fatalf("watch did not say %q", hash)
		}
	}
}

func watched(t *testing.T, s keystore.Store) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	one, two := watch(ctx, s), watch(t.Context(), s)
	listeners := []*heard{one, two}
	for _, h := range listeners {
		h.await(t, "") // it hears from now on
	}
	// A connection that is made later than the first says "": what was written
	// just before may have been missed, and is written again.
	hear := func(hash string, write func()) {
		t.Helper()
		for range 5 {
			write()
			all := true
			for _, h := range listeners {
				all = h.hears(t, hash) && all
			}
			if all {
				return
			}
		}
		t.Fatalf("watch said \"\" again and again, and never %q", hash)
	}
	hear("a", func() { put(t, s, "a", alias("1")) })
	hear("b", func() { put(t, s, "b", alias("1")) })
	hear("a", func() {
		if err := s.Delete(t.Context(), "a"); errors.Is(err, keystore.ErrNotFound) {
			put(t, s, "a", alias("1")) // deleted already, and missed
		} else if err != nil {
			t.Fatal(err)
		}
	})
	stop()
	if err := <-one.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("watch ended with %v", err)
	}
	one.mu.Lock()
	one.hashes = nil
	one.mu.Unlock()
	listeners = listeners[1:]
	hear("c", func() { put(t, s, "c", alias("1")) })
	one.mu.Lock()
	defer one.mu.Unlock()
	if len(one.hashes) > 0 {
		t.Errorf("heard %q after its end", one.hashes)
	}
}

func concurrent(t *testing.T, s keystore.Store) {
	var group sync.WaitGroup
	for w := range 4 {
		group.Go(func() {
			for i := range 50 {
				name := fmt.Sprintf("%d-%d", w, i)
				if err := s.Put(t.Context(), "shared", &definition.Session{Alias: name, OrgID: name}); err != nil {
					t.Error(err)
				}
				if err := s.Put(t.Context(), name, alias(name)); err != nil {
					t.Error(err)
				}
				if got, err := s.Get(t.Context(), "shared"); err != nil || got.Alias != got.OrgID {
					t.Errorf("got %+v, %v", got, err)
				}
			}
		})
	}
	group.Wait()
	for w := range 4 {
		for i := range 50 {
			name := fmt.Sprintf("%d-%d", w, i)
			if got := get(t, s, name); got.Alias != name {
				t.Errorf("%s is %s", name, got.Alias)
			}
		}
	}
}
