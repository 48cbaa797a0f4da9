package counter_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/testenv"
)

// Rate and quota of each call in a store on this machine, by callers at once.
func BenchmarkValkeyTake(b *testing.B) {
	store := testenv.Valkey(b)
	for _, callers := range []int{1, 64, 256} {
		for _, keys := range []int{1, 1000} {
			b.Run(fmt.Sprintf("callers=%d/keys=%d", callers, keys), func(b *testing.B) {
				v := openValkey(b, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed})
				s := subject{Counter: v}
				sets := make([][]counter.Limit, keys)
				for i := range sets {
					name := fmt.Sprint("bench", i)
					sets[i] = []counter.Limit{s.rate(name, 1_000_000, time.Second), s.quota(name, 1<<40, time.Hour)}
				}
				b.SetParallelism(max(callers/2, 1)) // times GOMAXPROCS, 2 where this was measured
				var turn atomic.Int64
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				busy := storeCPU(b, store)
				b.RunParallel(func(pb *testing.PB) {
					counts := make([]counter.Count, 2)
					for pb.Next() {
						if _, err := v.Take(b.Context(), sets[int(turn.Add(1))%keys], 1, counts); err != nil {
							b.Error(err)
							return
						}
					}
				})
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N), "mallocs/op")
				b.ReportMetric((storeCPU(b, store)-busy)*1e6/float64(b.N), "store-µs/op")
				b.ReportMetric(float64(v.Stats().Batches.Load())/float64(b.N), "batches/op")
			})
		}
	}
}

// storeCPU is the processor time that the store used, in seconds.
func storeCPU(b *testing.B, s *testenv.Store) (seconds float64) {
	b.Helper()
	for line := range strings.Lines(s.Do("INFO", "cpu")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				b.Fatal(err)
			}
			seconds += n
		}
	}
	return seconds
}
