package garbage

import (
	"context"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

const mb = 1 << 20

func TestACollectionIsDueWhenTheHeapHasGrown(t *testing.T) {
	for _, c := range []struct {
		name    string
		heap    heap
		before  uint64
		percent int
		want    bool
	}{
		{"at rest", heap{live: 500 * mb, used: 600 * mb}, 600 * mb, 100, false},
		{"twice as large", heap{live: 500 * mb, used: 1000 * mb}, 1000 * mb, 100, true},
		{"soon twice as large", heap{live: 500 * mb, used: 950 * mb}, 900 * mb, 100, true},
		{"not so soon", heap{live: 500 * mb, used: 940 * mb}, 900 * mb, 100, false},
		{"half as much again", heap{live: 500 * mb, used: 751 * mb}, 751 * mb, 50, true},
		{"less than it may", heap{live: 500 * mb, used: 1400 * mb}, 1400 * mb, 200, false},
		{"less is used than was", heap{live: 500 * mb, used: 600 * mb}, 900 * mb, 100, false},
	} {
		if got := c.heap.due(c.before, c.percent); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestTheHeapIsRead(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(70))
	read := heapReader()
	before := read()
	runtime.GC()
	after := read()
	if after.collections <= before.collections || after.live == 0 || after.used == 0 || after.percent != 70 {
		t.Errorf("%+v, then %+v", before, after)
	}
	debug.SetGCPercent(never)
	if got := read().percent; got != never {
		t.Errorf("switched off, it may grow by %d %%", got)
	}
}

// restoring has the test leave settings of the process as they were.
func restoring(t *testing.T, processors int) {
	t.Helper()
	percent, own := debug.SetGCPercent(100), runtime.GOMAXPROCS(processors)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(own)
		debug.SetGCPercent(percent)
	})
}

func TestWhoeverDecidesWhenMemoryIsCollected(t *testing.T) {
	restoring(t, 1)
	var now heap
	c := &collector{read: func() heap { return now }, percent: 100, set: 100, last: heap{used: 200 * mb}}
	told, begin := heapReader(), time.Now()
	for _, step := range []struct {
		name       string
		live       uint64
		at         time.Duration
		processors int
		want       int // percent
	}{
		{"just collected", 200 * mb, 0, 1, 300},
		{"not quite two minutes old", 200 * mb, young - 1, 3, 300},
		{"nearly two minutes old", 200 * mb, young, 1, never},
		{"old", 200 * mb, time.Hour, 1, never},
		{"processors enough", 200 * mb, time.Hour, enough, 100},
		{"small", 100 * mb, time.Hour, 1, 100},
		{"old again", 200 * mb, time.Hour, 1, never},
	} {
		runtime.GOMAXPROCS(step.processors)
		now = heap{collections: 1, live: step.live, used: step.live}
		c.look(t.Context(), begin.Add(step.at))
		if got := told().percent; got != step.want {
			t.Errorf("%s: the runtime lets it grow by %d %%, want %d", step.name, got, step.want)
		}
	}
	now.collections = 2 // for the limit on memory
	if c.look(t.Context(), begin.Add(2*time.Hour)); told().percent != 300 {
		t.Error("a collection that the runtime began is not seen")
	}
}

// Where the runtime would begin a collection of itself it is allowed to, as soon as
// there is as much garbage as it was told; before, there may be twice as much.
func TestHowACollectionIsBegun(t *testing.T) {
	restoring(t, 1)
	for _, step := range []struct {
		name  string
		since time.Duration // the last one; -1: none since the start, just now
		used  uint64
		want  string
	}{
		{"little", time.Hour, 399 * mb, "not"},
		{"enough", time.Hour, 400 * mb, "allowed"},
		{"enough, just old", old, 400 * mb, "allowed"},
		{"enough, but young", old - 1, 400 * mb, "not"},
		{"nearly twice as much, but young", 0, 599 * mb, "not"},
		{"twice as much, but young", 0, 600 * mb, "forced"},
		{"enough, soon after the start", -1, 400 * mb, "forced"},
		{"little, soon after the start", -1, 399 * mb, "not"},
	} {
		got := "not"
		at, now := time.Now(), heap{live: 200 * mb, used: step.used}
		c := &collector{read: func() heap { return now }, percent: 100, set: 100, last: now, since: at.Add(-max(step.since, 0))}
		if step.since < 0 {
			c.began = at
		}
		c.collect = func(_ context.Context, allow bool) {
			if got = "forced"; allow {
				got = "allowed"
			}
		}
		if c.look(t.Context(), at); got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
		if got != "not" && time.Since(c.since) > time.Minute {
			t.Errorf("%s: the last collection is still %v old", step.name, time.Since(c.since))
		}
	}
}

