package counter_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/testenv"
)

// Each row of the store-failure table in README.md has its test here.

// a gateway is one opened counter, the states it told and how to wait for them.
type gateway struct {
	subject
	*counter.Valkey
	changes *changes
}

type changes struct {
	mu   sync.Mutex
	seen []bool
}

func (c *changes) told(s counter.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, s.Away)
}

func (c *changes) all() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.seen)
}

func gatewayAt(t *testing.T, o counter.ValkeyOptions) *gateway {
	t.Helper()
	c := &changes{}
	o.Changed = c.told
	v := openValkey(t, o)
	return &gateway{subject{Counter: v, naming: counter.Naming{Tagged: o.Cluster}}, v, c}
}

func (g *gateway) Take(ctx context.Context, l []counter.Limit, calls int, c []counter.Count) (int, error) {
	return g.Valkey.Take(ctx, l, calls, c)
}

func (g *gateway) awaitState(t *testing.T, away bool) {
	t.Helper()
	until(t, fmt.Sprintf("away=%v", away), 15*time.Second, func() bool { return g.State().Away == away })
}

// lose makes calls until one meets the outage.
func (g *gateway) lose(t *testing.T) {
	t.Helper()
	probe := g.quota("lose-"+unique(t), 1<<40, time.Minute)
	until(t, "the outage was noticed", 5*time.Second, func() bool {
		_, _ = g.Take(t.Context(), []counter.Limit{probe}, 1, make([]counter.Count, 1)) // refused under Closed
		return g.State().Away
	})
}

// persistent stores lose nothing when killed.
func persistent(t *testing.T) *testenv.Store {
	t.Helper()
	return testenv.Valkey(t, "--appendonly", "yes", "--appendfsync", "always")
}

func used(t *testing.T, s *testenv.Store, l counter.Limit) int64 {
	t.Helper()
	answer := s.Do("GET", l.Key)
	if answer == "" {
		return 0
	}
	n, err := strconv.ParseInt(answer, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Bound under local with one gateway: none. The store comes back knowing all.
func TestUnreachableUnderLocalGoesOnFromTheLastReplyAndSettles(t *testing.T) {
	store := persistent(t)
	g := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}})
	q, fresh := g.quota("seen", 20, time.Minute), g.quota("fresh", 5, time.Minute)
	forever, r := g.quota("forever", 4, 0), g.rate("seen", 100, time.Minute)
	_, before := g.take(t, q, r)
	want(t, "admitted before", g.admitted(t, 6, q), int64(6))
	want(t, "admitted before, never renewing", g.admitted(t, 3, forever), int64(3))
	store.Kill()
	g.lose(t)
	start := time.Now()
	want(t, "admitted while away", g.admitted(t, 30, q), int64(13))
	want(t, "admitted while away, not seen before", g.admitted(t, 9, fresh), int64(5))
	want(t, "admitted while away, never renewing", g.admitted(t, 3, forever), int64(1))
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("42 calls took %s while the store was away, want no waiting", took)
	}
	refused, counts := g.take(t, r, q)
	want(t, "refused index", refused, 1)
	want(t, "reset", counts[1].ResetAt, before[0].ResetAt)
	want(t, "peek", g.peek(t, q)[0].Remaining, int64(0))
	if err := g.Reset(t.Context(), q.Key); !errors.Is(err, counter.ErrUnavailable) {
		t.Errorf("reset while away: %v, want %v", err, counter.ErrUnavailable)
	}
	store.Restart()
	g.awaitState(t, false)
	for l, n := range map[counter.Limit]int64{q: 20, fresh: 5, forever: 4} {
		want(t, "calls the store knows of "+l.Key, used(t, store, l), n)
		want(t, "admitted afterwards", g.admitted(t, 3, l), int64(0))
	}
	if ttl := store.Do("PTTL", fresh.Key); len(ttl) != 5 {
		t.Errorf("a period opened while away has %s ms left, want some of a minute", ttl)
	}
	want(t, "time to live of a quota that never renews", store.Do("PTTL", forever.Key), "-1")
	want(t, "states told", g.changes.all(), "[true false]")
}

