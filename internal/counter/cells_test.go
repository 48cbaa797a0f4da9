package counter

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// checkCells holds the cells of a shard against their rings.
func checkCells(t *testing.T, held *cells) {
	t.Helper()
	rung := make(map[uint32]bool)
	for key, c := range held.All() {
		if c.gone || rung[c.older] {
			t.Fatalf("counter %s is gone, or has the ring of another", key)
		}
		if c.older != 0 {
			rung[c.older] = true
		}
	}
	if len(rung) != held.rings.InUse() {
		t.Fatalf("%d rings in use, %d have a counter", held.rings.InUse(), len(rung))
	}
}

// Counters come and go by their own periods, by being swept and by being reset;
// each keeps what it remembers to itself, and what is left of none is given back.
func TestRingsComeAndGoWithTheirCounters(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	now := time.UnixMicro(1e15)
	m := NewMemory(func() time.Time { return now })
	for step := range 20_000 {
		now = now.Add(time.Duration(r.IntN(200)) * time.Microsecond)
		key := fmt.Sprint(r.IntN(2000))
		_, err := m.Take(t.Context(), []Limit{{Key: key, Kind: Rate, Max: 100, Period: time.Second}}, 1+r.IntN(9), make([]Count, 1))
		if err != nil {
			t.Fatal(err)
		}
		if step%50 == 0 {
			_ = m.Reset(t.Context(), key)
		}
		if step%1000 == 0 {
			for i := range m.shard {
				checkCells(t, m.shard[i].cells)
			}
		}
	}
	now = now.Add(time.Hour)
	for i := range m.shard {
		m.shard[i].sweepNow(m)
		checkCells(t, m.shard[i].cells)
	}
	if m.Len() != 0 {
		t.Errorf("%d counters are left", m.Len())
	}
}

// memory returns the bytes of the heap, and those of them that a collection has
// to look through.
func memory() (held, scanned int) {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/scan/heap:bytes"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64()), int(sample[1].Value.Uint64())
}

func TestManyCountersAreSmallNotLookedThroughAndGiveTheirMemoryBack(t *testing.T) {
	const n = 50_000
	now := time.UnixMicro(1e15)
	m := NewMemory(func() time.Time { return now })
	limits := []Limit{{Kind: Rate, Max: 5, Period: time.Second}, {Kind: Quota, Max: 5, Period: time.Minute}}
	counts := make([]Count, 2)
	heldBefore, scannedBefore := memory()
	take := func(prefix string, n int) {
		for i := range n {
			limits[0].Key, limits[1].Key = fmt.Sprintf("rate-%s%064x", prefix, i), fmt.Sprintf("quota-%s%064x", prefix, i)
			if refused, err := m.Take(t.Context(), limits, 1, counts); refused >= 0 || err != nil {
				t.Fatal(refused, err)
			}
		}
	}
	take("", n)
	held, scanned := memory()
	held, scanned = held-heldBefore, scanned-scannedBefore
	t.Logf("%d bytes for each counter, %d of them looked through", held/2/n, scanned/2/n)
	if held/2/n > 260 || scanned/2/n > 10 {
		t.Errorf("at most 10 of 260 bytes wanted")
	}
	now = now.Add(time.Hour)
	take("later", n/50) // sweeps what is over
	for i := range m.shard {
		m.shard[i].sweepNow(m)
	}
	if left, _ := memory(); left-heldBefore > held/5 {
		t.Errorf("%d of %d bytes are held for a fiftieth of the counters", left-heldBefore, held)
	}
	runtime.KeepAlive(m)
}

// A counter that a sweep has move, in the very call that set off the sweep, goes
// on from what it had counted, for those who look it up and from seats.
func TestCountersThatMoveGoOn(t *testing.T) {
	now := time.UnixMicro(1e15)
	m := NewMemory(func() time.Time { return now })
	home := m.shardOf(m.sumOf("a"))
	var keys []string
	for i := 0; len(keys) < 400; i++ {
		if key := fmt.Sprint("k", i); m.shardOf(m.sumOf(key)) == home {
			keys = append(keys, key)
		}
	}
	passing := func(keys []string) {
		for _, key := range keys {
			sit(Limit{Key: key, Kind: Quota, Max: 9, Period: time.Millisecond}).take(t, m, 1)
		}
	}
	passing(keys[1:100])
	lasting := sit(Limit{Key: keys[0], Kind: Quota, Max: 1000, Period: time.Hour}, Limit{Key: "a", Kind: Rate, Max: 2, Period: time.Hour})
	lasting.take(t, m, 1)
	was := lasting.seats[0].cell.Load()
	passing(keys[100:200])
	now = now.Add(time.Second)
	lasting.limits[1] = Limit{Key: keys[399], Kind: Quota, Max: 9, Period: time.Hour}
	lasting.seats[1] = Seat{}
	home.sweepAt = 0
	lasting.take(t, m, 1) // opens one, and so sweeps
	if was == lasting.seats[0].cell.Load() || !was.gone {
		t.Fatal("nothing has moved: the test shows nothing")
	}
	if lasting.counts[0].Remaining != 998 {
		t.Errorf("%d left of 1000 after two calls", lasting.counts[0].Remaining)
	}
	if byKey := sit(lasting.limits[0]); byKey.take(t, m, 1) >= 0 || byKey.counts[0].Remaining != 997 {
		t.Errorf("%d left of 1000 after three calls", byKey.counts[0].Remaining)
	}
	checkCells(t, home.cells)
}
