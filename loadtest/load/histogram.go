package load

import (
	"math"
	"math/bits"
	"time"
)

// A Histogram counts durations from a nanosecond to an hour with an error of at most 1.6
// %. Its zero value is empty.
type Histogram struct {
	counts [buckets]uint64
	n      uint64
	max    int64
}

const (
	fine    = 6  // a power of two is cut into 1<<fine buckets
	octaves = 42 // 1<<42 ns are more than an hour
	buckets = (octaves - fine + 1) << fine
)

// Record counts one duration. What is negative counts as none, and what is
// beyond the last bucket in it.
func (h *Histogram) Record(d time.Duration) {
	v := max(int64(d), 0)
	h.counts[bucketOf(v)]++
	h.n++
	h.max = max(h.max, v)
}

// Add counts all that another histogram has counted.
func (h *Histogram) Add(other *Histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.n += other.n
	h.max = max(h.max, other.max)
}

// Count returns how many durations were recorded.
func (h *Histogram) Count() uint64 { return h.n }

// Max returns the longest duration, exactly; 0 of none.
func (h *Histogram) Max() time.Duration { return time.Duration(h.max) }

// Quantile returns the duration that the share q of all do not exceed, 0 < q <= 1;
// 0 of none.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(math.Ceil(q * float64(h.n)))
	seen := uint64(0)
	for i, n := range h.counts {
		seen += n
		if seen >= rank && n > 0 {
			return time.Duration(min(upper(i), h.max))
		}
	}
	return 0
}

func bucketOf(v int64) int {
	shift := max(bits.Len64(uint64(v))-fine-1, 0)
	return min(shift<<fine+int(v>>shift), buckets-1)
}

// upper is the greatest value that a bucket counts.
func upper(i int) int64 {
	shift := max(i>>fine-1, 0)
	return int64(i-shift<<fine+1)<<shift - 1
}
