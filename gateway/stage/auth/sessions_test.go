package auth

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

func TestASessionIsReadOnceAndAgainAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, nil)
		key := issue(t, st, &definition.Session{})
		for range 10 {
			if _, err := find(s, key); err != nil {
				t.Fatal(err)
			}
		}
		if st.looked() != 1 {
			t.Errorf("%d look-ups, want 1", st.looked())
		}
		time.Sleep(time.Minute)
		if _, err := find(s, key); err != nil || st.looked() != 2 {
			t.Errorf("%v, %d look-ups, want 2", err, st.looked())
		}
		if got := s.Stats(); got.Hits != 9 || got.Misses != 2 || got.Entries != 1 {
			t.Errorf("stats %+v", got)
		}
	})
}

func TestAChangeIsSeenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, nil)
		key := issue(t, st, &definition.Session{Alias: "before"})
		other := issue(t, st, &definition.Session{})
		find(s, key)
		find(s, other)
		if err := st.Put(t.Context(), hasher.Hash(key), &definition.Session{Alias: "after"}); err != nil {
			t.Fatal(err)
		}
		if e, err := find(s, key); err != nil || e.session.Alias != "after" {
			t.Fatalf("after a write: %+v, %v", e, err)
		}
		if err := st.Delete(t.Context(), hasher.Hash(key)); err != nil {
			t.Fatal(err)
		}
		if e, err := find(s, key); !errors.Is(err, keystore.ErrNotFound) {
			t.Fatalf("after a deletion: %+v, %v", e, err)
		}
		if s.Stats().Entries != 1 {
			t.Errorf("%d entries, want 1", s.Stats().Entries)
		}
		before := st.looked()
		if err := st.Put(t.Context(), hasher.Hash(key), &definition.Session{Alias: "again"}); err != nil {
			t.Fatal(err)
		}
		if e, err := find(s, key); err != nil || e.session.Alias != "again" {
			t.Fatalf("after it was made again: %+v, %v", e, err)
		}
		if find(s, other); st.looked() != before+1 {
			t.Error("another key was read again")
		}
	})
}

func TestAnUnknownKeyThatIsMadeIsKnownAtOnce(t *testing.T) {
	for _, stored := range []string{"bob", "org1bob"} {
		synctest.Test(t, func(t *testing.T) {
			st := newStore()
			s := watched(t, st, nil)
			sc := s.scope(definition.KeyCredential, "org1")
			for range 3 {
				if _, err := s.find(&sc, []byte("bob"), time.Now()); !errors.Is(err, keystore.ErrNotFound) {
					t.Fatal(err)
				}
			}
			if st.looked() != 2 { // bare, and behind the organisation
				t.Errorf("%d look-ups, want 2", st.looked())
			}
			if err := st.Put(t.Context(), hasher.Hash(stored), &definition.Session{Alias: stored}); err != nil {
				t.Fatal(err)
			}
			if e, err := s.find(&sc, []byte("bob"), time.Now()); err != nil || e.session.Alias != stored {
				t.Errorf("%s: %+v, %v", stored, e, err)
			}
		})
	}
}

func TestAKeyNamedByHandBelongsToItsOrganisation(t *testing.T) {
	st := newStore()
	for _, org := range []string{"one", "two"} {
		if err := st.Put(t.Context(), hasher.Hash(org+"bob"), &definition.Session{Alias: org}); err != nil {
			t.Fatal(err)
		}
	}
	s := NewSessions(options(st))
	for range 2 {
		for _, org := range []string{"one", "two"} {
			sc := s.scope(definition.KeyCredential, org)
			if e, err := s.find(&sc, []byte("bob"), time.Now()); err != nil || e.session.Alias != org {
				t.Errorf("%s: %+v, %v", org, e, err)
			}
		}
	}
	if st.looked() != 4 { // bare and whole, for each
		t.Errorf("%d look-ups, want 4: one is kept in the other's place", st.looked())
	}
}

func TestWhatWasReadBeforeAChangeIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, nil)
		key := issue(t, st, &definition.Session{Alias: "before"})
		st.during = sync.OnceFunc(func() {
			if err := st.Put(context.Background(), hasher.Hash(key), &definition.Session{Alias: "after"}); err != nil {
				t.Error(err)
			}
		})
		for range 2 {
			if e, err := find(s, key); err != nil || e.session.Alias != "after" {
				t.Fatalf("%+v, %v", e, err)
			}
		}
		if st.looked() != 2 {
			t.Errorf("%d look-ups, want 2", st.looked())
		}
	})
}

func TestAKeyMadeWhileItWasLookedForIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, nil)
		key := credential.Generate(hasher.Prefix)
		st.during = sync.OnceFunc(func() {
			if err := st.Put(context.Background(), hasher.Hash(key), &definition.Session{}); err != nil {
				t.Error(err)
			}
		})
		if _, err := find(s, key); err != nil {
			t.Error(err)
		}
	})
}

func TestASessionThatNeverRestsIsServedAndNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, nil)
		key := issue(t, st, &definition.Session{})
		st.during = func() { s.changed(hasher.Hash(key)) }
		for i := range 3 {
			if _, err := find(s, key); err != nil || st.looked() != (i+1)*attempts {
				t.Errorf("%v, %d look-ups", err, st.looked())
			}
		}
		if s.Stats().Entries != 0 {
			t.Error("it was kept")
		}
	})
}

func TestRequestsForOneKeyShareOneLookUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, nil)
		key := issue(t, st, &definition.Session{})
		st.gate = make(chan struct{})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := find(s, key); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(st.gate)
		wg.Wait()
		if st.looked() != 1 {
			t.Errorf("%d look-ups, want 1", st.looked())
		}
	})
}

func TestSessionsInMemoryOutliveTheStoreForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		st := newStore()
		s := watched(t, st, func(o *SessionOptions) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		key := issue(t, st, &definition.Session{})
		changed := issue(t, st, &definition.Session{})
		fresh := issue(t, st, &definition.Session{})
		find(s, key)
		find(s, changed)
		st.set(func() { st.err = keystore.ErrUnavailable })
		s.changed("") // as a lost connection does
		s.changed(hasher.Hash(changed))
		if _, err := find(s, key); err != nil {
			t.Errorf("in memory: %v", err)
		}
		if _, err := find(s, changed); !errors.Is(err, keystore.ErrUnavailable) {
			t.Errorf("known to have changed: %v", err)
		}
		if _, err := find(s, fresh); !errors.Is(err, keystore.ErrUnavailable) {
			t.Errorf("not in memory: %v", err)
		}
		time.Sleep(2*time.Minute - time.Second)
		if _, err := find(s, key); err != nil {
			t.Errorf("within the stale time: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := find(s, key); !errors.Is(err, keystore.ErrUnavailable) {
			t.Errorf("after the stale time: %v", err)
		}
		if _, err := find(s, fresh); !errors.Is(err, keystore.ErrUnavailable) {
			t.Errorf("not in memory: %v", err)
		}
		st.set(func() { st.err = nil })
		time.Sleep(retryEvery)
		for _, k := range []string{key, changed, fresh} {
			if _, err := find(s, k); err != nil {
				t.Errorf("after the store is back: %v", err)
			}
		}
		if got := log.String(); strings.Count(got, "is away") != 1 || strings.Count(got, "is back") != 1 {
			t.Errorf("logged\n%s", got)
		}
		if s.Stats().Stale != 2 {
			t.Errorf("%d were served stale, want 2", s.Stats().Stale)
		}
	})
}

// A store that comes back empty is filled again, and tells of every key that is
// written: what is in memory of the key counts no more, and the store must be
// asked at once although it was away a moment ago.
func TestAKeyThatIsWrittenAgainIsAskedForAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, nil)
		key := issue(t, st, &definition.Session{})
		find(s, key)
		st.set(func() { st.err = keystore.ErrUnavailable })
		s.changed("") // as a lost connection does
		for range tolerated + 1 {
			if _, err := find(s, issue(t, newStore(), &definition.Session{})); !errors.Is(err, keystore.ErrUnavailable) {
				t.Fatalf("not in memory: %v", err)
			}
		}
		st.set(func() { st.err = nil })
		if err := st.Put(t.Context(), hasher.Hash(key), &definition.Session{Alias: "again"}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if e, err := find(s, key); err != nil || e.session.Alias != "again" {
				t.Errorf("a key that was just written: %v", err)
			}
		}
	})
}

