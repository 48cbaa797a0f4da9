package auth

import (
	"context"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
)

// crowd is sessions of which few can be ready, and the keys of more than that: none
// of the latter is ready.
func crowd(t testing.TB, n int) (*Sessions, [][]byte, *store) {
	t.Helper()
	st := newStore()
	o := options(st)
	o.Size, o.Ready, o.TTL = 4*n, n/20, time.Hour
	s := NewSessions(o)
	keys := make([][]byte, n)
	for i := range keys {
		session := &definition.Session{OrgID: "org1", Alias: text(i), ApplyPolicies: []string{"gold"}, Tags: []string{text(i)}, LastUpdated: "1700000000"}
		keys[i] = []byte(issue(t, st, session))
	}
	for _, key := range keys {
		find(s, string(key))
	}
	for range n { // and make room again
		find(s, issue(t, st, &definition.Session{}))
	}
	return s, keys, st
}

func TestAKeyThatComesOnceIsUnpackedForItsRequestAlone(t *testing.T) {
	s, keys, st := crowd(t, 200)
	looked, sc := st.looked(), s.scopeOf("")
	for i, key := range keys[:20] {
		ex := exchange("", "")
		e, err := s.find(&sc, key, ex.Started, ex)
		if err != nil || e.session.Alias != text(i) || e.token() != string(key) || e.identity() != hasher.Hash(string(key)) {
			t.Fatalf("%+v, %v", e, err)
		}
		if s.shardOf(s.hashOf(&sc, key)).entries.find(s.hashOf(&sc, key)) != nil {
			t.Error("it is ready for others")
		}
		if ex.Guest == nil || ex.HasGuest() { // it is that of the exchange only once it is let in
			t.Error("the exchange has no guest, or is taken for its own")
		}
		if admit(ex, key, e); !ex.HasGuest() || ex.Grants != &e.grants || !reflect.DeepEqual(ex.Session.Tags, []string{text(i)}) {
			t.Errorf("let in as %+v", ex)
		}
		one, other := ex.NewGrant(), ex.NewGrant()
		if one == other || one.Rate != -1 || one.Quota != -1 {
			t.Error("two grants lie in one place, or one is not empty")
		}
		ex.Release()
		if ex.Guest != nil || e.text != "" || e.session != nil {
			t.Error("something is left behind")
		}
	}
	if st.looked() != looked {
		t.Error("the store was asked")
	}
	checkPacked(t, s)
}

func TestAKeyThatComesOftenIsReadyFromThenOn(t *testing.T) {
	s, keys, _ := crowd(t, 200)
	sc := s.scopeOf("")
	var ready *entry
	for i := range enough + 2 {
		ex := exchange("", "")
		e, err := s.find(&sc, keys[0], ex.Started, ex)
		if err != nil || (ex.Guest != nil) != (i < enough) {
			t.Fatalf("time %d: %+v, %v, guest %v", i, e, err, ex.Guest)
		}
		if i > enough && e != ready {
			t.Error("it was unpacked again")
		}
		ready = e
		ex.Release()
	}
	if ready.session.Alias != text(0) {
		t.Errorf("%+v", ready)
	}
}

func TestASecondKeyOfARequestDoesNotTakeThePlaceOfAGuest(t *testing.T) {
	s, keys, _ := crowd(t, 200)
	sc := s.scopeOf("")
	ex := exchange("", "")
	defer ex.Release()
	first, _ := s.find(&sc, keys[0], ex.Started, ex)
	admit(ex, keys[0], first)
	second, err := s.find(&sc, keys[1], ex.Started, ex)
	if err != nil || first.session.Alias != text(0) || second.session.Alias != text(1) {
		t.Fatalf("%+v and %+v, %v", first, second, err)
	}
	if admit(ex, keys[1], second); ex.HasGuest() {
		t.Error("a key that is ready for others is taken for the guest")
	}
	if ex.NewGrant() == ex.Guest.Grant() {
		t.Error("its grant lies where it is used again")
	}
}