// Bound under open: unbounded while away, and nothing of it is counted.
func TestUnreachableUnderOpenAdmitsUncounted(t *testing.T) {
	store := persistent(t)
	g := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Open})
	q := g.quota("k", 2, time.Minute)
	want(t, "admitted before", g.admitted(t, 5, q), int64(2))
	store.Kill()
	g.lose(t)
	want(t, "admitted while away", g.admitted(t, 50, q), int64(50))
	store.Restart()
	g.awaitState(t, false)
	want(t, "calls the store knows", used(t, store, q), int64(2))
	want(t, "admitted afterwards", g.admitted(t, 5, q), int64(0))
}

// Bound under closed: 0.
func TestUnreachableUnderClosedRefusesWithUnavailable(t *testing.T) {
	store := persistent(t)
	g := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed})
	q := g.quota("k", 10, time.Minute)
	want(t, "admitted before", g.admitted(t, 4, q), int64(4))
	store.Kill()
	g.lose(t)
	counts := make([]counter.Count, 1)
	for range 20 {
		if _, err := g.Take(t.Context(), []counter.Limit{q}, 1, counts); !errors.Is(err, counter.ErrUnavailable) {
			t.Fatalf("take while away: %v, want %v", err, counter.ErrUnavailable)
		}
	}
	if err := g.Peek(t.Context(), []counter.Limit{q}, counts); !errors.Is(err, counter.ErrUnavailable) {
		t.Fatalf("peek while away: %v, want %v", err, counter.ErrUnavailable)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = g.Take(t.Context(), []counter.Limit{q}, 1, counts) }); n > 1 {
		t.Errorf("a refusal while away makes %v allocations", n)
	}
	store.Restart()
	g.awaitState(t, false)
	want(t, "admitted afterwards", g.admitted(t, 10, q), int64(6))
}

// Bound: over 0; the calls in flight, at most one per caller, are counted and
// not served. Nobody waits longer than one time-out.
func TestStalledStoreHoldsUpOnlyTheCallsInFlight(t *testing.T) {
	store := testenv.Valkey(t)
	const stall = time.Second
	g := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed, Timeout: stall})
	q := g.quota("k", 1<<40, time.Minute)
	const callers = 64
	var admitted, failed, slowest, late atomic.Int64
	stop := make(chan struct{})
	pace := time.NewTicker(20 * time.Microsecond) // refused callers leave the processor to others
	defer pace.Stop()
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			counts := make([]counter.Count, 1)
			for {
				select {
				case <-stop:
					return
				default:
				}
				start := time.Now()
				if _, err := g.Take(t.Context(), []counter.Limit{q}, 1, counts); err == nil {
					admitted.Add(1)
				} else {
					if time.Since(start) > stall/2 {
						late.Add(1)
					}
					failed.Add(1)
					<-pace.C
				}
				if took := time.Since(start).Milliseconds(); took > slowest.Load() {
					slowest.Store(took)
				}
			}
		})
	}
	until(t, "traffic flows", 5*time.Second, func() bool { return admitted.Load() > 1000 })
	store.Stop()
	until(t, "the stall was noticed", 5*time.Second, func() bool { return failed.Load() > 1000 })
	store.Cont()
	g.awaitState(t, false)
	before := admitted.Load()
	until(t, "traffic flows again", 5*time.Second, func() bool { return admitted.Load() > before+1000 })
	close(stop)
	group.Wait()
	want(t, "states told", g.changes.all(), "[true false]")
	if over := used(t, store, q) - admitted.Load(); over < 0 || over > callers {
		t.Errorf("counted %d more than admitted, want 0..%d", over, callers)
	}
	if slowest.Load() >= 2*stall.Milliseconds() {
		t.Errorf("a caller waited %d ms, for more than one time-out of %s", slowest.Load(), stall)
	}
	if late.Load() > callers {
		t.Errorf("%d calls waited for the stalled store, want at most one for each of %d callers", late.Load(), callers)
	}
	t.Logf("counted and not served %d, slowest %d ms, waited %d", used(t, store, q)-admitted.Load(), slowest.Load(), late.Load())
}

