package garbage

import (
	"context"
	"os"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

func TestACollectionIsDueBeforeTheRuntimeBeginsIt(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		name   string
		heap   heap
		before uint64
		old    time.Duration
		want   bool
	}{
		{"at rest", heap{live: 500 * mb, used: 600 * mb, goal: 1000 * mb}, 600 * mb, time.Minute, false},
		{"soon two minutes old", heap{live: 500 * mb, used: 600 * mb, goal: 1000 * mb}, 600 * mb, age, true},
		{"nearly at its goal", heap{live: 500 * mb, used: 960 * mb, goal: 1000 * mb}, 960 * mb, 0, true},
		{"soon at its goal", heap{live: 500 * mb, used: 700 * mb, goal: 1000 * mb}, 600 * mb, 0, true},
		{"not so soon", heap{live: 500 * mb, used: 700 * mb, goal: 1000 * mb}, 650 * mb, 0, false},
		{"less is used than was", heap{live: 500 * mb, used: 600 * mb, goal: 1000 * mb}, 900 * mb, 0, false},
		{"small", heap{live: 100 * mb, used: 199 * mb, goal: 200 * mb}, 0, time.Hour, false},
		{"not told", heap{}, 0, time.Hour, false},
		{"no goal told", heap{live: 500 * mb, used: 600 * mb}, 600 * mb, 0, false},
	} {
		if got := c.heap.due(c.before, c.old); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestTheHeapIsRead(t *testing.T) {
	read := heapReader()
	before := read()
	runtime.GC()
	after := read()
	if after.collections <= before.collections || after.live == 0 || after.used == 0 || after.goal < after.live {
		t.Errorf("%+v, then %+v", before, after)
	}
}

// There are more processors while memory is collected, and afterwards as many as
// before.
func TestProcessorsAreAsManyAsBefore(t *testing.T) {
	own := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(own) })
	for _, c := range []struct {
		set  string // the variable, which says that somebody chose the number
		have int
		want int
	}{{"1", 1, 1}, {"2", 2, 2}, {"7", 7, 7}, {"", 1, runtime.NumCPU()}} {
		if t.Setenv("GOMAXPROCS", c.set); c.set == "" {
			_ = os.Unsetenv("GOMAXPROCS")
		}
		runtime.GOMAXPROCS(c.have)
		before := heapReader()().collections
		Collect()
		if got := runtime.GOMAXPROCS(0); c.set != "" && got != c.want || got < 1 || got > max(c.want, c.have) {
			t.Errorf("GOMAXPROCS=%q: %d processors after, %d before", c.set, got, c.have)
		}
		if heapReader()().collections == before {
			t.Error("nothing was collected")
		}
	}
}

// begunByRuntime returns how many collections the runtime began by itself.
func begunByRuntime() uint64 {
	sample := []metrics.Sample{{Name: "/gc/cycles/automatic:gc-cycles"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// A heap that grows to its goal is collected by Run before the runtime does.
func TestRunIsFirst(t *testing.T) {
	own := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(own)
	t.Setenv("GOMAXPROCS", "1")
	held := make([][]byte, 0, 64) // what is live
	for range 40 {
		held = append(held, make([]byte, 5<<20))
	}
	runtime.GC()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx) }()
	read, before, byRuntime := heapReader(), heapReader()(), begunByRuntime()
	grow := time.NewTicker(5 * time.Millisecond)
	defer grow.Stop()
	var garbage []byte
	for now := before; now.collections == before.collections; now = read() {
		<-grow.C
		garbage = make([]byte, 512<<10)
	}
	if begunByRuntime() != byRuntime {
		t.Error("the runtime has begun a collection")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(held)
	runtime.KeepAlive(garbage)
}