func TestServingWithoutTheStoreDoesNotAllocate(t *testing.T) {
	st := newStore()
	s := NewSessions(options(st))
	key := []byte(issue(t, st, &definition.Session{}))
	find(s, string(key))
	st.err = keystore.ErrUnavailable
	s.changed("")
	sc, at := s.scope(definition.KeyCredential, ""), time.Now()
	for range tolerated + 1 {
		if _, err := s.find(&sc, key, at); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(1000, func() { _, _ = s.find(&sc, key, at) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCredentialsWithTheSameHashAreToldApart(t *testing.T) {
	s := NewSessions(options(newStore()))
	one, two := s.scope(definition.KeyCredential, "one"), s.scope(definition.KeyCredential, "two")
	again := s.scope(definition.KeyCredential, "one") // of another API of the organisation
	if one.salt == two.salt || one.salt != again.salt {
		t.Error("salts do not go by organisation")
	}
	kept := &entry{text: "identitybob", length: 3, scope: &one}
	s.entries.Put(7, kept)
	if s.get(7, []byte("bob"), &one) != kept || s.get(7, []byte("bob"), &again) != kept {
		t.Error("not found")
	}
	if s.get(7, []byte("eve"), &one) != nil {
		t.Error("found by another credential")
	}
	if s.get(7, []byte("bob"), &two) != nil {
		t.Error("found in another organisation")
	}
	s.unknown.Put(8, unknownKey{check: 1, until: time.Minute})
	if !s.isUnknown(8, 1, 0) || s.isUnknown(8, 2, 0) {
		t.Error("one that shares a hash with an unknown credential is taken for it")
	}
}

func TestWhatALateLookUpMissedIsLookedUpAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, nil)
		key := credential.Generate(hasher.Prefix)
		sc := s.scope(definition.KeyCredential, "")
		slot := s.slotOf(hasher.Hash(key))
		late := &call{done: make(chan struct{}), err: keystore.ErrNotFound} // its outcome is known, but not returned yet
		late.seen.add(slot, s.changes.stamp(slot))
		name := sc.org + "\x00" + key
		s.calls[name] = late
		if err := st.Put(t.Context(), hasher.Hash(key), &definition.Session{}); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := find(s, key); err != nil {
				t.Errorf("a key that was made before the request: %v", err)
			}
		})
		synctest.Wait()
		s.mu.Lock()
		delete(s.calls, name)
		s.mu.Unlock()
		close(late.done)
		wg.Wait()
	})
}

func TestUnknownKeysAreAskedForAgainWhenChangesMayHaveBeenMissed(t *testing.T) {
	st := newStore()
	s := NewSessions(options(st))
	for range 3 {
		find(s, "nobody-knows-me")
		s.changed("")
	}
	if st.looked() != 3 {
		t.Errorf("%d look-ups, want 3", st.looked())
	}
}

func TestAStoreThatFailsNowAndThenIsNotAway(t *testing.T) {
	st := newStore()
	s := NewSessions(options(st))
	for range 10 {
		for range tolerated {
			st.set(func() { st.err = keystore.ErrUnavailable })
			if _, err := find(s, credential.Generate(hasher.Prefix)); !errors.Is(err, keystore.ErrUnavailable) {
				t.Fatal(err)
			}
		}
		st.set(func() { st.err = nil })
		if _, err := find(s, credential.Generate(hasher.Prefix)); !errors.Is(err, keystore.ErrNotFound) {
			t.Fatal(err)
		}
	}
}

func TestASessionThatCannotBeReadConcernsNoOther(t *testing.T) {
	for _, err := range []error{keystore.ErrUnreadable, keystore.ErrRefilling, errors.New("torn")} {
		var log bytes.Buffer
		st := newStore()
		o := options(st)
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		s := NewSessions(o)
		torn, good := credential.Generate(hasher.Prefix), issue(t, st, &definition.Session{})
		for range 10 {
			st.set(func() { st.err = err })
			for range 3 {
				if _, got := find(s, torn); got == nil || errors.Is(got, keystore.ErrNotFound) {
					t.Fatal(got)
				}
			}
			st.set(func() { st.err = nil })
			s.changed(hasher.Hash(good))
			if _, err := find(s, good); err != nil {
				t.Fatal(err)
			}
		}
		got := log.String()
		if n := strings.Count(got, "\n"); n < 1 || n > 2 || !strings.Contains(got, "key="+hasher.Hash(torn)[:12]) {
			t.Errorf("%v: logged\n%s", err, got)
		}
	}
}

