package counter

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/counter/script"
	"github.com/sluicegate/sluice/internal/testenv"
)

// A batch is bounded, merges equal calls, and gives every caller its own place.
func TestABatchMergesCallsUnderTheSameLimits(t *testing.T) {
	b, q := newBatch(), newQuotaCache(100)
	a := []Limit{{Key: "a", Max: 5}, {Key: "r", Kind: Rate, Max: 2, Period: time.Second}}
	raised := []Limit{{Key: "a", Max: 6}, a[1]}
	for i, c := range []struct {
		limits      []Limit
		calls       int32
		item, place int32
	}{
		{a, 1, 0, 0},
		{a, 1, 0, 1},
		{a[:1], 1, 1, 0},
		{raised, 1, 2, 0},
		{raised, 1, 2, 1},
		{raised, 0, 2, 2},
		{a[1:], 1, 3, 0},
		{a, 1, 4, 0},
		{a, 1, 4, 1},
		{a[1:], 0, 3, 1},
		{a[1:], 3, 5, 0},
		{a[1:], 3, 5, 3},
		{a[1:], 0, 5, 6},
		{a[1:], 2, 6, 0}, // a portion that differs is an item of its own
		{raised[:1], 0, 7, 0},
		{raised[:1], 40_000, 7, 0},
		{raised[:1], 0, 7, 40_000},
		{raised[:1], 40_000, 8, 0}, // as is one for which there is no room
	} {
		if item, place := b.add(q, c.limits, c.calls); item != c.item || place != c.place {
			t.Errorf("call %d: item %d place %d, want %d and %d", i, item, place, c.item, c.place)
		}
	}
	// calls, portion, the only shape, and whether to tell the end of an unknown quota
	for item, want := range map[int][]byte{2: {2, 0, 1, 0, 1, 1}, 5: {6, 0, 3, 0, 1, 0}} {
		if got := b.request.PackItem(item); !strings.HasSuffix(got, string(want)) {
			t.Errorf("packed item %d ends %q, want %v", item, got[len(got)-6:], want)
		}
	}
	full := newBatch()
	for i := 0; full.request.Fits(1); i++ {
		full.add(q, []Limit{{Key: fmt.Sprint(i), Max: 1}}, 1)
	}
	if len(full.items) != script.MaxItems {
		t.Errorf("a batch takes %d items, want %d", len(full.items), script.MaxItems)
	}
}

// queued waits until so many calls wait in the lane's queue.
func queued(t *testing.T, l *lane, calls int32) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); <-tick.C {
		waiting := int32(0)
		l.mu.Lock()
		for _, b := range l.queue {
			for i := range b.items {
				waiting += b.items[i].calls
			}
		}
		l.mu.Unlock()
		if waiting == calls {
			return
		}
	}
	t.Fatalf("not %d calls in the queue within 5s", calls)
}

