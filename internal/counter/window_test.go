package counter

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A window is a rate's groups as they are meant, written down for its plainness:
// cells and the script are compared with it.
type window struct {
	total  int64 // calls held, the sum over groups
	groups []group
}

func (w *window) age(now, period int64) {
	if len(w.groups) == 0 {
		return
	}
	if late := w.groups[len(w.groups)-1].last - now; late > 0 {
		for i := range w.groups {
			w.groups[i].last -= late
		}
	}
	gone := 0
	for gone < len(w.groups) && w.groups[gone].last+period <= now {
		w.total -= w.groups[gone].calls
		gone++
	}
	w.groups = slices.Delete(w.groups, 0, gone)
}

func (w *window) add(now, calls, size int64) {
	w.total += calls
	if n := len(w.groups); n > 0 {
		if room := min(calls, size-w.groups[n-1].calls); room > 0 {
			w.groups[n-1].last = now
			w.groups[n-1].calls += room
			calls -= room
		}
	}
	for calls > 0 {
		part := min(calls, size)
		w.groups = append(w.groups, group{last: now, calls: part})
		calls -= part
	}
}

func (w *window) frees(period int64) int64 {
	if len(w.groups) == 0 {
		return 0
	}
	return w.groups[0].last + period
}

// all returns the groups of a rate's cell, oldest first.
func (c *cell) all() []group {
	var all []group
	for i := range c.older.len() {
		all = append(all, *c.older.at(i))
	}
	if c.newest.calls > 0 {
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
			c.age(now, period)
			w.age(now, period)
			if calls := 1 + r.Int64N(5); w.total <= most-calls {
				c.append(group{last: now, calls: calls}, groupSize(most))
				w.add(now, calls, groupSize(most))
			}
			if got := c.all(); !slices.Equal(got, w.groups) || c.used != w.total || c.frees(period) != w.frees(period) {
				t.Fatalf("seed %d, step %d: got %v with %d, freed at %d; want %v with %d, freed at %d",
					seed, step, got, c.used, c.frees(period), w.groups, w.total, w.frees(period))
			}
		}
	}
}
