package counter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

func TestACellTakesOneCacheLine(t *testing.T) {
	if size := unsafe.Sizeof(cell{}); size != 64 {
		t.Errorf("a cell takes %d bytes", size)
	}
}

// A slotted uses one Memory as a grant does.
type slotted struct {
	limits []Limit
	slots  []Slot
	counts []Count
}

func withSlots(limits ...Limit) *slotted {
	return &slotted{limits: limits, slots: make([]Slot, len(limits)), counts: make([]Count, len(limits))}
}

func (s *slotted) take(t *testing.T, m *Memory, calls int) int {
	t.Helper()
	refused, err := m.TakeSlots(s.limits, s.slots, calls, s.counts)
	if err != nil {
		t.Fatal(err)
	}
	return refused
}

// Whatever happens to the counters, a Memory that is used with slots and one that
// is used without count the same.
func TestSlotsCountAsKeysDo(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 2))
		var clock atomic.Int64
		clock.Store(1e15)
		now := func() time.Time { return time.UnixMicro(clock.Load()) }
		plain, slots := NewMemory(now), NewMemory(now)
		var grants []*slotted
		for i := range 200 { // several to a shard, so that sweeps meet what is in use
			quota := Limit{Key: fmt.Sprint("q", i/2), Kind: Quota, Max: 5 + int64(i%2), Period: 50 * time.Millisecond}
			rate := Limit{Key: fmt.Sprint("r", i), Kind: Rate, Max: 1 + int64(i%40), Period: 20 * time.Millisecond}
			grants = append(grants, withSlots(rate, quota))
		}
		want := make([]Count, 2)
		for step := range 1500 {
			clock.Add(r.Int64N(3000))
			g := grants[r.IntN(len(grants))]
			if r.IntN(10) == 0 {
				for _, m := range []*Memory{plain, slots} {
					_ = m.Reset(t.Context(), g.limits[step%2].Key)
				}
			}
			if r.IntN(20) == 0 { // others come and go, and have shards swept
				other := []Limit{{Key: fmt.Sprint("x", step), Kind: Quota, Max: 9, Period: time.Millisecond}}
				for _, m := range []*Memory{plain, slots} {
					for i := range 300 {
						other[0].Key = fmt.Sprint("x", step, ".", i)
						_, _ = m.Take(t.Context(), other, 1, want)
					}
				}
			}
			calls := 1 + r.IntN(3)
			refused, err := plain.Take(t.Context(), g.limits, calls, want)
			if got := g.take(t, slots, calls); err != nil || got != refused || g.counts[0] != want[0] || g.counts[1] != want[1] {
				t.Fatalf("seed %d, step %d: got %d %v, want %d %v (%v)", seed, step, got, g.counts, refused, want, err)
			}
		}
	}
}

// Counters that are dropped again and again while many take from them are
// neither lost nor deadlocked: what is admitted between two resets never exceeds
// the maximum.
func TestSlotsOfOneKeyAreExactAmongResetsAndSweeps(t *testing.T) {
	m := NewMemory(nil)
	const most = 1000
	quota := Limit{Key: "q", Kind: Quota, Max: most, Period: time.Hour}
	rates := []Limit{{Key: "r1", Kind: Rate, Max: MaxRate, Period: time.Millisecond}, {Key: "r2", Kind: Rate, Max: MaxRate, Period: time.Millisecond}}
	var admitted atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			g := withSlots(rates[i%2], quota)
			if i%4 > 1 { // the other way round
				g = withSlots(quota, rates[i%2])
			}
			for n := range 2000 {
				if refused, err := m.TakeSlots(g.limits, g.slots, 1, g.counts); err == nil && refused < 0 {
					admitted.Add(1)
				}
				if n%16 == 0 {
					_ = m.Reset(context.Background(), rates[i%2].Key)
				}
				m.shardOf("r1").sweepNow(m)
			}
		})
	}
	all.Wait()
	if admitted.Load() != most {
		t.Errorf("%d admitted, want %d", admitted.Load(), most)
	}
}

