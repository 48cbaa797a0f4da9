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
func (c *cell) age(now, period int64) {
	if c.used == 0 {
		return
	}
	if late := c.newest.last - now; late > 0 {
		c.shift(late)
	}
	if c.newest.last+period <= now {
		c.clear()
		return
	}
	for c.edge+period <= now { // ends at the newest at the latest
		c.used -= c.older.pop().calls
		c.edge = c.oldest().last
	}
}

// shift dates all groups earlier.
func (c *cell) shift(by int64) {
	c.newest.last -= by
	c.edge -= by
	if c.older != nil {
		c.older.shift(by)
	}
}

// append counts calls, filling the newest group first.
func (c *cell) append(now, calls, size int64) {
	c.used += calls
	if room := min(calls, size-c.newest.calls); c.newest.calls > 0 && room > 0 {
		c.newest.last = now
		c.newest.calls += room
		calls -= room
		if c.older == nil || c.older.n == 0 {
			c.edge = now
		}
	}
	for calls > 0 {
		part := min(calls, size)
		c.begin(group{last: now, calls: part})
		calls -= part
	}
}

// begin makes g the newest group.
func (c *cell) begin(g group) {
	switch {
	case c.newest.calls == 0:
		c.edge = g.last
	case c.older == nil:
		c.older = &ring{}
		fallthrough
	default:
		c.older.push(c.newest)
	}
	c.newest = g
}

// oldest returns the group that leaves first.
func (c *cell) oldest() group {
	if c.older != nil && c.older.n > 0 {
		return *c.older.at(0)
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