// Bound: never double; each cut leaves at most the calls in flight counted and
// not served.
func TestCutConnectionsNeverCountTwice(t *testing.T) {
	store := testenv.Valkey(t)
	g := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed})
	q := g.quota("k", 1<<40, time.Minute)
	var admitted, failed atomic.Int64
	stop := make(chan struct{})
	pace := time.NewTicker(20 * time.Microsecond)
	defer pace.Stop()
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			counts := make([]counter.Count, 1)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := g.Take(t.Context(), []counter.Limit{q}, 1, counts); err == nil {
					admitted.Add(1)
				} else {
					failed.Add(1)
					<-pace.C
				}
			}
		})
	}
	for range 40 {
		before := admitted.Load()
		until(t, "traffic flows", 5*time.Second, func() bool { return admitted.Load() > before+50 })
		store.Do("CLIENT", "KILL", "TYPE", "normal")
	}
	close(stop)
	group.Wait()
	over := used(t, store, q) - admitted.Load()
	if over < 0 || over > 40*32 {
		t.Errorf("counted %d more than admitted over 40 cuts of 32 callers", over)
	}
	t.Logf("40 cuts: %d admitted, %d answered by the policy, %d counted and not served", admitted.Load(), failed.Load(), over)
}

// Bound: none for keys that a gateway has seen; a key nobody remembers, at most
// its maximum once more.
func TestRestartedEmptyGetsItsCountsBack(t *testing.T) {
	store := testenv.Valkey(t)
	g := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed})
	other := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed})
	q, forever := g.quota("seen", 10, time.Minute), g.quota("forever", 10, 0)
	unseen := g.quota("unseen", 10, time.Minute)
	want(t, "admitted before", g.admitted(t, 6, q)+other.admitted(t, 1, q), int64(7))
	want(t, "admitted before", g.admitted(t, 8, forever), int64(8))
	store.Do("SET", unseen.Key, "9", "PX", "60000") // counted by a gateway that is gone
	_, reset := g.take(t, q)
	for range 2 { // noticed by a failing call, then, idle, by the new connection alone
		store.Kill()
		store.Restart()
		g.awaitCounting(t)
		other.awaitCounting(t)
	}
	want(t, "calls the store knows", used(t, store, q), int64(8))
	want(t, "reset", g.peek(t, q)[0].ResetAt, reset[0].ResetAt)
	want(t, "admitted afterwards", other.admitted(t, 9, q), int64(2))
	want(t, "admitted afterwards, never renewing", other.admitted(t, 9, forever), int64(2))
	want(t, "time to live of a quota that never renews", store.Do("PTTL", forever.Key), "-1")
	want(t, "admitted afterwards, remembered by nobody", g.admitted(t, 20, unseen), int64(10))
}

// Bound: the calls in flight when the lost connection is noticed, here one.
func TestRestartedEmptyWhileIdleIsNoticedByTheNewConnection(t *testing.T) {
	store := testenv.Valkey(t)
	g := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed})
	q := g.quota("k", 100, time.Minute)
	want(t, "admitted before", g.admitted(t, 90, q), int64(90))
	store.Kill()
	store.Restart()
	admitted := 0
	until(t, "the quota is used up", 10*time.Second, func() bool {
		for range 1000 {
			refused, err := g.Take(t.Context(), []counter.Limit{q}, 1, make([]counter.Count, 1))
			if err == nil && refused >= 0 {
				return true
			}
			if err == nil {
				admitted++
			}
		}
		return false
	})
	if admitted < 10 || admitted > 11 {
		t.Errorf("%d calls admitted after 90 of 100, want 10, and 1 that found the store empty", admitted)
	}
}

