package observe

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// series are the numbers of one API: counters of our own, because they cost half
// of what the metrics library's do and take a third of the room.
type series struct {
	requests   [len(methodNames)][len(classNames)]atomic.Uint64
	rejections []atomic.Uint64 // by reason
	total      histogram
	own        histogram
	upstream   histogram
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
	return &series{rejections: make([]atomic.Uint64, len(reasonNames))}
}

func (s *series) count(o *observed) {
	ex := o.ex
	s.requests[methodOf(ex.Call.Method)][classOf(o.status)].Add(1)
	if r := ex.Rejection; r != nil && int(r.Reason) < len(s.rejections) {
		s.rejections[r.Reason].Add(1)
	}
	s.total.observe(o.total)
	s.own.observe(o.own)
	if ex.Upstream.Address != "" {
		s.upstream.observe(ex.Upstream.Duration)
	}
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

// The buckets of a histogram: 100 microseconds, and twice that for each after,
// up to 3.2768 seconds; one more holds the rest.
const (
	firstBound = 100 * time.Microsecond
	bounds     = 16
)

// histogram counts durations by size.
type histogram struct {
	buckets [bounds + 1]atomic.Uint64
	sum     atomic.Int64 // nanoseconds
}

// observe counts d, which is not negative.
func (h *histogram) observe(d time.Duration) {
	bucket := 0
	if d > firstBound {
		bucket = min(bits.Len64(uint64((d-1)/firstBound)), bounds)
	}
	h.buckets[bucket].Add(1)
	h.sum.Add(int64(d))
}

// read returns the histogram as a scrape wants it. What is observed meanwhile
// may be missing from the sum; the buckets agree with the count.
func (h *histogram) read() (count uint64, seconds float64, cumulative map[float64]uint64) {
	cumulative = make(map[float64]uint64, bounds)
	seconds = time.Duration(h.sum.Load()).Seconds()
	bound := firstBound
	for i := range bounds {
		count += h.buckets[i].Load()
		cumulative[bound.Seconds()] = count
		bound *= 2
	}
	return count + h.buckets[bounds].Load(), seconds, cumulative
}