func TestAStoreThatIsAwayIsAskedByOneRequestInAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, nil)
		st.set(func() { st.err = keystore.ErrUnavailable })
		for range 100 {
			for range 10 {
				if _, err := find(s, credential.Generate(hasher.Prefix)); !errors.Is(err, keystore.ErrUnavailable) {
					t.Fatal(err)
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		if got := st.looked() - tolerated; got < 4 || got > 5 {
			t.Errorf("%d look-ups in a second, want one in %s", got, retryEvery)
		}
	})
}

func TestAStoreThatHangsIsGivenUpOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, nil)
		key := issue(t, st, &definition.Session{})
		find(s, key)
		time.Sleep(time.Minute)
		st.set(func() { st.gate = make(chan struct{}) })
		began := time.Now()
		for range tolerated + 1 {
			if _, err := find(s, key); err != nil {
				t.Errorf("in memory: %v", err)
			}
		}
		if took := time.Since(began); took != (tolerated+1)*200*time.Millisecond {
			t.Errorf("took %s", took)
		}
		began = time.Now()
		for range 100 {
			find(s, key)
			if _, err := find(s, credential.Generate(hasher.Prefix)); !errors.Is(err, keystore.ErrUnavailable) {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("the next ones took %s although the store was known to be away", took)
		}
	})
}

func TestRequestsThatShareAFailedLookUpDoNotRepeatIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, nil)
		s.changed("")
		st.gate = make(chan struct{})
		began := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := find(s, "a key"); err == nil || errors.Is(err, keystore.ErrNotFound) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took != 200*time.Millisecond || st.looked() != 1 {
			t.Errorf("took %s and %d look-ups", took, st.looked())
		}
	})
}

func TestAFloodOfUnknownKeysIsHeldBackAndDelaysNoIssuedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, nil)
		st.gate = make(chan struct{})
		var wg sync.WaitGroup
		for i := range 500 {
			wg.Go(func() {
				if _, err := find(s, "guess-"+text(i)); !errors.Is(err, keystore.ErrNotFound) {
					t.Errorf("guess %d: %v", i, err)
				}
			})
		}
		synctest.Wait()
		if st.most != lookupsAtOnce {
			t.Errorf("%d look-ups at once, want %d", st.most, lookupsAtOnce)
		}
		key := issue(t, st, &definition.Session{})
		wg.Go(func() {
			if _, err := find(s, key); err != nil {
				t.Errorf("first request of a new key: %v", err)
			}
		})
		synctest.Wait()
		if st.most != lookupsAtOnce+1 {
			t.Error("a new key waits behind the flood")
		}
		close(st.gate)
		wg.Wait()
	})
}

func TestWhoWaitsTooLongForATurnIsNotToldThatTheKeyIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, nil)
		for range lookupsAtOnce {
			s.lanes[otherLane] <- struct{}{} // others, who stay
		}
		began := time.Now()
		_, err := find(s, "one more")
		if !errors.Is(err, keystore.ErrUnavailable) || time.Since(began) != 200*time.Millisecond {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if s.Stats().Busy != 1 || s.away.until.Load() != 0 {
			t.Error("a busy lane is taken for a store that is away")
		}
	})
}

func TestAFloodCostsTheStoreNothingWhereItCanBeTold(t *testing.T) {
	st := newStore()
	s := NewSessions(options(st))
	for i := range 1000 {
		find(s, hasher.Prefix+"guess"+text(i))
	}
	if st.looked() != 0 || s.Stats().Malformed != 1000 {
		t.Errorf("%d look-ups for keys with a wrong checksum", st.looked())
	}
	for range 1000 {
		find(s, "the same unknown key")
	}
	if st.looked() != 1 || s.Stats().Unknown != 999 {
		t.Errorf("%d look-ups for one unknown key", st.looked())
	}
}

func TestUnknownKeysAreForgottenByTimeAndNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, func(o *SessionOptions) { o.UnknownSize, o.Size = 10, 10 })
		for i := range 100 {
			find(s, "guess-"+text(i))
		}
		if got := s.Stats().Unknowns; got != 10 {
			t.Errorf("%d are remembered, want 10", got)
		}
		find(s, "guess-99")
		if st.looked() != 100 {
			t.Errorf("%d look-ups, want 100", st.looked())
		}
		time.Sleep(2 * time.Second)
		find(s, "guess-99")
		if st.looked() != 101 {
			t.Errorf("%d look-ups, want 101", st.looked())
		}
	})
}

