package keys_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/keystore"
)

func (d *desk) rotate(key string, grace time.Duration) keys.Issued {
	d.t.Helper()
	issued, err := d.Rotate(d.t.Context(), keys.Ref{ID: key, Org: "o"}, grace)
	if err != nil {
		d.t.Fatal(err)
	}
	return issued
}

// terms are the keys of a session, as seconds from now until they end; -1 is
// never.
func (d *desk) terms(identity string) (all []int64) {
	d.t.Helper()
	s, err := d.store.Get(d.t.Context(), identity)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, c := range s.Credentials() {
		if c.Retires == 0 {
			all = append(all, -1)
		} else {
			all = append(all, c.Retires-d.now.Unix())
		}
	}
	return all
}

func TestASuccessorStandsForTheSameSession(t *testing.T) {
	d := open(t)
	first := d.create("", quotaOf10)
	d.use(first.Hash, "a", 4)
	second := d.rotate(first.Key, time.Hour)
	if second.Hash != first.Hash || second.Key == first.Key || !strings.HasPrefix(second.Key, "slk_") {
		t.Errorf("%+v after %+v", second, first)
	}
	if got := d.terms(first.Hash); !slices.Equal(got, []int64{3600, -1}) {
		t.Errorf("the keys end in %d", got)
	}
	for _, ref := range []keys.Ref{{ID: first.Key}, {ID: second.Key}, {ID: first.Hash, Hashed: true}, {ID: d.Options.Hasher.Hash(second.Key), Hashed: true}} {
		s, hash, err := d.Get(t.Context(), ref)
		if err != nil || hash != first.Hash || s.QuotaRemaining != 6 {
			t.Errorf("%+v: %s, %+v, %v", ref, hash, s, err)
		}
	}
	d.update(second.Key, quotaOf10, true)
	if _, err := d.SetPolicies(t.Context(), keys.Ref{ID: second.Key}, nil); err != nil {
		t.Fatal(err)
	}
	if got := d.terms(first.Hash); !slices.Equal(got, []int64{3600, -1}) {
		t.Errorf("after changes the keys end in %d", got)
	}
	if _, err := d.Delete(t.Context(), keys.Ref{ID: second.Key}); err != nil || d.store.Len() != 0 {
		t.Errorf("deleted: %v, %d are left", err, d.store.Len())
	}
}

func TestKeysEndInTurnAndTheGraceCanBeEnded(t *testing.T) {
	d := open(t)
	first := d.create("", quotaOf10)
	second := d.rotate(first.Key, time.Hour)
	d.rotate(second.Key, 2*time.Hour)
	if got := d.terms(first.Hash); !slices.Equal(got, []int64{3600, 7200, -1}) {
		t.Errorf("the keys end in %d", got)
	}
	d.now = d.now.Add(3 * time.Hour)
	d.rotate(first.Key, time.Minute)
	if got := d.terms(first.Hash); !slices.Equal(got, []int64{-7200, 60, -1}) || d.store.Len() != 3 {
		t.Errorf("the keys end in %d, %d are stored", got, d.store.Len())
	}
	if _, err := d.Retire(t.Context(), keys.Ref{ID: first.Hash, Hashed: true}); err != nil {
		t.Fatal(err)
	}
	if got := d.terms(first.Hash); !slices.Equal(got, []int64{-7200, -1}) || d.store.Len() != 2 {
		t.Errorf("the keys end in %d, %d are stored", got, d.store.Len())
	}
	if _, _, err := d.Get(t.Context(), keys.Ref{ID: second.Key}); !errors.Is(err, keys.ErrNotFound) {
		t.Errorf("a key that has ended: %v", err)
	}
	d.rotate(first.Key, 0)
	if got := d.terms(first.Hash); !slices.Equal(got, []int64{-7200, -1}) {
		t.Errorf("without grace the keys end in %d", got)
	}
}

