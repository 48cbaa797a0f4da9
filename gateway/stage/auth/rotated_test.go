package auth

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// follow stores a successor of a key and has the key end at a time.
func follow(t *testing.T, st *store, key string, ends time.Time) (successor string) {
	t.Helper()
	identity, successor := hasher.Hash(key), credential.Generate(hasher.Prefix)
	if err := st.Put(t.Context(), hasher.Hash(successor), definition.NewSuccessor(identity, "")); err != nil {
		t.Fatal(err)
	}
	rewrite(t, st, key, definition.Credential{Hash: identity, Retires: ends.Unix()}, definition.Credential{Hash: hasher.Hash(successor)})
	return successor
}

// rewrite stores a key's session with these keys.
func rewrite(t *testing.T, st *store, key string, all ...definition.Credential) {
	t.Helper()
	old, err := st.Get(t.Context(), hasher.Hash(key))
	if err != nil {
		t.Fatal(err)
	}
	session := old.Clone()
	session.SetCredentials(all)
	if err := st.Put(t.Context(), hasher.Hash(key), session); err != nil {
		t.Fatal(err)
	}
}

func TestAKeyAndItsSuccessorAreOne(t *testing.T) {
	for _, size := range []int{1000, 1} { // all cached, or one at a time
		synctest.Test(t, func(t *testing.T) {
			st := newStore()
			s := watched(t, st, func(o *SessionOptions) { o.Size = size })
			stage := compiled(t, New(s, 3), &definition.API{})
			ask := func(key string) *pipeline.Exchange {
				ex := exchange("Authorization", key)
				stage.Handle(ex)
				return ex
			}
			first := issue(t, st, &definition.Session{Alias: "it", Expires: time.Now().Add(24 * time.Hour).Unix()})
			ask(first)
			second := follow(t, st, first, time.Now().Add(time.Hour))
			for range 3 {
				for key, retiring := range map[string]bool{first: true, second: false} {
					ex := ask(key)
					if ex.Rejection != nil || ex.KeyHash != hasher.Hash(first) || ex.KeyName != hasher.Hash(first)[:12] || ex.Session.Alias != "it" || ex.InGrace != retiring {
						t.Errorf("%+v, %s %s, retiring %v", ex.Rejection, ex.KeyHash, ex.KeyName, ex.InGrace)
					}
				}
			}
			time.Sleep(time.Hour)
			ex := ask(first)
			if ex.Rejection != expired {
				t.Errorf("the first key after its time: %+v", ex.Rejection)
			}
			var told pipeline.Finding
			if stage.(pipeline.Explainer).Explain(ex, &told); !strings.Contains(told.Fix, "successor") {
				t.Errorf("explained as %+v", told)
			}
			if ex := ask(second); ex.Rejection != nil {
				t.Errorf("its successor: %+v", ex.Rejection)
			}
			time.Sleep(23 * time.Hour)
			if ex := ask(second); ex.Rejection != expired {
				t.Errorf("the successor after the session's end: %+v", ex.Rejection)
			}
		})
	}
}

func TestOneWriteEndsAnyOfTheKeysAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, nil)
		first := issue(t, st, &definition.Session{})
		identity := hasher.Hash(first)
		second := follow(t, st, first, time.Now().Add(time.Hour))
		if _, err := find(s, second); err != nil {
			t.Fatal(err)
		}
		rewrite(t, st, first, definition.Credential{Hash: identity}) // the successor is revoked
		for range 2 {
			if _, err := find(s, second); !errors.Is(err, keystore.ErrNotFound) {
				t.Errorf("a revoked successor: %v", err)
			}
		}
		rewrite(t, st, first, definition.Credential{Hash: identity, Retires: time.Now().Unix()}, definition.Credential{Hash: hasher.Hash(second)})
		if _, err := find(s, second); err != nil {
			t.Errorf("once it is named again: %v", err)
		}
		if err := st.Delete(t.Context(), identity); err != nil {
			t.Fatal(err)
		}
		if _, err := find(s, second); !errors.Is(err, keystore.ErrNotFound) {
			t.Errorf("after the session is deleted: %v", err)
		}
	})
}

// What a rotation that was cut off leaves behind is of no use.
func TestAKeyThatItsSessionDoesNotNameIsUnknown(t *testing.T) {
	st := newStore()
	first := issue(t, st, &definition.Session{})
	stray := credential.Generate(hasher.Prefix)
	if err := st.Put(t.Context(), hasher.Hash(stray), definition.NewSuccessor(hasher.Hash(first), "")); err != nil {
		t.Fatal(err)
	}
	s := NewSessions(options(st))
	if _, err := find(s, stray); !errors.Is(err, keystore.ErrNotFound) {
		t.Errorf("found: %v", err)
	}
	if e, err := find(s, first); err != nil || e.is(isInGrace) {
		t.Errorf("the key itself: %v", err)
	}
	st.set(func() { st.sessions[hasher.Hash(first)] = nil; delete(st.sessions, hasher.Hash(first)) })
	if _, err := find(NewSessions(options(st)), stray); !errors.Is(err, keystore.ErrNotFound) {
		t.Errorf("without a session: %v", err)
	}
}