// awaitCounting makes calls until the store counts them again.
func (g *gateway) awaitCounting(t *testing.T) {
	t.Helper()
	q := g.quota("await-"+unique(t), 1<<40, time.Minute)
	until(t, "the store counts again", 10*time.Second, func() bool {
		_, err := g.Take(t.Context(), []counter.Limit{q}, 1, make([]counter.Count, 1))
		return err == nil && !g.State().Away
	})
}

// Bound: what was not yet replicated when the primary died, here nothing.
func TestFailedOverBySentinelsCountsOnFromTheReplica(t *testing.T) {
	stores := testenv.ValkeySentinel(t)
	g := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{stores.Sentinel.Addr}, SentinelMaster: stores.Master, Outage: counter.Closed})
	q := g.quota("k", 10, time.Minute)
	want(t, "admitted before", g.admitted(t, 7, q), int64(7))
	stores.Replica.Await("7", "GET", q.Key)
	stores.Primary.Kill()
	g.lose(t)
	start := time.Now()
	stores.Replica.Await("role:master", "INFO", "replication")
	promoted := time.Since(start)
	g.awaitState(t, false)
	t.Logf("promoted after %s, counting again after %s", promoted, time.Since(start))
	want(t, "admitted afterwards", g.admitted(t, 9, q), int64(3))
	want(t, "calls the new primary knows", used(t, stores.Replica, q), int64(10))
}

// Bound: 0 over, and nobody notices.
func TestFlushedScriptsAreSentAgain(t *testing.T) {
	store := testenv.Valkey(t)
	cluster := testenv.ValkeyCluster(t)
	for name, g := range map[string]*gateway{
		"one server": gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed}),
		"cluster":    gatewayAt(t, counter.ValkeyOptions{Addresses: cluster.Addresses(), Cluster: true, Outage: counter.Closed}),
	} {
		q := g.quota("k", 1000, time.Minute)
		nodes := append([]*testenv.Store{store}, cluster.Nodes...)
		var admitted atomic.Int64
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				counts := make([]counter.Count, 1)
				for range 100 {
					refused, err := g.Take(t.Context(), []counter.Limit{q}, 1, counts)
					if err != nil {
						t.Errorf("%s: take: %v", name, err)
						return
					}
					if refused < 0 {
						admitted.Add(1)
					}
				}
			})
		}
		for range 20 {
			for _, n := range nodes {
				n.Do("SCRIPT", "FLUSH")
			}
		}
		group.Wait()
		want(t, name+": admitted", admitted.Load(), int64(1000))
	}
}

// Bound: 0 over; the policy decides until the store takes writes again.
func TestStoreThatRefusesWritesIsAway(t *testing.T) {
	store := testenv.Valkey(t)
	for name, c := range map[string]struct{ spoil, mend []string }{
		"out of memory": {[]string{"CONFIG", "SET", "maxmemory", "1"}, []string{"CONFIG", "SET", "maxmemory", "0"}},
		"read-only":     {[]string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}})
			closed := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed})
			q := g.quota(unique(t), 10, time.Minute)
			want(t, "admitted before", g.admitted(t, 4, q), int64(4))
			store.Do(c.spoil...)
			closed.lose(t)
			want(t, "admitted while away", g.admitted(t, 3, q), int64(3))
			want(t, "calls the store knows", used(t, store, q), int64(4))
			probed := time.Now().Add(150 * time.Millisecond)
			until(t, "probes were refused too", 5*time.Second, func() bool {
				_, err := closed.Take(t.Context(), []counter.Limit{q}, 1, make([]counter.Count, 1))
				return err == nil || time.Now().After(probed)
			})
			want(t, "away", g.State().Away, true)
			store.Do(c.mend...)
			g.awaitState(t, false)
			closed.awaitState(t, false)
			want(t, "states told under closed", closed.changes.all(), "[true false]")
			want(t, "calls the store knows afterwards", used(t, store, q), int64(7))
			want(t, "admitted afterwards", g.admitted(t, 10, q), int64(3))
			want(t, "states told", g.changes.all(), "[true false]")
		})
	}
}

