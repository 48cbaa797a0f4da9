package counter

import "github.com/sluicegate/sluice/internal/counter/rings"

// A rate remembers when it admitted its calls in at most windowGroups groups,
// each dated by its last call. Every call is therefore held at least until one
// period after itself, so no window ever holds more than the rate; and at most
// one group's calls are held longer than they must, so a rate up to
// windowGroups is exact and a larger one too strict by less than one group.
// script.lua keeps the same groups in the store; tests compare both with the
// same model step by step.
const windowGroups = 32

// groupSize is how many calls share a group under a rate of most.
func groupSize(most int64) int64 {
	return max((min(most, MaxRate)+windowGroups-1)/windowGroups, 1)
}

// age forgets the groups that are one period old. When the clock stepped back it
// first moves all groups back with it, keeping their distances: nobody is then
// held longer than one period after the step.
func (c *cell) age(r *rings.Rings, now, period int64) {
	if c.used == 0 {
		return
	}
	if late := c.newest.Last - now; late > 0 {
		c.shift(r, late)
	}
	if c.newest.Last+period <= now {
		c.clear(r)
		return
	}
	for c.edge+period <= now { // ends at the newest at the latest
		c.used -= r.Of(c.older).Pop().Calls
		c.edge = c.oldest(r).Last
	}
}

// shift dates all groups earlier.
func (c *cell) shift(r *rings.Rings, by int64) {
	c.newest.Last -= by
	c.edge -= by
	r.Of(c.older).Shift(by)
}

// append counts calls of one time, filling the newest group, which holds at most
// size, first.
func (c *cell) append(r *rings.Rings, more rings.Group, size int64) {
	c.used += more.Calls
	if room := min(more.Calls, size-c.newest.Calls); c.newest.Calls > 0 && room > 0 {
		c.newest.Last = more.Last
		c.newest.Calls += room
		more.Calls -= room
		if r.Of(c.older).Len() == 0 {
			c.edge = more.Last
		}
	}
	for more.Calls > 0 {
		part := min(more.Calls, size)
		c.begin(r, rings.Group{Last: more.Last, Calls: part})
		more.Calls -= part
	}
}

// begin makes g the newest group.
func (c *cell) begin(r *rings.Rings, g rings.Group) {
	switch {
	case c.newest.Calls == 0:
		c.edge = g.Last
	case c.older == 0:
		c.older = r.Take()
		fallthrough
	default:
		r.Of(c.older).Push(c.newest)
	}
	c.newest = g
}

// oldest returns the group that leaves first.
func (c *cell) oldest(r *rings.Rings) rings.Group {
	if older := r.Of(c.older); older.Len() > 0 {
		return *older.At(0)
	}
	return c.newest
}

// frees is when the oldest group leaves, in unix microseconds; 0 when there is
// none.
func (c *cell) frees(period int64) int64 {
	if c.used == 0 {
		return 0
	}
	return c.edge + period
}
