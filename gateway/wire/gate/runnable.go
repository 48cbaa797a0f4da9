package gate

import "runtime/metrics"

// runnable returns what tells how many goroutines could run and do not, because
// the processors are busy with others.
func runnable() func() int64 {
	sample := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}
	return func() int64 {
		metrics.Read(sample)
		if sample[0].Value.Kind() != metrics.KindUint64 {
			return 0 // a runtime that does not tell: everybody is let in
		}
		return int64(sample[0].Value.Uint64())
	}
}