func TestWhatCannotBeRotatedIsSaid(t *testing.T) {
	d := openUsers(t)
	user := d.create("bob", user(`{"password": "x"}`))
	key := d.create("", quotaOf10)
	for _, c := range []struct {
		key   string
		grace time.Duration
		want  string
	}{
		{user.Key, 0, "change the password"}, {key.Key, -1, "grace must be"}, {key.Key, keys.MaxGrace + 1, "grace must be"}, {"nobodys", 0, "no such key"},
	} {
		if _, err := d.Rotate(t.Context(), keys.Ref{ID: c.key, Org: "o"}, c.grace); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
	if _, err := d.Retire(t.Context(), keys.Ref{ID: key.Key}); err == nil || !strings.Contains(err.Error(), "no successor") {
		t.Error(err)
	}
	for range 9 {
		d.rotate(key.Key, time.Hour)
	}
	if _, err := d.Rotate(t.Context(), keys.Ref{ID: key.Key}, time.Hour); err == nil || !strings.Contains(err.Error(), "10 keys") {
		t.Errorf("one too many: %v", err)
	}
}

func TestNobodySaysWhoseKeysAreWhose(t *testing.T) {
	d := open(t)
	const forged = `{"org_id": "o", "access_rights": {"a": {}}, "rotated_keys": [{"key_hash": "x"}], "successor_of": "y"}`
	for _, custom := range []string{"", "named"} {
		issued := d.create(custom, forged)
		d.update(issued.Key, forged, false)
		s, err := d.store.Get(t.Context(), issued.Hash)
		if err != nil || s.SuccessorOf() != "" || s.Credentials() != nil {
			t.Errorf("%+v, %v", s.Extra, err)
		}
	}
}

// failing is a key store that stops taking writes after some.
type failing struct {
	keystore.Store
	writes int
}

var errStopped = errors.New("stopped")

func (f *failing) Put(ctx context.Context, hash string, s *definition.Session) error {
	if f.writes--; f.writes < 0 {
		return errStopped
	}
	return f.Store.Put(ctx, hash, s)
}

func (f *failing) Delete(ctx context.Context, hash string) error {
	if f.writes--; f.writes < 0 {
		return errStopped
	}
	return f.Store.Delete(ctx, hash)
}

func TestARotationThatIsCutOffLeavesTheKeysAsTheyWere(t *testing.T) {
	for writes := range 2 {
		d := open(t)
		first := d.create("", quotaOf10)
		d.Service.Store = keys.Direct{Keys: &failing{Store: d.store, writes: writes}, Counters: d.counts}
		if _, err := d.Rotate(t.Context(), keys.Ref{ID: first.Key}, time.Hour); !errors.Is(err, errStopped) {
			t.Fatal(err)
		}
		s, err := d.store.Get(t.Context(), first.Hash)
		if err != nil || s.Credentials() != nil {
			t.Errorf("after %d writes: %+v, %v", writes, s.Credentials(), err)
		}
		hashes, _, _ := d.store.List(t.Context(), "", 10)
		for _, hash := range hashes {
			_, _, err := d.Get(t.Context(), keys.Ref{ID: hash, Hashed: true})
			if valid := err == nil; valid != (hash == first.Hash) {
				t.Errorf("after %d writes, %s: %v", writes, hash, err)
			}
		}
	}
}

// between is a store in which something happens between a change's reading and
// its writing.
type between struct {
	keys.Store
	then func()
}

func (b *between) Commit(ctx context.Context, c keys.Change) error {
	if then := b.then; then != nil {
		b.then = nil
		then()
	}
	return b.Store.Commit(ctx, c)
}

// A key that was just ended must not come back, nor a successor be lost, because
// somebody else changed the key at that moment.
func TestAChangeUndoesNoRotationOfTheSameMoment(t *testing.T) {
	for name, change := range map[string]func(d *desk, ref keys.Ref) error{
		"update": func(d *desk, ref keys.Ref) error {
			_, err := d.Update(d.t.Context(), ref, parse[definition.Session](d.t, quotaOf10), false)
			return err
		},
		"policies": func(d *desk, ref keys.Ref) error { _, err := d.SetPolicies(d.t.Context(), ref, nil); return err },
		"reset":    func(d *desk, ref keys.Ref) error { _, err := d.ResetQuota(d.t.Context(), ref); return err },
		"rotate":   func(d *desk, ref keys.Ref) error { _, err := d.Rotate(d.t.Context(), ref, time.Hour); return err },
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			first := d.create("", quotaOf10)
			d.rotate(first.Key, time.Hour)
			plain := d.Store
			retire := func() {
				other := *d.Service
				other.Store = plain
				if _, err := other.Retire(t.Context(), keys.Ref{ID: first.Key}); err != nil {
					t.Error(err)
				}
			}
			d.Store = &between{plain, retire}
			if err := change(d, keys.Ref{ID: first.Key}); !errors.Is(err, keys.ErrChanged) {
				t.Errorf("%v", err)
			}
			if got := d.terms(first.Hash); !slices.Equal(got, []int64{0, -1}) {
				t.Errorf("the keys end in %d", got)
			}
			if err := change(d, keys.Ref{ID: first.Key}); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

func TestASuccessorIsNoIDOfAnotherKey(t *testing.T) {
	d := open(t)
	first := d.create("", quotaOf10)
	second := d.rotate(first.Key, time.Hour)
	_, err := d.Create(t.Context(), second.Key, parse[definition.Session](t, quotaOf10), false)
	if _, ok := errors.AsType[*keys.CustomError](err); !ok {
		t.Errorf("%v", err)
	}
	if got := d.terms(first.Hash); !slices.Equal(got, []int64{3600, -1}) {
		t.Errorf("the keys end in %d", got)
	}
}
