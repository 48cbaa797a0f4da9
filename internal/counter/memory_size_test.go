package counter

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// heap returns the bytes of live objects.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestManyCountersAreSmallAndFreeTheirMemory(t *testing.T) {
	const n = 50_000
	now := time.UnixMicro(1e15)
	m := NewMemory(func() time.Time { return now })
	limits := []Limit{{Kind: Rate, Max: 5, Period: time.Second}, {Kind: Quota, Max: 5, Period: time.Minute}}
	counts := make([]Count, 2)
	before := heap()
	take := func(prefix string, n int) {
		for i := range n {
			limits[0].Key, limits[1].Key = fmt.Sprintf("rate-%s%064x", prefix, i), fmt.Sprintf("quota-%s%064x", prefix, i)
			if refused, err := m.Take(t.Context(), limits, 1, counts); refused >= 0 || err != nil {
				t.Fatal(refused, err)
			}
		}
	}
	take("", n)
	held := heap() - before
	t.Logf("%d bytes per counter", held/2/n)
	if held/2/n > 260 {
		t.Error("want at most 260")
	}
	now = now.Add(time.Hour)
	take("later", n/50) // sweeps expired cells
	for i := range m.shard {
		m.shard[i].sweepNow(m)
	}
	if left := heap() - before; left > held/5 {
		t.Errorf("%d of %d bytes are held for a fiftieth of the counters", left, held)
	}
	runtime.KeepAlive(m)
}
