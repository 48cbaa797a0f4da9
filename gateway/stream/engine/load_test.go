package engine

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// manyStreams are the definitions of n streams whose n scripts are one of 100.
func manyStreams(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"s%d": {"input": {"http_server": {"path": "/in/%d"}}, "output": {"http_server": {"path": "/out/%d"}},
			"pipeline": {"processors": [{"mapping": "root = this\nroot.script = %d"}]}}`, i, i, i, i%100))
	}
	return `{` + strings.Join(all, ", ") + `}`
}

// TestIdleStreamsCostLittle: 10,000 streams without clients, with 100 scripts between them.
func TestIdleStreamsCostLittle(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes memory of its own")
	}
	const apis, each, most = 20, 500, 16 << 10
	e := newEngine(t)
	e.maxStreams = apis * each
	text := manyStreams(each)
	read := func() (heap, stacks uint64) {
		runtime.GC()
		runtime.GC() // what the first one has finalized
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, m.StackInuse
	}
	heap, stacks := read()
	goroutines := runtime.NumGoroutine()
	var came []*pipeline.API
	for i := range apis {
		api := apiOf(t, text)
		api.ID = fmt.Sprint("a", i)
		came = append(came, compiled(t, e, api))
	}
	e.Swap(came, nil)
	heapNow, stacksNow := read()
	per := (int64(heapNow) - int64(heap) + int64(stacksNow) - int64(stacks)) / (apis * each)
	t.Logf("%d bytes of heap and stack for each of %d streams, %d goroutines more", per, apis*each, runtime.NumGoroutine()-goroutines)
	if per > most {
		t.Errorf("%d bytes for each stream, more than %d", per, most)
	}
	if n := runtime.NumGoroutine() - goroutines; n > apis {
		t.Errorf("%d goroutines more", n)
	}
	runtime.KeepAlive(came)
}

// BenchmarkLoad has 10,000 streams enter service, with 100 scripts between them.
func BenchmarkLoad(b *testing.B) {
	text := manyStreams(500)
	var all []*definition.API
	for i := range 20 {
		api := apiOf(b, text)
		api.ID = fmt.Sprint("a", i)
		all = append(all, api)
	}
	began := cpu()
	defer func() { b.ReportMetric((cpu()-began).Seconds()/float64(b.N), "cpu-s/op") }()
	for b.Loop() {
		e := New(Options{MaxStreams: 10_000, MaxBytes: 1 << 20, Log: slog.New(slog.DiscardHandler)})
		for _, api := range all {
			e.Swap([]*pipeline.API{compiled(b, e, api)}, nil)
		}
	}
}

// cpu returns the CPU time of the process so far.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for a wrong pointer only
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