// Bound: what the others used after a gateway's last look, and one call per
// gateway by rounding. Here A looked last at 5 used and B at 6: (20-5)/2 and
// (20-6)/2 rounded up are 8 and 7, so 21 of 20.
func TestTwoGatewaysUnderLocalShareWhatWasFree(t *testing.T) {
	store := persistent(t)
	two := func() int { return 2 }
	a := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Gateways: two})
	b := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Gateways: two})
	q, r, fresh := a.quota("k", 20, time.Minute), a.rate("k", 9, time.Minute), a.quota("fresh", 6, time.Minute)
	want(t, "admitted before", a.admitted(t, 5, q)+b.admitted(t, 1, q), int64(6))
	store.Kill()
	a.lose(t)
	b.lose(t)
	want(t, "A's share", a.admitted(t, 20, q), int64(8))
	want(t, "B's share", b.admitted(t, 20, q), int64(7))
	want(t, "A's share of a rate", a.admitted(t, 20, r), int64(5))
	want(t, "shares of a quota nobody saw", a.admitted(t, 9, fresh)+b.admitted(t, 9, fresh), int64(6))
	store.Restart()
	a.awaitState(t, false)
	b.awaitState(t, false)
	want(t, "calls the store knows", used(t, store, q), int64(21))
	want(t, "calls the store knows of the fresh quota", used(t, store, fresh), int64(6))
	want(t, "admitted afterwards", a.admitted(t, 5, q)+b.admitted(t, 5, q), int64(0))
}

// Debts of a period that is over, or that was reset meanwhile, are void.
func TestDebtsOfAPeriodThatIsOverAreDropped(t *testing.T) {
	store := persistent(t)
	g := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}})
	short, reset := g.quota("short", 10, 400*time.Millisecond), g.quota("reset", 10, time.Minute)
	other := g.quota("other", 10, time.Minute)
	g.take(t, short)
	g.take(t, reset)
	g.take(t, other)
	store.Do("CONFIG", "SET", "maxmemory", "1") // away, and another client can still delete
	want(t, "admitted while away", g.admitted(t, 2, reset, other), int64(2))
	until(t, "the short period is over", 5*time.Second, func() bool {
		_, counts := g.take(t, short)
		return counts[0].Remaining == 9 // renewed here
	})
	until(t, "the renewed period is over too", 5*time.Second, func() bool {
		return g.peek(t, short)[0].ResetAt == 0
	})
	store.Do("DEL", reset.Key)
	store.Do("PEXPIRE", other.Key, "30000") // as if reset, and opened again by another gateway
	store.Do("CONFIG", "SET", "maxmemory", "0")
	g.awaitState(t, false)
	want(t, "calls of a period that is over", used(t, store, short), int64(0))
	want(t, "calls of a quota that was reset", used(t, store, reset), int64(0))
	want(t, "calls of a quota whose period is another one", used(t, store, other), int64(1))
	want(t, "debts dropped", g.Stats().DebtsDropped.Load(), int64(2))
}

func TestStartingWhileTheStoreIsAwayFollowsThePolicy(t *testing.T) {
	store := testenv.Valkey(t)
	store.Kill()
	g := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}})
	q := g.quota("k", 5, time.Minute)
	want(t, "away", g.State().Away, true)
	want(t, "admitted while away", g.admitted(t, 3, q), int64(3))
	store.Restart()
	g.awaitState(t, false)
	want(t, "calls the store knows", used(t, store, q), int64(3))
	want(t, "admitted afterwards", g.admitted(t, 5, q), int64(2))
	want(t, "states told", g.changes.all(), "[true false]")
}

