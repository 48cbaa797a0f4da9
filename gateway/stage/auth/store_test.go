package auth

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// store is a key store that can be made to fail, to wait, and to change while it
// is read.
type store struct {
	mu       sync.Mutex
	sessions map[string]*definition.Session
	gets     int
	atOnce   int // look-ups now
	most     int // look-ups at once, so far
	err      error
	gate     chan struct{} // when not nil, each look-up waits for one
	during   func()        // called while a session is read, after it was
	watcher  func(string)
	watching chan struct{} // gets one for each Watch that begins
	unwatch  chan error    // ends a Watch
}

func newStore() *store {
	return &store{sessions: make(map[string]*definition.Session), watching: make(chan struct{}, 10), unwatch: make(chan error)}
}

func (s *store) Get(ctx context.Context, identity string) (*definition.Session, error) {
	s.mu.Lock()
	s.gets++
	s.atOnce++
	s.most = max(s.most, s.atOnce)
	found, err, gate, during := s.sessions[identity], s.err, s.gate, s.during
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.atOnce--
		s.mu.Unlock()
	}()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if during != nil {
		during()
	}
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, keystore.ErrNotFound
	}
	return found, nil
}

func (s *store) Put(_ context.Context, identity string, session *definition.Session) error {
	s.mu.Lock()
	s.sessions[identity] = session
	watcher := s.watcher
	s.mu.Unlock()
	if watcher != nil {
		watcher(identity)
	}
	return nil
}

func (s *store) Delete(_ context.Context, identity string) error {
	s.mu.Lock()
	delete(s.sessions, identity)
	watcher := s.watcher
	s.mu.Unlock()
	if watcher != nil {
		watcher(identity)
	}
	return nil
}

func (s *store) List(context.Context, string, int) ([]string, string, error) { return nil, "", nil }

func (s *store) Watch(ctx context.Context, changed func(string)) error {
	s.mu.Lock()
	s.watcher = changed
	s.mu.Unlock()
	s.watching <- struct{}{}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-s.unwatch:
		return err
	}
}

func (s *store) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *store) looked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gets
}

var hasher = &credential.Hasher{Prefix: credential.DefaultPrefix}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func options(st keystore.Store) SessionOptions {
	return SessionOptions{
		Store: st, Hasher: hasher, Log: quiet(),
		Size: 1000, TTL: time.Minute, StaleTTL: time.Minute,
		UnknownSize: 1000, UnknownTTL: 2 * time.Second,
		Timeout: 200 * time.Millisecond,
	}
}

// watched returns sessions that follow their store for as long as the test lasts.
func watched(t *testing.T, st *store, change func(*SessionOptions)) *Sessions {
	t.Helper()
	o := options(st)
	if change != nil {
		change(&o)
	}
	s := NewSessions(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	<-st.watching
	return s
}

// issue stores a session and returns its key.
func issue(t testing.TB, st *store, session *definition.Session) string {
	t.Helper()
	key := credential.Generate(hasher.Prefix)
	if err := st.Put(context.Background(), hasher.Hash(key), session); err != nil {
		t.Fatal(err)
	}
	return key
}

// find looks a key up without an organisation.
func find(s *Sessions, key string) (*entry, error) {
	sc := s.scope(definition.KeyCredential, "")
	return s.find(&sc, []byte(key), time.Now())
}

func exchange(header, value string) *pipeline.Exchange {
	call := &wire.Call{Started: time.Now()}
	if value != "" {
		call.SetLines([]byte(header + ": " + value + "\r\n"))
	}
	return pipeline.For(call)
}

// compiled is the stage of an API.
func compiled(t testing.TB, a *Auth, def *definition.API) pipeline.Stage {
	t.Helper()
	s, err := a.Compile(def)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func text(n int) string { return strconv.Itoa(n) }
