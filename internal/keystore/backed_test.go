package keystore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// failing is a store that a test can take away.
type failing struct {
	*keystore.Memory
	err atomic.Pointer[error]
}

func (f *failing) fail(err error) { f.err.Store(&err) }

func (f *failing) Get(ctx context.Context, hash string) (*definition.Session, error) {
	if err := f.err.Load(); err != nil && *err != nil {
		return nil, *err
	}
	return f.Memory.Get(ctx, hash)
}

// admin knows keys, and counts how often it is asked.
type admin struct {
	mu    sync.Mutex
	keys  map[string]*definition.Session
	asked map[string]int
	err   error
}

func newAdmin() *admin {
	return &admin{keys: make(map[string]*definition.Session), asked: make(map[string]int)}
}

func (a *admin) ask(_ context.Context, hash string) (*definition.Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked[hash]++
	if s := a.keys[hash]; s != nil || a.err != nil {
		return s, a.err
	}
	return nil, keystore.ErrNotFound
}

func (a *admin) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// backed returns a store and its admin; it runs until the test ends.
func backed(t *testing.T, st keystore.Store, a *admin) *keystore.Backed {
	t.Helper()
	o := keystore.BackedOptions{Store: st, Log: slog.New(slog.DiscardHandler)}
	if a != nil {
		o.Ask = a.ask
	}
	b := keystore.NewBacked(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { b.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return b
}

func TestBacked(t *testing.T) {
	suite(t, func(t *testing.T) keystore.Store { return backed(t, keystore.NewMemory(), newAdmin()) })
}

func TestTheAdminIsAskedWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, a := &failing{Memory: keystore.NewMemory()}, newAdmin()
		b := backed(t, st, a)
		synctest.Wait()
		put(t, b, "k", alias("store"))
		a.keys["k"], a.keys["other"] = alias("admin"), alias("admin")
		if s := get(t, b, "k"); s.Alias != "store" || a.asked["k"] != 0 || b.State().Away {
			t.Errorf("%+v, asked %d times, %+v", s, a.asked["k"], b.State())
		}
		lacks(t, b, "other")
		loaded := time.Now()
		st.fail(keystore.ErrUnavailable)
		if s := get(t, b, "k"); s.Alias != "admin" {
			t.Errorf("%+v", s)
		}
		time.Sleep(3 * time.Second)
		if now := b.State(); !now.Away || !now.Admin || !now.CanDecide() || !errors.Is(now.Cause, keystore.ErrUnavailable) || !b.MayServe(loaded) {
			t.Errorf("%+v", now)
		}
		get(t, b, "other")
		lacks(t, b, "nobody")
		b.Changed("")
		if b.MayServe(loaded) {
			t.Error("what was loaded before an unnoticed change may be served")
		}
		a.set(func() { a.err = keystore.ErrUnavailable })
		time.Sleep(3 * time.Second)
		if now := b.State(); now.CanDecide() {
			t.Errorf("without the admin: %+v", now)
		}
		_, err := b.Get(t.Context(), "other")
		isUnavailable(t, "get without both", err)
		st.fail(nil)
		time.Sleep(3 * time.Second)
		if s := get(t, b, "k"); s.Alias != "store" || b.State().Away || b.MayServe(time.Now()) {
			t.Errorf("%+v, %+v", s, b.State())
		}
		if h := b.Health(); h.Away || h.Outages != 1 || h.Without == 0 {
			t.Errorf("%+v", h)
		}
	})
}

func TestAStoreThatIsFilledAgainAndSessionsThatCannotBeReadAreAskedOfTheAdmin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, a := &failing{Memory: keystore.NewMemory()}, newAdmin()
		b := backed(t, st, a)
		synctest.Wait()
		a.keys["k"] = alias("admin")
		st.fail(fmt.Errorf("%w: torn", keystore.ErrUnreadable))
		for range 5 {
			get(t, b, "k")
		}
		if b.State().Away {
			t.Error("for sessions that cannot be read the store is away")
		}
		st.fail(keystore.ErrRefilling)
		get(t, b, "k")
		lacks(t, b, "nobody")
		if !b.State().Away {
			t.Error("a store that is being filled is not away")
		}
	})
}

func TestAChangeAtTheAdminCountsUntilTheStoreReportsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, a := keystore.NewMemory(), newAdmin()
		b := backed(t, st, a)
		ctx, cancel := context.WithCancel(t.Context())
		heard := make(chan string, 100)
		var watch sync.WaitGroup
		watch.Go(func() { _ = b.Watch(ctx, func(hash string) { heard <- hash }) })
		defer watch.Wait()
		defer cancel()
		put(t, b, "k", alias("old"))
		synctest.Wait()
		time.Sleep(5 * time.Second) // longer than a report of the store counts
		for len(heard) > 0 {
			<-heard
		}
		b.Changed("k") // deleted at the admin
		if got := <-heard; got != "k" {
			t.Errorf("heard of %q", got)
		}
		lacks(t, b, "k")
		a.set(func() { a.err = keystore.ErrUnavailable })
		_, err := b.Get(t.Context(), "k")
		isUnavailable(t, "a changed key without the admin", err)
		put(t, st, "k", alias("new"))
		if s := get(t, b, "k"); s.Alias != "new" {
			t.Errorf("%+v", s)
		}
		b.Changed("k") // late: the store was first
		if s := get(t, b, "k"); s.Alias != "new" {
			t.Errorf("%+v", s)
		}
	})
}

func TestAFloodOfUnknownKeysIsKeptFromTheAdmin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, a := &failing{Memory: keystore.NewMemory()}, newAdmin()
		b := backed(t, st, a)
		a.keys["known"] = alias("known")
		st.fail(keystore.ErrUnavailable)
		time.Sleep(time.Second)
		for range 10_000 {
			get(t, b, "known")
		}
		busy := 0
		for i := range 10_000 {
			if _, err := b.Get(t.Context(), fmt.Sprint("made up ", i)); errors.Is(err, keystore.ErrBusy) {
				busy++
			}
		}
		if busy < 9_000 {
			t.Errorf("only %d of 10000 were kept from the admin", busy)
		}
		time.Sleep(time.Second)
		get(t, b, "known")
	})
}

func TestBackedNoticesThatAStoreDiesAndReturns(t *testing.T) {
	server := testenv.Valkey(t)
	v := openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}, Timeout: time.Second})
	b := backed(t, v, newAdmin())
	wait.Until(t, "the store to answer", func() bool { return !b.State().Away })
	server.Kill()
	wait.Until(t, "its end to be noticed", func() bool { return b.State().Away && b.State().Admin })
	lacks(t, b, "nobody")
	server.Restart()
	wait.Until(t, "its return to be noticed", func() bool { return !b.State().Away })
}
