package bench

import (
	"flag"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"github.com/sluicegate/sluice/loadtest/load"
)

// pauseShare makes BenchmarkPause smaller, for a quick look.
var pauseShare = flag.Int("pause-share", 1, "BenchmarkPause loads one in so many of its APIs and sessions")

// BenchmarkPause asks a gateway with next to nothing loaded and one with 100,000
// APIs and a million sessions, 2,000 times a second, while garbage is collected
// over and over and while it is not. What counts is the difference between the
// gateways; on a busy machine all of it is noise.
func BenchmarkPause(b *testing.B) {
	for _, size := range []struct{ apis, keys int }{{1, 1}, {100_000 / *pauseShare, 1_000_000 / *pauseShare}} {
		b.Run(fmt.Sprintf("APIs=%d,sessions=%d", size.apis, size.keys), func(b *testing.B) {
			w := newWorld(b, settings{cache: 2 * size.keys})
			w.addPlain(size.apis, origin(b))
			shop(w)
			sent := keyed(w, size.keys, "both")
			c, want := w.client(), &load.Want{Status: 200}
			sent.round(c, want)
			live, scanned := heap(), scannable()
			for _, collecting := range []bool{false, true} {
				b.Run(fmt.Sprintf("collecting=%v", collecting), func(b *testing.B) {
					for range b.N {
						tail(b, c, sent, want, collecting)
					}
					b.ReportMetric(float64(live>>20), "MiB")
					b.ReportMetric(float64(scanned>>20), "scan-MiB")
				})
			}
			runtime.KeepAlive(w)
		})
	}
}

// tail reports how long requests took that came at a steady pace, from when they
// were due.
func tail(b *testing.B, c *client, sent *queue, want *load.Want, collecting bool) {
	const requests, every = 20_000, 500 * time.Microsecond
	stop, stopped := make(chan struct{}), make(chan int)
	go collect(collecting, stop, stopped)
	before, spent := pauses(), cpu(b)
	took := make([]time.Duration, requests)
	began := time.Now()
	for i := range took {
		due := began.Add(time.Duration(i) * every)
		time.Sleep(time.Until(due))
		c.round(sent.at(i*stride%sent.len()), want)
		took[i] = time.Since(due)
	}
	close(stop)
	cycles := <-stopped
	slices.Sort(took)
	for _, q := range []float64{0.5, 0.99, 0.999} {
		b.ReportMetric(float64(took[int(q*requests)].Microseconds()), fmt.Sprintf("p%v-us", 100*q))
	}
	b.ReportMetric(float64(took[requests-1].Microseconds()), "max-us")
	b.ReportMetric(float64(longestPause(before, pauses()).Microseconds()), "stw-us")
	if cycles > 0 {
		b.ReportMetric(float64((cpu(b)-spent).Milliseconds())/float64(cycles), "cpu-ms/cycle")
	}
	b.ReportMetric(0, "ns/op")
}

// collect collects garbage until stop is closed, if it is to, and then sends how
// often it did.
func collect(it bool, stop <-chan struct{}, stopped chan<- int) {
	if !it {
		<-stop
		stopped <- 0
		return
	}
	for n := 0; ; n++ {
		select {
		case <-stop:
			stopped <- n
			return
		default:
			runtime.GC()
		}
	}
}

// scannable returns how much of the heap a collection has to look through for
// pointers, in bytes.
func scannable() uint64 {
	sample := []metrics.Sample{{Name: "/gc/scan/heap:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// pauses returns how often everything stood still for the collector, by length.
func pauses() *metrics.Float64Histogram {
	sample := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(sample)
	h := *sample[0].Value.Float64Histogram()
	h.Counts = slices.Clone(h.Counts)
	return &h
}

func longestPause(before, after *metrics.Float64Histogram) time.Duration {
	for i, n := range slices.Backward(after.Counts) {
		if bound := after.Buckets[i+1]; n > before.Counts[i] && !math.IsInf(bound, 0) {
			return time.Duration(bound * float64(time.Second))
		}
	}
	return 0
}