func TestUnknownKeysMayNotBeRemembered(t *testing.T) {
	st := newStore()
	o := options(st)
	o.UnknownTTL = 0
	s := NewSessions(o)
	for range 5 {
		find(s, "nobody-knows-me")
	}
	if st.looked() != 5 || s.Stats().Unknowns != 0 {
		t.Errorf("%d look-ups, %d remembered", st.looked(), s.Stats().Unknowns)
	}
}

func TestMemoryIsBoundedAndKeepsWhatIsUsed(t *testing.T) {
	st := newStore()
	o := options(st)
	o.Size = 100
	s := NewSessions(o)
	hot := issue(t, st, &definition.Session{})
	for range 1000 {
		find(s, issue(t, st, &definition.Session{}))
		find(s, hot)
	}
	if got := s.Stats(); got.Entries != 100 {
		t.Errorf("%d entries, want 100", got.Entries)
	}
	if st.looked() != 1001 {
		t.Errorf("%d look-ups, want 1001: a key in use was dropped", st.looked())
	}
}

func TestTheCacheKeepsToItsSize(t *testing.T) {
	for _, size := range []int{1, 2, 255, 256, 1000, 100_000} {
		st := newStore()
		o := options(st)
		o.Size = size
		s := NewSessions(o)
		for range min(3*size, 3000) {
			find(s, issue(t, st, &definition.Session{}))
		}
		if got := s.Stats().Entries; got > size+size/100+1 {
			t.Errorf("size %d: %d entries", size, got)
		}
	}
}

func TestOldSessionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, nil)
		for range 100 {
			find(s, issue(t, st, &definition.Session{}))
		}
		time.Sleep(2*time.Minute - time.Second)
		late := issue(t, st, &definition.Session{})
		find(s, late)
		time.Sleep(sweepEvery + time.Second)
		synctest.Wait()
		if got := s.Stats().Entries; got != 1 {
			t.Errorf("%d entries, want 1", got)
		}
		before := st.looked()
		if find(s, late); st.looked() != before {
			t.Error("a session in use was forgotten")
		}
	})
}

func TestAWatchThatEndsIsBegunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, nil)
		key := issue(t, st, &definition.Session{Alias: "before"})
		find(s, key)
		st.unwatch <- errors.New("connection reset")
		st.set(func() { st.sessions[hasher.Hash(key)] = &definition.Session{Alias: "after"} }) // nobody is told
		synctest.Wait()
		if e, err := find(s, key); err != nil || e.session.Alias != "after" {
			t.Errorf("%+v, %v", e, err)
		}
		began := time.Now()
		<-st.watching
		if took := time.Since(began); took != rewatch {
			t.Errorf("begun again after %s, want %s", took, rewatch)
		}
	})
}

func TestManyKeysAtOnce(t *testing.T) {
	st := newStore()
	o := options(st)
	o.Size = 50
	s := NewSessions(o)
	st.watcher = s.changed
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = issue(t, st, &definition.Session{Alias: text(i)})
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 5000 {
				n := i * 7 % len(keys)
				if e, err := find(s, keys[n]); err != nil || e.session.Alias != text(n) {
					t.Errorf("key %d: %+v, %v", n, e, err)
					return
				}
				if i%50 == 0 {
					_ = st.Put(context.Background(), hasher.Hash(keys[n]), &definition.Session{Alias: text(n)})
				}
				if i%500 == 0 {
					s.changed("")
					s.entries.DeleteFunc(func(_ uint64, e *entry) bool { return e.loaded < 0 }, nil)
				}
			}
		})
	}
	wg.Wait()
}

func TestDeletedKeysLeaveTheCache(t *testing.T) {
	st := newStore()
	o := options(st)
	o.Size = 10
	s := NewSessions(o)
	st.watcher = s.changed
	var keys []string
	for range 10 {
		keys = append(keys, issue(t, st, &definition.Session{}))
		find(s, keys[len(keys)-1])
	}
	for left, i := range []int{3, 0, 9, 5} {
		if err := st.Delete(t.Context(), hasher.Hash(keys[i])); err != nil {
			t.Fatal(err)
		}
		find(s, keys[i])
		if got := s.Stats().Entries; got != 9-left {
			t.Errorf("%d entries, want %d", got, 9-left)
		}
	}
	for range 20 {
		find(s, issue(t, st, &definition.Session{}))
	}
}

// decoding hands out a session of its own for each look-up, as a store does that
// decodes.
type decoding struct{ *store }

func (decoding) Get(_ context.Context, identity string) (*definition.Session, error) {
	return &definition.Session{
		OrgID: strings.Clone("org1"), ApplyPolicies: []string{strings.Clone("gold")}, LastUpdated: strings.Clone("1700000000"),
	}, nil
}

