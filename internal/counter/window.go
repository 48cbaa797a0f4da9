package counter

// A rate remembers when it admitted its calls in at most windowGroups groups,
// each dated by its last call. Every call is therefore held at least until one
// period after itself, so no window ever holds more than the rate; and at most
// one group's calls are held longer than they must, so a rate up to
// windowGroups is exact and a larger one too strict by less than one group.
// script.lua keeps the same groups in the store; a test compares the two step
// by step.
const windowGroups = 32

type group struct {
	last  int64 // unix microseconds of its last call
	calls int64
}

type window struct {
	total  int64 // calls held, the sum over groups
	groups []group
}

// groupSize is how many calls share a group under a rate of most.
func groupSize(most int64) int64 {
	return max((min(most, MaxRate)+windowGroups-1)/windowGroups, 1)
}

// age forgets the groups that are one period old. When the clock stepped back it
// first moves all groups back with it, keeping their distances: nobody is then
// held longer than one period after the step.
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
	if gone > 0 {
		w.groups = append(w.groups[:0], w.groups[gone:]...)
	}
}

// add counts calls, filling the newest group first.
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

// frees is when the oldest group leaves, in unix microseconds; 0 when empty.
func (w *window) frees(period int64) int64 {
	if len(w.groups) == 0 {
		return 0
	}
	return w.groups[0].last + period
}