// Bound: as unreachable, for the keys of that node, and as restarted empty the
// calls in flight when the loss is noticed: here one, since it may have been
// sent on the connection that broke. All others notice nothing.
func TestOneNodeOfAClusterAwayLeavesTheOthersCounting(t *testing.T) {
	cluster := testenv.ValkeyCluster(t)
	g := gatewayAt(t, counter.ValkeyOptions{Addresses: cluster.Addresses(), Cluster: true})
	byNode := map[*testenv.Store][]counter.Limit{}
	for i := range 60 {
		q := g.quota(fmt.Sprint("k", i), 4, time.Minute)
		owner := cluster.Owner(q.Key)
		byNode[owner] = append(byNode[owner], q)
		g.take(t, q)
	}
	dead := cluster.Nodes[1] // the one in the middle shares a lane with either of the others
	first := g.quotaOf(t, cluster, dead)
	g.take(t, first)
	dead.Kill()
	g.take(t, first) // in flight: may count as sent, and is then nobody's debt
	for range 2 {
		for _, all := range byNode {
			for _, q := range all {
				refused, counts := g.take(t, q)
				want(t, "refused", refused, -1)
				if counts[0].Remaining > 2 {
					t.Errorf("%s: %d remaining after three calls", q.Key, counts[0].Remaining)
				}
			}
		}
	}
	counting, living := 0, 0
	for _, n := range []*testenv.Store{cluster.Nodes[0], cluster.Nodes[2]} {
		for _, q := range byNode[n] {
			living++
			if used(t, n, q) == 3 {
				counting++
			}
		}
	}
	if counting < living*8/10 { // slots are watched in sixteenths: two of them are in part the dead node's
		t.Errorf("%d of %d keys of living nodes went on counting there", counting, living)
	}
	dead.Restart()
	g.awaitState(t, false)
	for n, all := range byNode {
		for _, q := range all {
			want(t, "calls the store knows of "+q.Key, used(t, n, q), int64(3))
		}
	}
	if n := used(t, dead, first); n < 1 || n > 2 {
		t.Errorf("the store knows of %d calls, want 2, or 1 without the one in flight", n)
	}
}

// quotaOf makes a quota whose key a node of a cluster keeps.
func (g *gateway) quotaOf(t *testing.T, c *testenv.StoreCluster, owner *testenv.Store) counter.Limit {
	t.Helper()
	for {
		if q := g.quota(unique(t), 4, time.Minute); c.Owner(q.Key) == owner {
			return q
		}
	}
}

// Bound: none, and nobody notices: a node that no longer has a slot says so
// before it runs anything.
func TestMovingSlotsLosesNoCall(t *testing.T) {
	cluster := testenv.ValkeyCluster(t)
	g := gatewayAt(t, counter.ValkeyOptions{Addresses: cluster.Addresses(), Cluster: true, Outage: counter.Closed})
	const keys = 8
	var limits [keys]counter.Limit
	var admitted [keys]atomic.Int64
	stop := make(chan struct{})
	var group sync.WaitGroup
	for i := range limits {
		limits[i] = g.quota(fmt.Sprint("moved", i), 1<<40, time.Minute)
		group.Go(func() {
			counts := make([]counter.Count, 1)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := g.Take(t.Context(), limits[i:i+1], 1, counts); err != nil {
					t.Errorf("take: %v", err)
					return
				}
				admitted[i].Add(1)
			}
		})
	}
	var now [keys]*testenv.Store
	for i, q := range limits {
		before := admitted[i].Load()
		until(t, "traffic flows", 5*time.Second, func() bool { return admitted[i].Load() > before+100 || t.Failed() })
		from := cluster.Owner(q.Key)
		now[i] = cluster.Nodes[(slices.Index(cluster.Nodes, from)+1)%len(cluster.Nodes)]
		moveSlot(cluster, from, now[i], q.Key)
		before = admitted[i].Load()
		until(t, "traffic flows", 5*time.Second, func() bool { return admitted[i].Load() > before+100 || t.Failed() })
	}
	close(stop)
	group.Wait()
	for i, q := range limits {
		want(t, "calls the store knows", used(t, now[i], q), admitted[i].Load())
	}
}

