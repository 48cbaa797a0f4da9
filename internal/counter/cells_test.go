package counter

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// Whatever comes and goes, the cells of a shard are found by their keys as in a
// map, those that are gone say so, and none serves another key.
func TestCellsAreFoundAsInAMap(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 6))
		var held cells
		want := make(map[string]int64)                                              // what each key's cell has used
		sum := func(key string) uint64 { return uint64(len(key)) + uint64(key[0]) } // many keys have the same
		known := make(map[*cell]string)
		for step := range 2000 {
			key := fmt.Sprint(r.IntN(80))
			c := held.find(sum(key), key)
			if used, there := want[key]; there != (c != nil) || there && (c.used != used || c.gone) {
				t.Fatalf("seed %d, step %d: key %s: %+v, want %d, %v", seed, step, key, c, used, there)
			}
			switch op := r.IntN(20); {
			case op == 0:
				edge := r.Int64N(1000)
				held.sweep(func(c *cell) bool { return c.used < edge })
				for key, used := range want {
					if used < edge {
						delete(want, key)
					}
				}
			case c == nil:
				want[key] = r.Int64N(1000)
				c = held.add(sum(key), key, cell{kind: Rate, used: want[key]})
				if other, taken := known[c]; taken {
					t.Fatalf("seed %d, step %d: the cell of key %s serves key %s", seed, step, other, key)
				}
				known[c] = key
				if op%2 == 0 {
					c.older = held.rings.take()
					held.rings.of(c.older).push(group{last: want[key], calls: 1})
				}
			case op < 10:
				held.drop(key, c)
				delete(want, key)
				if !c.gone {
					t.Fatal("a cell that was dropped does not say so")
				}
			}
			if held.len() != len(want) {
				t.Fatalf("seed %d, step %d: %d cells, want %d", seed, step, held.len(), len(want))
			}
			checkCells(t, &held)
		}
	}
}

// checkCells holds the cells of a shard against their blocks and rings.
func checkCells(t *testing.T, held *cells) {
	t.Helper()
	live, rung := 0, make(map[uint32]bool)
	for i, b := range held.blocks {
		here := 0
		for _, c := range b.cells {
			if !c.gone {
				here++
			}
			if older := held.rings.of(c.older); !c.gone && older != nil {
				if rung[c.older] || older.n != 1 || older.at(0).last != c.used {
					t.Fatalf("ring %d is not that of its cell", c.older)
				}
				rung[c.older] = true
			}
		}
		if here != b.live {
			t.Fatalf("block %d: %d cells are counted, %d are there", i, b.live, here)
		}
		live += here
	}
	if live != held.len() || len(rung) != len(held.rings.all)-len(held.rings.spare) {
		t.Fatalf("%d cells in blocks, %d by key; %d rings in use of %d, %d to spare", live, held.len(), len(rung), len(held.rings.all), len(held.rings.spare))
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
