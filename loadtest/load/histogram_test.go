package load

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestHistogramTellsQuantilesAsASortedListDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var h, second Histogram
	var all []time.Duration
	for i := range 20000 {
		d := time.Duration(random.ExpFloat64() * float64(time.Millisecond))
		all = append(all, d)
		if i%2 == 0 {
			h.Record(d)
		} else {
			second.Record(d)
		}
	}
	h.Add(&second)
	slices.Sort(all)
	if h.Count() != 20000 || h.Max() != all[len(all)-1] {
		t.Errorf("%d durations up to %v, want 20000 up to %v", h.Count(), h.Max(), all[len(all)-1])
	}
	for _, c := range []struct {
		q    float64
		rank int
	}{{0.5, 9999}, {0.9, 17999}, {0.99, 19799}, {0.999, 19979}, {1, 19999}} {
		got, want := h.Quantile(c.q), all[c.rank]
		if got < want || float64(got) > float64(want)*1.017 {
			t.Errorf("quantile %v is %v, want %v to within 1.6 %%", c.q, got, want)
		}
	}
}

func TestHistogramHoldsWhatIsOutOfItsRange(t *testing.T) {
	var h Histogram
	if h.Quantile(0.99) != 0 || h.Max() != 0 {
		t.Errorf("an empty histogram says %v and %v", h.Quantile(0.99), h.Max())
	}
	h.Record(-time.Second)
	h.Record(100 * time.Hour)
	if got := h.Quantile(0.5); got != 0 {
		t.Errorf("half of them within %v, want none", got)
	}
	if got := h.Max(); got != 100*time.Hour {
		t.Errorf("the longest %v", got)
	}
}

func TestBucketsFollowEachOther(t *testing.T) {
	for i := range buckets - 1 {
		if bucketOf(upper(i)) != i || bucketOf(upper(i)+1) != i+1 {
			t.Fatalf("bucket %d ends with %d, which is counted in %d, and the next in %d", i, upper(i), bucketOf(upper(i)), bucketOf(upper(i)+1))
		}
	}
}
