package auth

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// few has few of many sessions be ready for requests.
func few(o *SessionOptions) { o.Size, o.Ready = 600, 20 }

// checkPacked tells whether all that is ready is packed too, and no more is than
// may be.
func checkPacked(t *testing.T, s *Sessions) {
	t.Helper()
	checkTables(t, s)
	for i := range s.shards {
		sh := &s.shards[i]
		for _, p := range sh.entries.places {
			if p.entry != nil && sh.packs && sh.find(p.hash) == nil {
				t.Fatal("an entry is ready that is not packed")
			}
		}
		if got := sh.packed.Len(); got > sh.mostPacked {
			t.Fatalf("%d entries are packed, at most %d may be", got, sh.mostPacked)
		}
	}
}

func TestPackedSessionsAreFoundWithoutTheStore(t *testing.T) {
	st := newStore()
	o := options(st)
	few(&o)
	o.Size = 1000 // twice as many as there are: hashes do not spread them evenly
	s := NewSessions(o)
	keys := make([]string, 500)
	want := make(map[string]*definition.Session)
	for i := range keys {
		session := &definition.Session{OrgID: "org", Alias: text(i), Expires: int64(i), IsInactive: i%2 == 0}
		if i%3 == 0 {
			session.ApplyPolicies = []string{"gold"}
			session.MetaData = map[string]json.RawMessage{"n": json.RawMessage(text(i))}
		}
		keys[i] = issue(t, st, session)
		want[keys[i]] = session
	}
	first := make(map[string]*entry)
	for _, key := range keys {
		e, err := find(s, key)
		if err != nil {
			t.Fatal(err)
		}
		first[key] = e
	}
	for _, key := range keys {
		e, err := find(s, key)
		if err != nil || !reflect.DeepEqual(e.session, want[key]) {
			t.Fatalf("%+v, %v, want %+v", e, err, want[key])
		}
		was := first[key]
		if e.identity() != was.identity() || e.name() != was.name() || e.token() != key || e.loaded != was.loaded || e.mark != was.mark ||
			e.slot != was.slot || e.is(isOff) != was.is(isOff) || e.expires != was.expires || e.is(isClear) != was.is(isClear) {
			t.Fatalf("unpacked %+v, was %+v", e, was)
		}
	}
	got := s.Stats()
	if st.looked() != len(keys) || got.Entries != len(keys) || got.Hits != uint64(len(keys)) || got.Unpacked < 400 {
		t.Errorf("%d look-ups, stats %+v", st.looked(), got)
	}
	checkPacked(t, s)
}

func TestSessionsInUseStayReady(t *testing.T) {
	st := newStore()
	o := options(st)
	few(&o)
	s := NewSessions(o)
	hot := issue(t, st, &definition.Session{})
	was, err := find(s, hot)
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		find(s, issue(t, st, &definition.Session{}))
		if e, err := find(s, hot); err != nil || e != was {
			t.Fatalf("%+v, %v: it was unpacked again", e, err)
		}
	}
}

func TestPackedSessionsAreBoundedAndThoseInUseStay(t *testing.T) {
	st := newStore()
	o := options(st)
	o.Size, o.Ready = 100, 5
	s := NewSessions(o)
	hot := issue(t, st, &definition.Session{})
	for range 1000 {
		find(s, issue(t, st, &definition.Session{}))
		find(s, hot)
	}
	if got := s.Stats().Entries; got != 100 {
		t.Errorf("%d entries, want 100", got)
	}
	if st.looked() != 1001 {
		t.Errorf("%d look-ups, want 1001: a key in use was dropped", st.looked())
	}
	checkPacked(t, s)
}

func TestChangesReachPackedSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, func(o *SessionOptions) { o.Ready = 1 })
		keys := make([]string, 50)
		for i := range keys {
			keys[i] = issue(t, st, &definition.Session{Alias: "before"})
			find(s, keys[i])
		}
		for i, key := range keys {
			switch i % 3 {
			case 0:
				_ = st.Put(t.Context(), hasher.Hash(key), &definition.Session{Alias: "after"})
				if e, err := find(s, key); err != nil || e.session.Alias != "after" {
					t.Errorf("after a write: %+v, %v", e, err)
				}
			case 1:
				_ = st.Delete(t.Context(), hasher.Hash(key))
				if e, err := find(s, key); !errors.Is(err, keystore.ErrNotFound) {
					t.Errorf("after a deletion: %+v, %v", e, err)
				}
			}
		}
		if got := s.Stats().Entries; got != 33 {
			t.Errorf("%d entries, want 33", got)
		}
		before := st.looked()
		for i := 0; i < len(keys); i += 3 { // most were packed again meanwhile
			if e, err := find(s, keys[i]); err != nil || e.session.Alias != "after" {
				t.Errorf("long after a write: %+v, %v", e, err)
			}
		}
		if st.looked() != before {
			t.Errorf("%d look-ups of what was looked up before", st.looked()-before)
		}
		s.changed("")
		if find(s, keys[2]); st.looked() != before+1 {
			t.Error("a change that may have been missed is not asked for")
		}
		checkPacked(t, s)
	})
}

func TestPackedSessionsServeWhileTheStoreIsAwayAndNoLongerThanOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStore()
		s := watched(t, st, func(o *SessionOptions) { o.Ready = 1 })
		keys := make([]string, 20)
		for i := range keys {
			keys[i] = issue(t, st, &definition.Session{})
			find(s, keys[i])
		}
		st.set(func() { st.err = keystore.ErrUnavailable })
		time.Sleep(90 * time.Second)
		for _, key := range keys {
			if _, err := find(s, key); err != nil {
				t.Errorf("while the store is away: %v", err)
			}
		}
		time.Sleep(time.Minute)
		if _, err := find(s, keys[0]); !errors.Is(err, keystore.ErrUnavailable) {
			t.Errorf("after its time: %v", err)
		}
		synctest.Wait()
		if got := s.Stats().Entries; got != 0 {
			t.Errorf("%d entries that nobody may use", got)
		}
	})
}

func TestPackedCredentialsWithTheSameHashAreToldApart(t *testing.T) {
	o := options(newStore())
	few(&o)
	s := NewSessions(o)
	sh, one, two, users := &s.shards[0], s.scopeOf("one"), s.scopeOf("two"), s.scopeFor(ofUser, "one")
	again := s.scopeOf("one")
	sh.put(7, &entry{text: "identitybob", length: 3, scope: &one, session: &definition.Session{Alias: "bob"}})
	lookUp := func(token string, sc *scope) *entry {
		sh.entries.remove(7)
		return sh.get(7, []byte(token), sc, nil)
	}
	for _, sc := range []*scope{&one, &again} {
		if e := lookUp("bob", sc); e == nil || e.session.Alias != "bob" || e.identity() != "identity" {
			t.Errorf("%+v", e)
		}
	}
	if lookUp("eve", &one) != nil || lookUp("bob", &two) != nil || lookUp("ybob", &one) != nil || lookUp("ob", &one) != nil {
		t.Error("found by another credential, or in another organisation")
	}
	if sh.get(7, []byte("bob"), &users, nil) != nil || lookUp("bob", &users) != nil {
		t.Error("a key is found by the name of a user")
	}
}