func (s *shard) sweepNow(m *Memory) {
	s.mu.Lock()
	s.sweep(m.clock().UnixMicro())
	s.mu.Unlock()
}

// A sweep that a call's new counter sets off may drop the call's other one, when
// its period is over; the call is counted there nevertheless.
func TestACallIsCountedThoughItsOwnCounterIsSwept(t *testing.T) {
	now := time.UnixMicro(1e15)
	m := NewMemory(func() time.Time { return now })
	quota := Limit{Key: "old", Kind: Quota, Max: 5, Period: time.Minute}
	counts := make([]Count, 2)
	take := func(limits ...Limit) {
		t.Helper()
		if refused, err := m.Take(t.Context(), limits, 1, counts); refused >= 0 || err != nil {
			t.Fatal(refused, err)
		}
	}
	home := m.shardOf(quota.Key)
	take(quota)
	var beside []Limit
	for i := 0; len(beside) < sweepLeast; i++ {
		if l := (Limit{Key: fmt.Sprint(i), Kind: Quota, Max: 5, Period: time.Hour}); m.shardOf(l.Key) == home {
			beside = append(beside, l)
		}
	}
	for _, l := range beside[1:] {
		take(l)
	}
	now = now.Add(time.Minute)
	take(quota, beside[0])
	take(quota)
	if counts[0].Remaining != 3 {
		t.Errorf("%d left after two calls of five", counts[0].Remaining)
	}
}

// A counter that was dropped and is opened again by its slot is saved again.
func TestACellThatIsOpenedAgainByItsSlotIsSaved(t *testing.T) {
	m := NewMemory(nil)
	for i := range m.shard {
		m.shard[i].save()
	}
	g := withSlots(Limit{Key: "q", Kind: Quota, Max: 5, Period: time.Hour})
	g.take(t, m, 1)
	_ = m.Reset(t.Context(), "q")
	home := m.shardOf("q")
	if _, c, _, err := readRecord(home.takeChanged(nil)); err != nil || c.kind != kindRemoved {
		t.Fatalf("saved %+v: %v", c, err)
	}
	g.take(t, m, 3)
	records := home.takeChanged(nil)
	key, c, _, err := readRecord(records)
	if err != nil || key != "q" || c.used != 3 {
		t.Errorf("saved %q %+v: %v", key, c, err)
	}
}

// Two counters that are used with the same slots share nothing.
func TestASlotOfAnotherMemoryIsLookedUp(t *testing.T) {
	one, two := NewMemory(nil), NewMemory(nil)
	g := withSlots(Limit{Key: "q", Kind: Quota, Max: 5, Period: time.Hour}, Limit{Key: "r", Kind: Rate, Max: 9, Period: time.Hour})
	for calls := range int64(3) {
		for _, m := range []*Memory{one, two} {
			g.take(t, m, 1)
			if g.counts[0].Remaining != 4-calls || g.counts[1].Remaining != 8-calls {
				t.Errorf("call %d: %v", calls, g.counts)
			}
		}
	}
}

func BenchmarkTakeSlots(b *testing.B) {
	for _, keys := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprint("keys=", keys), func(b *testing.B) {
			m := NewMemory(nil)
			grants := make([]*slotted, keys)
			for i := range grants {
				grants[i] = withSlots(Limit{Key: fmt.Sprint("rate-", i), Kind: Rate, Max: 1e6, Period: time.Second},
					Limit{Key: fmt.Sprint("quota-", i), Kind: Quota, Max: 1 << 40, Period: time.Hour})
				if _, err := m.TakeSlots(grants[i].limits, grants[i].slots, 1, grants[i].counts); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				g := grants[i%keys]
				if _, err := m.TakeSlots(g.limits, g.slots, 1, g.counts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
