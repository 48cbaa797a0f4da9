package pace

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// work takes n steps of the given length under a pacer, and returns how long
// that took.
func work(t *testing.T, p *Pacer, n int, step time.Duration) time.Duration {
	began := time.Now()
	p.Begin()
	for range n {
		time.Sleep(step) // which in a bubble is work as good as any
		if err := p.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(began)
}

func TestWorkTakesItsShareOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			share float64
			n     int
			step  time.Duration
			want  time.Duration
		}{
			{0.2, 10_000, 10 * time.Microsecond, 500 * time.Millisecond},
			{0.5, 1000, time.Millisecond, 2 * time.Second},
			{0.2, 10, slice / 20, slice / 2},                        // so little is done at once
			{0.2, 10, time.Second, 10 * (time.Second + longest)},    // rests are bounded
			{0, 100, time.Millisecond, 100 * time.Millisecond},      // no limit
			{1, 100, time.Millisecond, 100 * time.Millisecond},      // likewise
			{0.25, 1000, time.Millisecond, 4000 * time.Millisecond}, // beyond a slice
		} {
			if got := work(t, New(c.share), c.n, c.step); got < c.want*98/100 || got > c.want*102/100 {
				t.Errorf("%d steps of %v at %v took %v, want %v", c.n, c.step, c.share, got, c.want)
			}
		}
	})
}

func TestTimeBeforeTheWorkBeganIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(0.2)
		time.Sleep(time.Hour)
		if got := work(t, p, 1, slice/2); got != slice/2 {
			t.Errorf("took %v", got)
		}
	})
}

func TestRestsEndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		p := New(0.01)
		time.Sleep(slice)
		if err := p.Step(ctx); err == nil || ctx.Err() == nil {
			t.Errorf("went on: %v", err)
		}
		if err := (*Pacer)(nil).Step(ctx); err == nil {
			t.Error("no pacer goes on without a context")
		}
	})
}

func TestEachIsCalledForAllOnce(t *testing.T) {
	for _, p := range []*Pacer{nil, New(0.5), New(1)} {
		var mu sync.Mutex
		calls := make(map[int]int)
		err := Each(t.Context(), p, 1000, func(i int) {
			mu.Lock()
			defer mu.Unlock()
			calls[i]++
		})
		if err != nil || len(calls) != 1000 {
			t.Errorf("%d calls, %v", len(calls), err)
		}
		for i, n := range calls {
			if n != 1 || i < 0 || i >= 1000 {
				t.Errorf("%d was called %d times", i, n)
			}
		}
	}
}
