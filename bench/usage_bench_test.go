package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/observe/rollup"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition/usage"
	"github.com/sluicegate/sluice/loadtest/load"
)

// BenchmarkUsage measures what counting calls for the admin adds to governing
// them: each round goes once with it and once without, in turns and with keys that
// neither has just seen, so that both see the same machine. It reports the medians
// of both and how far they are apart, with the processor's caches as the last
// round left them, and as they are after a megabyte of something else.
func BenchmarkUsage(b *testing.B) {
	w := newWorld(b, settings{cache: 20_000})
	shop(w)
	counts := rollup.New()
	with, without := newGovernor(b, w, counts), newGovernor(b, w, nil)
	other := make([]byte, 1<<20)
	for _, keys := range []int{0, 1, 1000, 10_000} {
		all, stages := keyed(w, max(keys, 1), "both"), with.keyed
		if keys == 0 {
			stages = with.open
		}
		read := slices.Clone(all.at(0))
		call, fault := wire.NewCall(read, wireConfig())
		if fault != nil {
			b.Fatal(fault)
		}
		for _, cold := range []bool{false, true} {
			b.Run(fmt.Sprintf("keys=%d/cold=%v", keys, cold), func(b *testing.B) {
				var took [2][]time.Duration
				for n := 0; b.Loop(); n++ {
					for i := range took {
						which := (i + n) % 2
						g := [...]*governor{without, with}[which]
						if cold {
							for at := 0; at < len(other); at += 64 {
								other[at]++
							}
						}
						copy(read, all.at((n*stride+which*all.len()/2)%all.len()))
						began := time.Now()
						g.run(b, call, stages)
						if d := time.Since(began); len(took[which]) < 1<<16 {
							took[which] = append(took[which], d)
						}
					}
				}
				off, on := median(took[0]), median(took[1])
				b.ReportMetric(off, "without-ns")
				b.ReportMetric(on, "with-ns")
				b.ReportMetric(on-off, "added-ns")
			})
		}
	}
}

func median(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2])
}

// BenchmarkUsageOfRequests measures the same on whole requests: in half of the
// blocks of them, each is counted by the one who asks, right after its answer; in
// the others he only looks at the key's seat, which a gateway has at hand. So there
// is one gateway alone: where the memory of two lies makes more of a difference than
// counting. It reports the processor time of a request, the
// client's and the upstream's part with it, as the median of hundreds at a time.
// Counts are taken as often as they are by default.
func BenchmarkUsageOfRequests(b *testing.B) {
	const together = 200
	for _, keys := range []int{1, 1000, 10_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			w := newWorld(b, settings{cache: 2 * keys, uncounted: true})
			shop(w)
			sent, c, want := keyed(w, keys, "both"), w.client(), &load.Want{Status: 200}
			sent.round(c, want)
			beside := newBeside(keys)
			at := 0
			turn := func(counted bool) {
				at = (at + stride) % sent.len()
				c.round(sent.at(at), want)
				beside.answered(at%keys, counted)
			}
			var took [2][]time.Duration
			for b.Loop() {
				for _, which := range rand.Perm(len(took)) { // not in step with what happens every so many requests
					began := cpu(b)
					for range together {
						turn(which == 1)
					}
					took[which] = append(took[which], (cpu(b)-began)/together)
				}
				beside.take()
			}
			off, on := median(took[0]), median(took[1])
			b.ReportMetric(off, "without-cpu-ns")
			b.ReportMetric(on, "with-cpu-ns")
			b.ReportMetric(on-off, "added-ns")
			b.ReportMetric(100*(on-off)/off, "added-%")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// beside counts calls as a gateway does.
type beside struct {
	counts *rollup.Counts
	api    *rollup.API
	keys   []seated
	taken  time.Time
	looked int // at seats
}

// seated is what a gateway has of a key.
type seated struct {
	key  string
	seat rollup.Seat
}

func newBeside(keys int) *beside {
	s := &beside{counts: rollup.New(), api: rollup.NewAPI("shop", "org", noTimes{}), keys: make([]seated, keys), taken: time.Now()}
	for i := range s.keys {
		s.keys[i].key = fmt.Sprintf("%064x", i)
	}
	return s
}

func (s *beside) answered(key int, counted bool) {
	k := &s.keys[key]
	s.looked += len(k.key)
	if counted {
		s.counts.Count(&rollup.Call{
			API: s.api, Key: k.key, Name: k.key[:12], Seat: &k.seat, Status: 200,
			End: time.Now(), Total: time.Millisecond, Upstream: time.Millisecond,
		})
	}
}

func (s *beside) take() {
	if time.Since(s.taken) > 10*time.Second {
		s.counts.Take(func(usage.Row) {}, func(usage.Latency) {})
		s.taken = time.Now()
	}
}

// noTimes is the Meter of an API that took no time.
type noTimes struct{}

// Latencies implements rollup.Meter.
func (noTimes) Latencies() (l usage.Latencies) { return l }

// ReasonName implements rollup.Meter.
func (noTimes) ReasonName(uint8) string { return "" }