// moveSlot moves the slot of key, and key, as an operator does.
func moveSlot(c *testenv.StoreCluster, from, to *testenv.Store, key string) {
	slot := from.Do("CLUSTER", "KEYSLOT", key)
	host, port, _ := net.SplitHostPort(to.Addr)
	to.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", from.Do("CLUSTER", "MYID"))
	from.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", to.Do("CLUSTER", "MYID"))
	from.Do("MIGRATE", host, port, key, "0", "5000")
	for _, n := range []*testenv.Store{to, from} {
		n.Do("CLUSTER", "SETSLOT", slot, "NODE", to.Do("CLUSTER", "MYID"))
	}
	for _, n := range c.Nodes {
		n.Do("CLUSTER", "SETSLOT", slot, "NODE", to.Do("CLUSTER", "MYID"))
	}
}

func TestSharedLimitInAnotherSlotRefundsTheCaller(t *testing.T) {
	cluster := testenv.ValkeyCluster(t)
	g := gatewayAt(t, counter.ValkeyOptions{Addresses: cluster.Addresses(), Cluster: true, Outage: counter.Closed})
	q, mine := g.quota("caller", 100, time.Minute), g.rate("caller", 100, time.Minute)
	shared := counter.Limit{Key: g.naming.APIRate("api"), Kind: counter.Rate, Max: 3, Period: time.Minute}
	forever := g.quota("forever", 10, 0)
	if cluster.Owner(q.Key) == cluster.Owner(shared.Key) {
		t.Fatal("both keys on one node: the names must differ")
	}
	want(t, "admitted", g.admitted(t, 10, q, mine, shared, forever), int64(3))
	refused, counts := g.take(t, q, mine, shared, forever)
	want(t, "refused index", refused, 2)
	want(t, "remaining told", counts[0].Remaining, int64(97))
	want(t, "remaining of the caller's quota", g.peek(t, q)[0].Remaining, int64(97))
	want(t, "remaining of a slot never asked", g.peek(t, forever)[0].Remaining, int64(7))
	want(t, "refunds", g.Stats().Refunds.Load(), int64(8))
	want(t, "shared limit, an exhausted caller", func() int {
		spent := g.quota("spent", 0, time.Minute)
		other := counter.Limit{Key: g.naming.APIRate("other"), Kind: counter.Rate, Max: 3, Period: time.Minute}
		refused, _ := g.take(t, spent, other)
		want(t, "remaining of the shared limit", g.peek(t, other)[0].Remaining, int64(3))
		return refused
	}(), 0)
}

// A queue that is full is an answer at once, not a wait, and loses nothing.
func TestFullQueueIsBusy(t *testing.T) {
	store := testenv.Valkey(t)
	g := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed, Timeout: 10 * time.Second})
	store.Stop()
	var admitted, refusedBusy atomic.Int64
	var group sync.WaitGroup
	for i := range 1800 { // 16 keys each: 48 calls fill a batch, 2 are in flight, 32 wait
		limits := make([]counter.Limit, counter.MaxLimits)
		for j := range limits {
			limits[j] = g.quota(fmt.Sprint(i, "-", j), 5, time.Minute)
		}
		group.Go(func() {
			switch _, err := g.Take(t.Context(), limits, 1, make([]counter.Count, len(limits))); {
			case errors.Is(err, counter.ErrBusy) && errors.Is(err, counter.ErrUnavailable):
				refusedBusy.Add(1)
			case err != nil:
				t.Errorf("take: %v", err)
			default:
				admitted.Add(1)
			}
		})
	}
	until(t, "calls are refused", 5*time.Second, func() bool { return refusedBusy.Load() >= 1800-(4+32)*48 })
	store.Cont()
	group.Wait()
	want(t, "admitted and refused", admitted.Load()+refusedBusy.Load(), int64(1800))
	want(t, "counted", store.Do("DBSIZE"), fmt.Sprint(16*admitted.Load()+1)) // and the epoch
}

