package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// listening runs Listen until t ends and returns what it was told.
func listening(t *testing.T, s *Store) <-chan State {
	told := make(chan State, 1000)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Listen(ctx, func(state State) { told <- state }, func(string) {})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return told
}

func next(t *testing.T, told <-chan State) State {
	t.Helper()
	select {
	case state := <-told:
		return state
	case <-time.After(60 * time.Second):
		t.Fatal("nothing was told")
		return State{}
	}
}

// Nothing but an announcement makes a listener read again.
func TestListenerHearsOfEachChange(t *testing.T) {
	s, url := fresh(t)
	other := open(t, url)
	told := listening(t, other)
	if first := next(t, told); first.Revision != 0 {
		t.Fatalf("first told of %+v", first)
	}
	for i := range 20 {
		created := create(t, s, "one", simple(t, fmt.Sprint("a", i), fmt.Sprint("/a", i)))
		if state := next(t, told); state.Revision != created {
			t.Fatalf("told of %+v, want revision %d", state, created)
		}
	}
	if err := s.Reload(t.Context(), by("one")); err != nil {
		t.Fatal(err)
	}
	if state := next(t, told); state != (State{Revision: 20, Generation: 1}) {
		t.Errorf("after a reload told of %+v", state)
	}
}

func TestListenerReadsAgainAfterItsConnectionBroke(t *testing.T) {
	s, url := fresh(t)
	told := listening(t, s)
	next(t, told)
	for i := range 3 {
		sqlExec(t, url, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
		var created int64
		wait.Until(t, "the pool connects again", func() bool {
			var err error
			created, err = s.Publish(t.Context(), by("one"), func(ctx context.Context, c *Change) error {
				return c.CreateAPI(ctx, simple(t, fmt.Sprint("a", i), fmt.Sprint("/a", i)))
			})
			if err != nil && !errors.Is(err, ErrUnavailable) {
				t.Fatal(err)
			}
			return err == nil
		})
		for state := next(t, told); state.Revision != created; state = next(t, told) {
		}
	}
}

func newKey(t testing.TB, s *Store, org, hash string) {
	t.Helper()
	session := &definition.Session{Alias: "Key " + hash, AccessRights: map[string]*definition.Access{"a": {APIID: "a"}}}
	if err := s.CommitKey(t.Context(), by(org), KeyChange{Hash: hash, Session: session, New: true, Reset: []string{"quota-" + hash}}); err != nil {
		t.Fatal(err)
	}
}

func TestKeysAreCommittedWithTheirDelivery(t *testing.T) {
	s, url := fresh(t)
	ctx := t.Context()
	newKey(t, s, "one", "h1")
	conflict(t, s.CommitKey(ctx, by("two"), KeyChange{Hash: "h1", Session: &definition.Session{}, New: true}), TakenID)
	if err := s.CommitKey(ctx, by("two"), KeyChange{Hash: "h1"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleting another organisation's key: %v", err)
	}
	changed := &definition.Session{Alias: "changed", Expires: 1<<63 - 1, ApplyPolicies: []string{"p"}, IsInactive: true}
	if err := s.CommitKey(ctx, by("one"), KeyChange{Hash: "h1", Session: changed, Reset: []string{"rate-h1"}}); err != nil {
		t.Fatal(err)
	}
	var got []Delivery
	err := s.DeliverKey(ctx, "h1", func(list []Delivery) []error { got = list; return make([]error, len(list)) })
	if err != nil || len(got) != 1 || got[0].Session.Alias != "changed" || fmt.Sprint(got[0].Reset) != "[quota-h1 rate-h1]" {
		t.Fatalf("delivered %+v: %v", got, err)
	}
	if n := one[int](t, url, "select count(*) from outbox"); n != 0 {
		t.Errorf("%d rows are left in the outbox", n)
	}
	if err := s.CommitKey(ctx, by("one"), KeyChange{Hash: "h1"}); err != nil {
		t.Fatal(err)
	}
	before := one[time.Time](t, url, "select now()")
	taken, failed, err := s.Deliver(ctx, 10, func(list []Delivery) []error {
		if len(list) != 1 || list[0].Session != nil {
			t.Errorf("delivered %+v, want a deletion", list)
		}
		return []error{errors.New("away")}
	})
	if taken != 1 || failed != 1 || err != nil {
		t.Fatalf("taken %d, failed %d: %v", taken, failed, err)
	}
	if n := one[int](t, url, "select attempts from outbox"); n != 1 {
		t.Errorf("%d attempts", n)
	}
	if next := one[time.Time](t, url, "select next_at from outbox"); next.Before(before.Add(100 * time.Millisecond)) {
		t.Errorf("the next attempt is due %s after the delivery, want 100 ms", next.Sub(before))
	}
	if waiting, _, err := s.Backlog(ctx); err != nil || waiting != 1 {
		t.Errorf("%d are waiting: %v", waiting, err)
	}
}

func TestListOfKeysFindsThemByAliasHashAndAPI(t *testing.T) {
	s, _ := fresh(t)
	for _, h := range []string{"abc1", "abd2", "x_%3"} {
		newKey(t, s, "one", h)
	}
	newKey(t, s, "two", "abe4")
	if err := s.CommitKey(t.Context(), by("one"), KeyChange{Hash: "viapolicy", New: true, Session: &definition.Session{ApplyPolicies: []string{"p"}}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		filter KeyFilter
		want   int64
	}{
		{KeyFilter{}, 4},
		{KeyFilter{Prefix: "ab"}, 2},
		{KeyFilter{Prefix: "KEY A"}, 2},
		{KeyFilter{Prefix: "x_%"}, 1},
		{KeyFilter{Prefix: "%"}, 0},
		{KeyFilter{API: "a"}, 3},
		{KeyFilter{API: "a", Policies: []string{"p"}}, 4},
		{KeyFilter{API: "b"}, 0},
	} {
		rows, total, err := s.ListKeys(t.Context(), "one", c.filter, Page{Max: 1})
		if err != nil || total != c.want || len(rows) != int(min(total, 1)) {
			t.Errorf("%+v: %d of %d keys, want %d: %v", c.filter, len(rows), total, c.want, err)
		}
	}
}

// copies is a key store that takes its time.
type copies struct {
	mu    sync.Mutex
	alias map[string]string
}

func (c *copies) put(list []Delivery) []error {
	<-time.After(time.Millisecond) // makes overtaking likely, decides nothing
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range list {
		if d.Session == nil {
			delete(c.alias, d.Hash)
		} else {
			c.alias[d.Hash] = d.Session.Alias
		}
	}
	return make([]error, len(list))
}

// fill writes all that it read only at the end.
func (c *copies) fill(all iter.Seq2[Delivery, error]) error {
	var read []Delivery
	for d, err := range all {
		if err != nil {
			return err
		}
		read = append(read, d)
	}
	c.put(read)
	return nil
}

func TestDeliveriesOfOneKeyNeverOvertakeEachOther(t *testing.T) {
	s, url := fresh(t)
	other := open(t, url)
	kept := &copies{alias: map[string]string{}}
	for i := range 5 {
		newKey(t, s, "one", fmt.Sprint("h", i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var workers, writers sync.WaitGroup
	for _, on := range []*Store{s, other} {
		workers.Go(func() {
			for ctx.Err() == nil {
				if _, _, err := on.Deliver(ctx, 3, kept.put); err != nil && !errors.Is(err, ErrFilling) && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
		workers.Go(func() {
			for ctx.Err() == nil {
				if _, err := on.FillKeys(ctx, kept.fill); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				tick(t)
			}
		})
	}
	for i := range 5 {
		writers.Go(func() {
			hash := fmt.Sprint("h", i)
			for n := range 40 {
				change := KeyChange{Hash: hash, Session: &definition.Session{Alias: fmt.Sprint(n)}}
				if err := s.CommitKey(ctx, by("one"), change); err != nil {
					t.Error(err)
				}
				if err := other.DeliverKey(ctx, hash, kept.put); err != nil && !errors.Is(err, ErrFilling) {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	wait.Until(t, "nothing waits", func() bool { n, _, err := s.Backlog(ctx); return err == nil && n == 0 })
	cancel()
	workers.Wait()
	for i := range 5 {
		if got := kept.alias[fmt.Sprint("h", i)]; got != "39" {
			t.Errorf("the copy of h%d is at %q, want the last write", i, got)
		}
	}
}

func TestWhoDeliversAKeyHoldsItAgainstOthers(t *testing.T) {
	s, url := fresh(t)
	other := open(t, url)
	newKey(t, s, "one", "h1")
	newKey(t, s, "one", "h2")
	entered, release := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_, _, err := s.Deliver(t.Context(), 1, func(list []Delivery) []error {
			if list[0].Hash != "h1" {
				t.Errorf("%s is the oldest", list[0].Hash)
			}
			close(entered)
			<-release
			return []error{nil}
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-entered
	if taken, _, err := other.Deliver(t.Context(), 10, func(list []Delivery) []error {
		if len(list) != 1 || list[0].Hash != "h2" {
			t.Errorf("another delivers %+v", list)
		}
		return []error{nil}
	}); taken != 1 || err != nil {
		t.Errorf("another delivered %d: %v", taken, err)
	}
	released := false
	all.Go(func() {
		err := other.DeliverKey(t.Context(), "h1", func(list []Delivery) []error {
			if !released || list[0].Session.Alias != "changed" {
				t.Errorf("delivered beside the one who holds the key: %+v", list)
			}
			return []error{nil}
		})
		if err != nil {
			t.Error(err)
		}
	})
	all.Go(func() {
		if err := s.CommitKey(t.Context(), by("one"), KeyChange{Hash: "h1", Session: &definition.Session{Alias: "changed"}}); err != nil {
			t.Error(err)
		}
	})
	wait.Until(t, "both wait for the key", func() bool {
		return one[int](t, url, "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'") == 2
	})
	released = true
	close(release)
	all.Wait()
}

func TestFillingWalksAllKeysOfAllOrganisations(t *testing.T) {
	s, url := fresh(t)
	sqlExec(t, url, `insert into keys (key_hash, org_id, active, apis, policies, body)
		select 'h' || lpad(n::text, 5, '0'), case when n % 2 = 0 then 'one' else 'two' end, true, '{}', '{}', '{"alias":"x"}' from generate_series(1, 2500) n`)
	for _, stopAfter := range []int{1200, 3000} {
		seen := map[string]bool{}
		failing := errors.New("away")
		ran, err := s.FillKeys(t.Context(), func(all iter.Seq2[Delivery, error]) error {
			if again, err := s.FillKeys(t.Context(), nil); again || err != nil {
				t.Errorf("filled twice at a time: %v", err)
			}
			if _, _, err := s.Deliver(t.Context(), 1, nil); !errors.Is(err, ErrFilling) {
				t.Errorf("delivered while it is filled: %v", err)
			}
			for d, err := range all {
				if err != nil {
					return err
				}
				if seen[d.Hash] = true; len(seen) == stopAfter {
					return failing
				}
			}
			return nil
		})
		if !ran || len(seen) != min(stopAfter, 2500) || errors.Is(err, failing) != (stopAfter < 2500) {
			t.Errorf("%d keys, ran %v: %v", len(seen), ran, err)
		}
	}
}