func TestASessionInMemoryTakesAtMostAKibibyte(t *testing.T) {
	n := 20_000
	if many, err := strconv.Atoi(os.Getenv("SLUICE_TEST_SESSIONS")); err == nil {
		n = many
	}
	o := options(decoding{newStore()})
	o.Size, o.TTL = n, time.Hour
	s := NewSessions(o)
	before := heap()
	for range n {
		if _, err := find(s, credential.Generate(hasher.Prefix)); err != nil {
			t.Fatal(err)
		}
	}
	entries := s.Stats().Entries
	bare := (heap() - before) / entries
	for _, e := range s.entries.All {
		e.grants.Keep(pipeline.GrantScope{}, grantOf(e))
	}
	per := (heap() - before) / entries
	began := collecting()
	runtime.GC()
	t.Logf("%d sessions in memory: %d bytes for each, %d with a grant; a collection takes %.0f ms of CPU", entries, bare, per, 1000*(collecting()-began))
	if per > 1024 && !race.Enabled { // which gives each short text 16 bytes of its own
		t.Errorf("%d bytes, want at most 1024", per)
	}
	runtime.KeepAlive(s)
}

// grantOf is a grant with a rate and a quota, as most are.
func grantOf(e *entry) *pipeline.Grant {
	var n counter.Naming
	g := pipeline.NewGrant()
	g.Policy = "gold"
	g.AddLimit(counter.Limit{Key: n.Rate("", e.identity(), e.session.LastUpdated)})
	g.AddLimit(counter.Limit{Key: n.Quota("", e.identity())})
	return g
}

// collecting returns the CPU time of garbage collections so far, in seconds.
func collecting() float64 {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/mark/dedicated:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/assist:cpu-seconds"}}
	metrics.Read(sample)
	total := 0.0
	for _, s := range sample {
		total += s.Value.Float64()
	}
	return total
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func BenchmarkFind(b *testing.B) {
	for _, n := range []int{1, 1000, 100_000} {
		b.Run(text(n), func(b *testing.B) {
			st := newStore()
			o := options(st)
			o.Size, o.TTL = 2*n, time.Hour
			s := NewSessions(o)
			keys := make([][]byte, n)
			for i := range keys {
				keys[i] = []byte(issue(b, st, &definition.Session{}))
				find(s, string(keys[i]))
			}
			sc, at, i := s.scope(definition.KeyCredential, ""), time.Now(), 0
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.find(&sc, keys[i], at); err != nil {
					b.Fatal(err)
				}
				if i += 7919; i >= n {
					i %= n
				}
			}
		})
	}
}

// While the store is known to be away, sessions in memory are used without a look-up,
// except for those that have changed, or were loaded before changes were missed.
func TestSessionsAreUsedOnWhileTheStoreIsKnownToBeAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		var away bool
		missed := time.Now()
		s := watched(t, st, func(o *SessionOptions) {
			o.StaleTTL = 24 * time.Hour
			o.MayServe = func(loaded time.Time) bool { return away && loaded.After(missed) }
		})
		time.Sleep(time.Second)
		key, changed := issue(t, st, &definition.Session{}), issue(t, st, &definition.Session{})
		find(s, key)
		find(s, changed)
		away = true
		time.Sleep(23 * time.Hour)
		if err := st.Delete(t.Context(), hasher.Hash(changed)); err != nil {
			t.Fatal(err)
		}
		s.changed("") // as a lost connection does
		before := st.looked()
		for range 5 {
			if _, err := find(s, key); err != nil || st.looked() != before {
				t.Errorf("%v, %d look-ups, want none", err, st.looked()-before)
			}
			if _, err := find(s, changed); !errors.Is(err, keystore.ErrNotFound) {
				t.Errorf("a key that was deleted: %v", err)
			}
			before = st.looked()
		}
		if s.Stats().Stale != 5 {
			t.Errorf("%d were served stale, want 5", s.Stats().Stale)
		}
		time.Sleep(sweepEvery)
		if n := s.Stats().Entries; n != 1 {
			t.Errorf("%d entries, want that of the key that did not change", n)
		}
		missed = time.Now()
		if _, err := find(s, key); err != nil || st.looked() != before+1 {
			t.Errorf("loaded before changes were missed: %v, %d look-ups", err, st.looked()-before)
		}
	})
}