// Whatever happens at once, a key has its own session and what it was changed to.
func TestManyPackedKeysAtOnce(t *testing.T) {
	st := newStore()
	o := options(st)
	o.Size, o.Ready = 80, 10
	s := NewSessions(o)
	st.watcher = s.changed
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = issue(t, st, &definition.Session{Alias: text(i)})
	}
	var wg sync.WaitGroup
	for part := range 4 {
		wg.Go(func() {
			for i := range 4000 {
				n := (i*7 + part) % len(keys)
				if e, err := find(s, keys[n]); err != nil || e.session.Alias != text(n) {
					t.Errorf("key %d: %+v, %v", n, e, err)
					return
				}
				switch {
				case i%50 == 0:
					_ = st.Put(context.Background(), hasher.Hash(keys[n]), &definition.Session{Alias: text(n)})
				case i%777 == 0:
					s.changed("")
					s.shards[0].sweep(0)
				case i%333 == 0:
					s.shards[0].sweep(time.Since(s.base) - time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	checkPacked(t, s)
}

// scannable returns how much of the heap a collection looks through, in bytes.
func scannable() int {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/scan/heap:bytes"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

func TestACollectionLooksThroughReadySessionsOnly(t *testing.T) {
	const n = 20_000
	o := options(decoding{newStore()})
	o.Size, o.Ready, o.TTL = n, n/100, time.Hour
	s := NewSessions(o)
	scanned, held := scannable(), heap()
	for range n {
		if _, err := find(s, credential.Generate(hasher.Prefix)); err != nil {
			t.Fatal(err)
		}
	}
	entries := s.Stats().Entries
	scanned, held = (scannable()-scanned)/entries, (heap()-held)/entries
	t.Logf("%d sessions, one in a hundred ready: %d bytes for each, %d of them looked through", entries, held, scanned)
	if scanned > 40 || held > 400 {
		t.Errorf("at most 40 of 400 bytes wanted")
	}
	runtime.KeepAlive(s)
}

func FuzzPackedEntry(f *testing.F) {
	f.Add("identity", "token", "org", "token", "org", []byte(`{"alias": "a", "x": 1}`), false, true)
	f.Add("", "", "", "x", "", []byte(`{}`), true, false)
	f.Fuzz(func(t *testing.T, identity, token, org, asked, in string, session []byte, clear, users bool) {
		s := new(definition.Session)
		if len(token) > maxToken || json.Unmarshal(session, s) != nil {
			return
		}
		name := ""
		if clear {
			name = strings.Repeat("0", nameLength)
		}
		own, others := ofSigner, []kind{ofKey, ofUser}
		if users {
			own, others = ofUser, []kind{ofKey, ofSigner}
		}
		e := &entry{
			text: identity + name + token, scope: &scope{org: org, kind: own}, loaded: 7, mark: mark{all: 1, slot: 1 << 31}, slot: 9,
			length: uint16(len(token)),
		}
		if clear {
			e.flags.Store(isClear)
		}
		e.hold(s)
		record := e.pack(nil)
		for _, other := range others {
			if unpack(record, []byte(token), &scope{org: org, kind: other}) != nil {
				t.Fatalf("kind %d is taken for kind %d", own, other)
			}
		}
		got := unpack(record, []byte(asked), &scope{org: in, kind: own})
		if (got != nil) != (asked == token && in == org) {
			t.Fatalf("%q of %q is taken for %q of %q: %v", token, org, asked, in, got != nil)
		}
		if got = unpack(record, []byte(token), e.scope); !reflect.DeepEqual(got, e) {
			t.Fatalf("packed %+v, unpacked %+v", e, got)
		}
	})
}

// BenchmarkFindPacked finds a session that is not ready, each time.
func BenchmarkFindPacked(b *testing.B) {
	const n = 10_000
	st := newStore()
	o := options(st)
	o.Size, o.Ready, o.TTL = 2*n, n/10, time.Hour
	s := NewSessions(o)
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = []byte(issue(b, st, &definition.Session{OrgID: "org1", ApplyPolicies: []string{"gold"}, LastUpdated: "1700000000"}))
		find(s, string(keys[i]))
	}
	sc, at, i := s.scopeOf(""), time.Now(), 0
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.find(&sc, keys[i], at, nil); err != nil {
			b.Fatal(err)
		}
		if i += 7919; i >= n {
			i %= n
		}
	}
}