func TestOpenValkeyRefusesWhatWaitingCannotMend(t *testing.T) {
	locked := testenv.Valkey(t, "--requirepass", "right")
	node := testenv.Valkey(t, "--cluster-enabled", "yes")
	for _, c := range []struct {
		name string
		o    counter.ValkeyOptions
		want string
	}{
		{"no address", counter.ValkeyOptions{}, "counter store: addresses: none given, want host:port"},
		{"no port", counter.ValkeyOptions{Addresses: []string{"store"}}, `counter store: address "store": want host:port: address store: missing port in address`},
		{"several", counter.ValkeyOptions{Addresses: []string{"a:1", "b:1"}}, "counter store: addresses: several need cluster or sentinel_master"},
		{"both", counter.ValkeyOptions{Addresses: []string{"a:1"}, Cluster: true, SentinelMaster: "m"}, "counter store: cluster and sentinel_master: want one of them"},
		{"negative time-out", counter.ValkeyOptions{Addresses: []string{"a:1"}, Timeout: -1}, "counter store: timeout -1ns: want more than 0"},
		{"policy", counter.ValkeyOptions{Addresses: []string{"a:1"}, Outage: 7}, "counter store: outage policy 7: want local, open or closed"},
		{"no password", counter.ValkeyOptions{Addresses: []string{locked.Addr}}, "counter store: NOAUTH"},
		{"wrong password", counter.ValkeyOptions{Addresses: []string{locked.Addr}, Password: "wrong"}, "counter store: WRONGPASS"},
		{"a cluster's node", counter.ValkeyOptions{Addresses: []string{node.Addr}}, `counter store: store cannot be used: its mode is "cluster" but cluster is set to false`},
		{"several, not a cluster", counter.ValkeyOptions{Addresses: []string{locked.Addr, locked.Addr}, Password: "right", Cluster: true}, "counter store: This instance has cluster support disabled"},
		{"not a cluster", counter.ValkeyOptions{Addresses: []string{locked.Addr}, Password: "right", Cluster: true}, `counter store: store cannot be used: its mode is "standalone" but cluster is set to true`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.o.Timeout == 0 {
				c.o.Timeout = patience
			}
			v, err := counter.OpenValkey(t.Context(), c.o)
			if err == nil {
				v.Close()
				t.Fatal("accepted")
			}
			if len(err.Error()) < len(c.want) || err.Error()[:len(c.want)] != c.want {
				t.Errorf("got %q, want %q", err, c.want)
			}
		})
	}
}

func TestClosedCounterFollowsThePolicy(t *testing.T) {
	store := testenv.Valkey(t)
	for policy, wanted := range map[counter.Policy]error{counter.Closed: counter.ErrUnavailable, counter.Open: nil, counter.Local: nil} {
		g := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: policy})
		g.Close()
		_, err := g.Take(t.Context(), []counter.Limit{g.quota("k", 5, time.Minute)}, 1, make([]counter.Count, 1))
		if !errors.Is(err, wanted) {
			t.Errorf("%s: take after close: %v, want %v", policy, err, wanted)
		}
		want(t, "states told", g.changes.all(), "[]")
	}
}

func TestParsePolicy(t *testing.T) {
	for _, p := range []counter.Policy{counter.Local, counter.Open, counter.Closed} {
		if got, err := counter.ParsePolicy(p.String()); err != nil || got != p {
			t.Errorf("%s: %v, %v", p, got, err)
		}
	}
	if _, err := counter.ParsePolicy("lokal"); err == nil || err.Error() != `outage policy "lokal": want local, open or closed` {
		t.Errorf("lokal: %v", err)
	}
}