// A caller that leaves is answered at once; it was counted all the same. One
// that had left before it came was not.
func TestCallerThatLeavesWasCounted(t *testing.T) {
	store := testenv.Valkey(t)
	v, err := OpenValkey(t.Context(), ValkeyOptions{Addresses: []string{store.Addr}, Outage: Closed, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	store.Stop()
	ctx, leave := context.WithCancel(t.Context())
	var left, served atomic.Int64
	var group sync.WaitGroup
	take := func(key string) {
		group.Go(func() {
			_, err := v.Take(ctx, []Limit{{Key: key, Max: 100}}, 1, make([]Count, 1))
			switch {
			case errors.Is(err, context.Canceled):
				left.Add(1)
			case err == nil:
				served.Add(1)
			}
		})
	}
	for i := range batchesInFlight {
		take(fmt.Sprint("runs", i))
		for away := 0; away <= i; {
			v.lanes[0].mu.Lock()
			if away = v.lanes[0].inFlight; v.lanes[0].open != nil {
				away = 0 // the next would join it
			}
			v.lanes[0].mu.Unlock()
		}
	}
	for range 16 {
		take("waits")
	}
	queued(t, v.lanes[0], 16)
	leave()
	for left.Load() < 16 {
		runtime.Gosched()
	}
	store.Cont()
	group.Wait()
	if left.Load() != 16 || served.Load() != batchesInFlight {
		t.Errorf("%d left and %d were served, want 16 and %d", left.Load(), served.Load(), batchesInFlight)
	}
	store.Await("16", "GET", "waits")
	if _, err := v.Take(ctx, []Limit{{Key: "late", Max: 5}}, 1, make([]Count, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("take by a caller that had left: %v", err)
	}
	if got := store.Do("EXISTS", "late"); got != "0" {
		t.Errorf("a caller that had left was counted")
	}
}

// Callers join an open batch until it is closed. Only then may another be sent, and
// with as many in flight as may be, callers are queued.
func TestCallersJoinTheOpenBatch(t *testing.T) {
	store := testenv.Valkey(t)
	v, err := OpenValkey(t.Context(), ValkeyOptions{Addresses: []string{store.Addr}, Outage: Closed, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	l := v.lanes[0]
	join := func(key string) ticket {
		t.Helper()
		b, refusal := l.join([]Limit{{Key: key, Max: 5}}, 1)
		if refusal != nil {
			t.Fatal(refusal)
		}
		return b
	}
	first, second := join("a"), join("b")
	if !first.runs || second.runs || second.batch != first.batch {
		t.Fatalf("the second caller runs %v, want it in the first's batch", second.runs)
	}
	if failed := l.close(first.batch); failed != nil {
		t.Fatal(failed)
	}
	third := join("c")
	if !third.runs || third.batch == first.batch {
		t.Fatalf("a caller after the first batch was closed runs %v, want a batch of its own", third.runs)
	}
	if failed := l.close(third.batch); failed != nil {
		t.Fatal(failed)
	}
	waits := join("d")
	if waits.runs || waits.batch == third.batch {
		t.Fatal("a third batch was sent with two in flight")
	}
	l.run(third.batch)
	l.run(first.batch)
	for _, b := range []ticket{first, second, third, waits} {
		if b.batch.done != nil {
			<-b.batch.done
		}
		if refused, err := b.answer([]Limit{{Key: "x", Max: 5}}, make([]Count, 1)); refused >= 0 || err != nil {
			t.Errorf("refused %d, %v", refused, err)
		}
	}
	v.running.Wait()
	if l.inFlight != 0 || len(l.queue) != 0 || l.open != nil {
		t.Errorf("%d batches in flight, %d queued, one open: %v", l.inFlight, len(l.queue), l.open != nil)
	}
}

// A caller may find the lane shut, and decide only once the store is back and
// was told all that it was owed until then. It is told of that call too.
func TestACallDecidedLateIsToldToTheStore(t *testing.T) {
	store := testenv.Valkey(t)
	v, err := OpenValkey(t.Context(), ValkeyOptions{Addresses: []string{store.Addr}, Outage: Local, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	l := v.lanes[0]
	shut := func(down *outage) {
		l.mu.Lock()
		l.down = down // as it was a moment ago: nobody is asked to probe
		l.mu.Unlock()
	}
	shut(&outage{cause: errNewConn})
	if refused, err := v.Take(t.Context(), []Limit{{Key: "late", Max: 5}}, 1, make([]Count, 1)); refused >= 0 || err != nil {
		t.Fatal(refused, err)
	}
	shut(nil)
	store.Await("1", "GET", "late")
}

// A value that is no counter keeps neither the other debts from being paid, once,
// nor the store from being used again.
func TestADebtOfAForeignValueIsDroppedAlone(t *testing.T) {
	store := testenv.Valkey(t)
	v, err := OpenValkey(t.Context(), ValkeyOptions{Addresses: []string{store.Addr}, Outage: Local, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	l := v.lanes[0]
	foreign := []string{"007", "-0", "99999999999999999999", "1.5", "word", ""}
	l.standby.mu.Lock()
	for i := range 20 {
		l.standby.addDebt(fmt.Sprint("good", i), 3, 0, true)
	}
	for _, text := range foreign {
		store.Do("SET", "foreign"+text, text)
		l.standby.addDebt("foreign"+text, 1, 0, true)
	}
	store.Do("RPUSH", "list", "x")
	l.standby.addDebt("list", 1, 0, true)
	l.standby.mu.Unlock()
	l.trip(&outage{cause: errNewConn})
	for end := time.Now().Add(5 * time.Second); l.isDown() != nil || l.standby.hasDebts(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("still away: %v", l.isDown())
		}
	}
	for i := range 20 {
		if got := store.Do("GET", fmt.Sprint("good", i)); got != "3" {
			t.Errorf("good%d: counted %s, want 3", i, got)
		}
	}
	for _, text := range foreign {
		if got := store.Do("GET", "foreign"+text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if dropped := v.stats.DebtsDropped.Load(); dropped != int64(len(foreign))+1 {
		t.Errorf("%d debts dropped, want %d", dropped, len(foreign)+1)
	}
}

// In a cluster each debt has an answer of its own: those that were paid are not
// sent again with the one that was not.
func TestOnlyTheDebtsThatWereRefusedAreKept(t *testing.T) {
	cluster := testenv.ValkeyCluster(t)
	v, err := OpenValkey(t.Context(), ValkeyOptions{Addresses: cluster.Addresses(), Cluster: true, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, node := range cluster.Nodes {
		node.Do("ACL", "SETUSER", "default", "resetkeys", "~good*", "~sluice*")
	}
	l := &lane{v: v, quotas: v.lanes[0].quotas, standby: newStandby(&ValkeyOptions{}, v.lanes[0].quotas, &v.stats)}
	batch := []script.Adjustment{{Key: "good1"}, {Key: "bad1"}, {Key: "good2"}, {Key: "bad2"}, {Key: "good3"}}
	for i := range batch {
		batch[i].What, batch[i].Calls = script.DebtOpened, 3
	}
	if err := l.pushBatch(t.Context(), *v.client.Load(), batch); err == nil {
		t.Error("the store refused nothing")
	}
	for _, key := range []string{"good1", "good2", "good3"} {
		if got := cluster.Owner(key).Do("GET", key); got != "3" {
			t.Errorf("%s: counted %q, want 3", key, got)
		}
	}
	kept := l.standby.takeDebts()
	if len(kept) != 2 || kept["bad1"].calls != 3 || kept["bad2"].calls != 3 {
		t.Errorf("kept %v, want the two that were refused", kept)
	}
	if paid, dropped := v.stats.DebtsPaid.Load(), v.stats.DebtsDropped.Load(); paid != 3 || dropped != 0 {
		t.Errorf("%d paid and %d dropped, want 3 and 0", paid, dropped)
	}
}
