package overload

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkHandle measures what the stage adds to a call.
func BenchmarkHandle(b *testing.B) {
	b.Run("calm", func(b *testing.B) {
		g, s := greedy(b)
		g.phase.Store(uint32(calm))
		ex := g.exchange("key", 0)
		b.ReportAllocs()
		for b.Loop() {
			s.Handle(ex)
		}
	})
	for _, c := range []struct {
		name  string
		every time.Duration // between two calls of a key, which passes ten times a second
	}{{"passes", 100 * time.Millisecond}, {"shed", time.Nanosecond}} {
		b.Run(c.name, func(b *testing.B) {
			g, s := greedy(b)
			ex := g.exchange("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 0)
			b.ReportAllocs()
			for b.Loop() {
				ex.Started = ex.Started.Add(c.every)
				s.Handle(ex)
			}
		})
	}
}

// BenchmarkTurn measures what a window costs while calls are shed.
func BenchmarkTurn(b *testing.B) {
	for _, apis := range []int{1, 64, 10_000} {
		b.Run(fmt.Sprint(apis, "APIs"), func(b *testing.B) {
			var callers []*caller
			for i := range apis {
				callers = append(callers, &caller{api: fmt.Sprint("api", i), key: "a", rate: 2 * most / float64(apis)})
			}
			s := simulate(callers...)
			for _, c := range callers {
				s.stages[c.api].(*Stage).own()
			}
			now := s.clock()
			r := uint32(1)
			b.ResetTimer()
			for b.Loop() {
				for _, d := range s.guard.called() {
					r = r*1664525 + 1013904223
					d.seen.Store(10 + r>>28)
					if t := d.keys.Load(); t != nil {
						for i := range t.seen {
							t.seen[i].Store(r >> (i & 31))
						}
					}
				}
				now = now.Add(window)
				s.keeper.endWindow(now, window, 30*time.Millisecond)
			}
		})
	}
}
