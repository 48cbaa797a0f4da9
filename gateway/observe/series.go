package observe

import (
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/usage"
)

// series are the numbers of one API. They are plain integers, which cost half the CPU
// and a third of the memory of the metrics library's counters, under one lock, which
// costs less than adding to each of them atomically.
type series struct {
	mu sync.Mutex
	numbers
}

type numbers struct {
	times      times
	requests   [len(methodNames)][len(classNames)]uint64
	rejections []uint64 // by reason
	inGrace    uint64   // with a rotated key in its grace period
}

var (
	methodNames = [...]string{"other", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	classNames  = [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}
	reasonNames = namesOfReasons()
)

func namesOfReasons() []string {
	names := []string{""}
	for _, r := range pipeline.Reasons() {
		names = append(names, r.String())
	}
	return names
}

func newSeries() *series {
	return &series{numbers: numbers{rejections: make([]uint64, len(reasonNames))}}
}

// read returns a consistent copy.
func (s *series) read() numbers {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.numbers
	n.rejections = slices.Clone(n.rejections)
	return n
}

func (s *series) count(o *observed) {
	ex := o.ex
	s.mu.Lock()
	s.requests[o.method][classOf(o.status)]++
	if r := ex.Rejection; r != nil && int(r.Reason) < len(s.rejections) {
		s.rejections[r.Reason]++
	}
	if ex.InGrace {
		s.inGrace++
	}
	s.times.observe(partTotal, o.total)
	s.times.observe(partOwn, o.own)
	if ex.Upstream.Address != "" {
		s.times.observe(partUpstream, ex.Upstream.Duration)
	}
	s.mu.Unlock()
}

// methodOf returns the index of a method in methodNames.
func methodOf(method []byte) int {
	switch string(method) {
	case "GET":
		return 1
	case "HEAD":
		return 2
	case "POST":
		return 3
	case "PUT":
		return 4
	case "PATCH":
		return 5
	case "DELETE":
		return 6
	case "OPTIONS":
		return 7
	}
	return 0
}

// classOf returns the index of a status in classNames.
func classOf(status int) int {
	if class := status / 100; class > 0 && class < len(classNames) {
		return class
	}
	return 0
}

// The durations of a request that are counted.
const (
	partTotal    = iota // from its arrival to its response, whose last byte counts if it is passed on as it comes
	partOwn             // the same without the upstream's part
	partUpstream        // from the beginning of the call upstream to the last byte of the response, or to the failure
	parts
)

// The buckets of a histogram: up to 100 microseconds, then twice that for each further
// one up to 3.2768 seconds; one more holds the rest.
const (
	firstBound = usage.FirstBound
	bounds     = usage.Buckets - 1
)

// times holds a histogram for each part of a request. Buckets of the same size lie side
// by side, as the parts of a request are often about equal.
type times struct {
	sums    [parts]time.Duration
	buckets [bounds + 1][parts]uint64
}

// observe counts d, which is not negative.
func (t *times) observe(part int, d time.Duration) {
	bucket := 0
	if d > firstBound {
		bucket = min(bits.Len64(uint64((d-1)/firstBound)), bounds)
	}
	t.buckets[bucket][part]++
	t.sums[part] += d
}

// read returns a histogram: the number of durations, their sum, and for each bound in
// seconds the number of durations up to it.
func (t *times) read(part int) (count uint64, seconds float64, cumulative map[float64]uint64) {
	cumulative = make(map[float64]uint64, bounds)
	bound := firstBound
	for i := range bounds {
		count += t.buckets[i][part]
		cumulative[bound.Seconds()] = count
		bound *= 2
	}
	return count + t.buckets[bounds][part], t.sums[part].Seconds(), cumulative
}
