package counter

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluicegate/sluice/internal/counter/rings"
)

// A window is a rate's groups as they are meant, written down for its plainness:
// cells and the script are compared with it.
type window struct {
	total  int64 // calls held, the sum over groups
	groups []rings.Group
}

func (w *window) age(now, period int64) {
	if len(w.groups) == 0 {
		return
	}
	if late := w.groups[len(w.groups)-1].Last - now; late > 0 {
		for i := range w.groups {
			w.groups[i].Last -= late
		}
	}
	gone := 0
	for gone < len(w.groups) && w.groups[gone].Last+period <= now {
		w.total -= w.groups[gone].Calls
		gone++
	}
	w.groups = slices.Delete(w.groups, 0, gone)
}

func (w *window) add(now, calls, size int64) {
	w.total += calls
	if n := len(w.groups); n > 0 {
		if room := min(calls, size-w.groups[n-1].Calls); room > 0 {
			w.groups[n-1].Last = now
			w.groups[n-1].Calls += room
			calls -= room
		}
	}
	for calls > 0 {
		part := min(calls, size)
		w.groups = append(w.groups, rings.Group{Last: now, Calls: part})
		calls -= part
	}
}

func (w *window) frees(period int64) int64 {
	if len(w.groups) == 0 {
		return 0
	}
	return w.groups[0].Last + period
}

// all returns the groups of a rate's cell, oldest first.
func (c *cell) all(r *rings.Rings) []rings.Group {
	var all []rings.Group
	for i := range r.Of(c.older).Len() {
		all = append(all, *r.Of(c.older).At(i))
	}
	if c.newest.Calls > 0 {
		all = append(all, c.newest)
	}
	return all
}

// Whatever comes, with maxima and periods that change and a clock that steps, a
// cell holds the groups that a window holds.
func TestCellsHoldTheGroupsOfTheirWindow(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var w window
		var rs rings.Rings
		c := cell{kind: Rate}
		now, most, period := int64(1e15), 1+r.Int64N(100), 1+r.Int64N(1000)
		for step := range 500 {
			switch r.IntN(40) {
			case 0:
				most = 1 + r.Int64N(1000)
			case 1:
				period = 1 + r.Int64N(2000)
			case 2:
				now -= r.Int64N(5000)
			default:
				now += r.Int64N(period/4 + 2)
			}
			c.age(&rs, now, period)
			w.age(now, period)
			if calls := 1 + r.Int64N(5); w.total <= most-calls {
				c.append(&rs, rings.Group{Last: now, Calls: calls}, groupSize(most))
				w.add(now, calls, groupSize(most))
			}
			if got := c.all(&rs); !slices.Equal(got, w.groups) || c.used != w.total || c.frees(period) != w.frees(period) {
				t.Fatalf("seed %d, step %d: got %v with %d, freed at %d; want %v with %d, freed at %d",
					seed, step, got, c.used, c.frees(period), w.groups, w.total, w.frees(period))
			}
		}
	}
}
