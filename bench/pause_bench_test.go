package bench

import (
	"flag"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegate/sluice/loadtest/load"
)

// pauseShare makes BenchmarkPause smaller, for a quick look.
var pauseShare = flag.Int("pause-share", 1, "BenchmarkPause loads one in so many of its APIs and sessions")

// BenchmarkPause asks a gateway with next to nothing loaded and one with 100,000
// APIs and a million sessions, 2,000 times a second, while garbage is not
// collected, every second, and over and over. Of itself a gateway of that size
// does so every few minutes. What counts is the difference between the gateways;
// on a busy machine all of it is noise.
func BenchmarkPause(b *testing.B) {
	for _, size := range []struct{ apis, keys int }{{1, 1}, {100_000 / *pauseShare, 1_000_000 / *pauseShare}} {
		b.Run(fmt.Sprintf("APIs=%d,sessions=%d", size.apis, size.keys), func(b *testing.B) {
			w := newWorld(b, settings{cache: 2 * size.keys})
			w.addPlain(size.apis, origin(b))
			shop(w)
			sent := keyed(w, size.keys, "both")
			c, want := w.client(), &load.Want{Status: 200}
			sent.round(c, want)
			live, scanned, spent := heap(), scannable(), collection(b)
			for _, collecting := range []collecting{{"never", -1}, {"every second", time.Second}, {"without a break", 0}} {
				b.Run("collecting="+collecting.name, func(b *testing.B) {
					for range b.N {
						tail(b, c, sent, want, collecting.every)
					}
					b.ReportMetric(float64(live>>20), "MiB")
					b.ReportMetric(float64(scanned>>20), "scan-MiB")
					b.ReportMetric(float64(spent.Milliseconds()), "collection-cpu-ms")
				})
			}
			runtime.KeepAlive(w)
		})
	}
}

// collecting says how often garbage is collected.
type collecting struct {
	name  string
	every time.Duration // negative: never
}

// tail reports how long requests took that came at a steady pace, from when they
// were due.
func tail(b *testing.B, c *client, sent *queue, want *load.Want, collecting time.Duration) {
	const requests, every = 20_000, 500 * time.Microsecond
	stop, stopped := make(chan struct{}), make(chan struct{})
	go collect(collecting, stop, stopped)
	before := pauses()
	took := make([]time.Duration, requests)
	began := time.Now()
	for i := range took {
		due := began.Add(time.Duration(i) * every)
		idle(due)
		c.round(sent.at(i*stride%sent.len()), want)
		took[i] = time.Since(due)
	}
	close(stop)
	<-stopped
	slices.Sort(took)
	for _, q := range []float64{0.5, 0.99, 0.999} {
		b.ReportMetric(float64(took[int(q*requests)].Microseconds()), fmt.Sprintf("p%v-us", 100*q))
	}
	b.ReportMetric(float64(took[requests-1].Microseconds()), "max-us")
	b.ReportMetric(float64(longestPause(before, pauses()).Microseconds()), "stw-us")
	b.ReportMetric(0, "ns/op")
}

// idle waits in the kernel, as a client in another process does: a timer of this
// one would wait for up to 10 ms behind a worker of the collector that runs while
// nothing else does, where a request that comes over the network does not.
func idle(until time.Time) {
	if wait := time.Until(until); wait > 0 {
		pause := syscall.NsecToTimespec(wait.Nanoseconds())
		_ = syscall.Nanosleep(&pause, nil) // a signal that ends it early makes a request early
	}
}

// collect collects garbage until stop is closed, and then closes stopped.
func collect(every time.Duration, stop <-chan struct{}, stopped chan<- struct{}) {
	defer close(stopped)
	if every < 0 {
		<-stop
		return
	}
	for {
		select {
		case <-stop:
			return
		case <-time.After(every):
			runtime.GC()
		}
	}
}

// collection returns what collecting garbage costs that nobody has made, in CPU
// time.
func collection(b *testing.B) time.Duration {
	const times = 5
	before := cpu(b)
	for range times {
		runtime.GC()
	}
	return (cpu(b) - before) / times
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
