package counter

// A rate remembers when it admitted its calls in at most windowGroups groups,
// each dated by its last call. Every call is therefore held at least until one
// period after itself, so no window ever holds more than the rate; and at most
// one group's calls are held longer than they must, so a rate up to
// windowGroups is exact and a larger one too strict by less than one group.
// script.lua keeps the same groups in the store; tests compare both with the
// same model step by step.
const windowGroups = 32

type group struct {
	last  int64 // unix microseconds of its last call
	calls int64
}

// groupSize is how many calls share a group under a rate of most.
func groupSize(most int64) int64 {
	return max((min(most, MaxRate)+windowGroups-1)/windowGroups, 1)
}

// age forgets the groups that are one period old. When the clock stepped back it
// first moves all groups back with it, keeping their distances: nobody is then
// held longer than one period after the step.
func (c *cell) age(r *rings, now, period int64) {
	if c.used == 0 {
		return
	}
	if late := c.newest.last - now; late > 0 {
		c.shift(r, late)
	}
	if c.newest.last+period <= now {
		c.clear(r)
		return
	}
	for c.edge+period <= now { // ends at the newest at the latest
		c.used -= r.of(c.older).pop().calls
		c.edge = c.oldest(r).last
	}
}

// shift dates all groups earlier.
func (c *cell) shift(r *rings, by int64) {
	c.newest.last -= by
	c.edge -= by
	if older := r.of(c.older); older != nil {
		older.shift(by)
	}
}

// append counts calls of one time, filling the newest group, which holds at most
// size, first.
func (c *cell) append(r *rings, more group, size int64) {
	c.used += more.calls
	if room := min(more.calls, size-c.newest.calls); c.newest.calls > 0 && room > 0 {
		c.newest.last = more.last
		c.newest.calls += room
		more.calls -= room
		if older := r.of(c.older); older == nil || older.n == 0 {
			c.edge = more.last
		}
	}
	for more.calls > 0 {
		part := min(more.calls, size)
		c.begin(r, group{last: more.last, calls: part})
		more.calls -= part
	}
}

// begin makes g the newest group.
func (c *cell) begin(r *rings, g group) {
	switch {
	case c.newest.calls == 0:
		c.edge = g.last
	case c.older == 0:
		c.older = r.take()
		fallthrough
	default:
		r.of(c.older).push(c.newest)
	}
	c.newest = g
}

// oldest returns the group that leaves first.
func (c *cell) oldest(r *rings) group {
	if older := r.of(c.older); older != nil && older.n > 0 {
		return *older.at(0)
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

// ring holds groups, oldest first. Nothing moves when one leaves.
type ring struct {
	groups   []group // as many as a power of two
	first, n int
}

func (r *ring) at(i int) *group { return &r.groups[(r.first+i)&(len(r.groups)-1)] }

func (r *ring) push(g group) {
	if r.n == len(r.groups) {
		larger := make([]group, max(2*r.n, 4))
		for i := range r.n {
			larger[i] = *r.at(i)
		}
		r.groups, r.first = larger, 0
	}
	r.n++
	*r.at(r.n - 1) = g
}

func (r *ring) pop() group {
	g := *r.at(0)
	r.first = (r.first + 1) & (len(r.groups) - 1)
	r.n--
	return g
}

func (r *ring) shift(by int64) {
	for i := range r.n {
		r.at(i).last -= by
	}
}