func TestAGuestWithoutTheKeyIsNotLetIn(t *testing.T) {
	s, keys, _ := crowd(t, 200)
	ex := exchange("", "")
	defer ex.Release()
	sc, other := s.scopeOf(""), s.scopeOf("other")
	record := s.shardOf(s.hashOf(&sc, keys[0])).find(s.hashOf(&sc, keys[0]))
	if receive(ex, record, keys[1], &sc) != nil || receive(ex, record, keys[0], &other) != nil || ex.Guest != nil {
		t.Error("the record of one credential serves another")
	}
	if receive(ex, record[:len(record)-1], keys[0], &sc) != nil || ex.Guest != nil {
		t.Error("a record that cannot be read is used")
	}
}

func TestGuestsAllocateNothing(t *testing.T) {
	s, keys, _ := crowd(t, 8000)
	sc, i, guests := s.scopeOf(""), 0, 0
	ex := exchange("", "")
	n := testing.AllocsPerRun(2000, func() {
		e, err := s.find(&sc, keys[i], ex.Started, ex)
		if err != nil {
			t.Fatal(err)
		}
		admit(ex, keys[i], e)
		if i++; ex.Guest == nil {
			return
		}
		guests++
		ex.Guest.Release()
		ex.Guest = nil
	})
	if n != 0 && !raceEnabled { // with the race detector on, pools drop what they hold at random
		t.Errorf("%v allocations", n)
	}
	if guests < 1600 {
		t.Errorf("%d of 2000 were guests", guests)
	}
}

// A guest reads what lies in the records of others' writes.
func TestGuestsKeepTheirTextsWhateverBecomesOfTheRecords(t *testing.T) {
	s, keys, st := crowd(t, 400)
	sc := s.scopeOf("")
	var wg sync.WaitGroup
	for part := range 4 {
		wg.Go(func() {
			for i := range 3000 {
				n := (i*7 + part) % len(keys)
				ex := exchange("", "")
				e, err := s.find(&sc, keys[n], ex.Started, ex)
				if err != nil {
					t.Error(err)
					return
				}
				admit(ex, keys[n], e)
				switch {
				case i%10 == 0:
					_ = st.Put(context.Background(), hasher.Hash(string(keys[n])), &definition.Session{Alias: text(n), ApplyPolicies: []string{"gold"}})
				case i%100 == 1:
					s.shards[0].sweep(time.Since(s.base) - time.Millisecond)
				case i%500 == 2:
					s.shards[0].forget(s.hashOf(&sc, keys[n]))
				}
				if ex.Session.Alias != text(n) || ex.KeyHash != hasher.Hash(string(keys[n])) || ex.Session.ApplyPolicies[0] != "gold" {
					t.Errorf("key %d is %q: %+v", n, ex.KeyHash, ex.Session)
				}
				ex.Release()
			}
		})
	}
	wg.Wait()
	checkPacked(t, s)
}

func TestSightingsAreForgottenAfterAWhile(t *testing.T) {
	s := newSightings(64)
	at := func(i int) uint64 { return uint64(i) << 40 }
	for i := range enough + 2 {
		if s.often(at(1)) != (i >= enough) {
			t.Errorf("seen %d times before: often %v", i, i < enough)
		}
	}
	for i := range int(s.most) - enough - 1 {
		if s.often(at(2 + i%200)) {
			t.Errorf("%d was seen often", i)
		}
	}
	if !s.often(at(1)) {
		t.Error("forgotten too soon")
	}
	s.often(at(300))
	if s.often(at(1)) {
		t.Error("still known after many others")
	}
}

func TestFewKeysAreTakenForOnesThatComeOften(t *testing.T) {
	const ready = 256
	s := newSightings(ready)
	taken, random := 0, rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		if s.often(random.Uint64()) {
			taken++
		}
	}
	if taken > 500 {
		t.Errorf("%d of 100,000", taken)
	}
}

// BenchmarkReceive finds a session that is not ready for one request.
func BenchmarkReceive(b *testing.B) {
	s, keys, _ := crowd(b, 10_000)
	sc, i := s.scopeOf(""), 0
	ex := exchange("", "")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.find(&sc, keys[i], ex.Started, ex); err != nil {
			b.Fatal(err)
		}
		if ex.Guest != nil {
			ex.Guest.Release()
			ex.Guest = nil
		}
		if i += 7919; i >= len(keys) {
			i %= len(keys)
		}
	}
}