// secondsIdle returns how long processors that had nothing else to do have collected.
func secondsIdle() float64 {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}}
	metrics.Read(sample)
	return sample[0].Value.Float64()
}

// What the runtime is allowed to begin, it does at once, and on the collector's
// processor only. This takes two minutes, for the last collection to be old.
func TestTheRuntimeBeginsWhatItMay(t *testing.T) {
	if testing.Short() {
		t.Skip("takes two minutes")
	}
	restoring(t, 1)
	t.Setenv("GOMAXPROCS", "1")
	held := make([]*[16]*int, 1<<19) // for a collection to take some time
	for i := range held {
		held[i] = new([16]*int)
	}
	runtime.GC()
	debug.SetGCPercent(never)
	c := &collector{read: heapReader(), percent: 100, set: never}
	<-time.After(old + time.Second)
	garbage := make([]byte, 8*mb)
	begun, byRuntime, idle := c.read(), begunByRuntime(), secondsIdle()
	runtime.KeepAlive(garbage) // until here, and no longer
	c.collectAll(t.Context(), true)
	after := c.read()
	if after.collections != begun.collections+1 || begunByRuntime() != byRuntime+1 {
		t.Errorf("%d collections, %d of them by the runtime", after.collections-begun.collections, begunByRuntime()-byRuntime)
	}
	if after.freed-begun.freed < 8*mb {
		t.Errorf("%d bytes were given back", after.freed-begun.freed)
	}
	if took := secondsIdle() - idle; took > 0 {
		t.Errorf("processors collected for %v s that had nothing else to do", took)
	}
	runtime.KeepAlive(held)
}

// Waiting for the runtime ends with what it is for.
func TestWaitingForTheRuntimeEnds(t *testing.T) {
	restoring(t, 1)
	runtime.GC() // so that it does not begin
	c := &collector{read: heapReader(), percent: 100, set: 100}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	c.collectAll(ctx, true)
}

// There are more processors while memory is collected, and afterwards as many as
// before.
func TestProcessorsAreAsManyAsBefore(t *testing.T) {
	restoring(t, 1)
	for _, c := range []struct {
		set  string // the variable, which says that somebody chose the number
		have int
		want int
	}{{"1", 1, 1}, {"2", 2, 2}, {"7", 7, 7}, {"", 1, runtime.NumCPU()}} {
		if t.Setenv("GOMAXPROCS", c.set); c.set == "" {
			if err := os.Unsetenv("GOMAXPROCS"); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GOMAXPROCS(c.have)
		read := heapReader()
		before := read().collections
		(&collector{}).collectAll(t.Context(), false)
		if got := runtime.GOMAXPROCS(0); c.set != "" && got != c.want || got < 1 || got > max(c.want, c.have) {
			t.Errorf("GOMAXPROCS=%q: %d processors after, %d before", c.set, got, c.have)
		}
		if read().collections == before {
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

// A heap that grows is collected by Run when it is twice what was in use, and the
// runtime has nothing left to do.
func TestRunIsFirst(t *testing.T) {
	restoring(t, 1)
	t.Setenv("GOMAXPROCS", "1")
	held := make([][]byte, 0, 64) // what is live
	for range 40 {
		held = append(held, make([]byte, 5*mb))
	}
	runtime.GC()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, slog.New(slog.DiscardHandler)) }()
	read, before, byRuntime := heapReader(), heapReader()(), begunByRuntime()
	for read().percent == 100 { // until Run has looked
		runtime.Gosched()
	}
	grow := time.NewTicker(5 * time.Millisecond)
	defer grow.Stop()
	var garbage []byte
	most := uint64(0)
	for now := before; now.collections == before.collections; now = read() {
		<-grow.C
		garbage = make([]byte, mb/2)
		most = max(most, now.used)
	}
	if begunByRuntime() != byRuntime {
		t.Error("the runtime has begun a collection")
	}
	if least := before.live + before.live*3/4; most < least {
		t.Errorf("collected at %d MiB, of which %d were in use", most/mb, before.live/mb)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := read().percent; got != 100 {
		t.Errorf("afterwards the heap may grow by %d %%", got)
	}
	runtime.KeepAlive(held)
	runtime.KeepAlive(garbage)
}

func TestCollectingThatIsSwitchedOffStaysOff(t *testing.T) {
	restoring(t, 1)
	debug.SetGCPercent(never)
	if err := Run(context.Background(), slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	if got := debug.SetGCPercent(math.MaxInt32); got != never {
		t.Errorf("the heap may grow by %d %%", got)
	}
}
