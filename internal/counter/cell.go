package counter

// A cell is one counter, guarded by the lock of its shard except for memory,
// shard and kind, which never change. It takes one cache line: most of the cost of
// a call is waiting for memory.
//
// A rate keeps the times of its calls in at most rateGroups groups, each dated by
// its last call. Every call is therefore held for at least one period, so that no
// window ever holds more than the rate; and at most one group's calls are held
// longer than necessary, so that a rate up to rateGroups is exact and a larger one
// is too strict by less than one group. take.lua keeps the same groups in the
// store; tests compare both with one model.
type cell struct {
	memory *Memory
	shard  uint8
	kind   Kind
	dirty  bool  // its key is in its shard's changed
	gone   bool  // its shard no longer holds it
	used   int64 // calls that are counted now
	edge   int64 // unix microseconds: when a quota's period ends, 0 never; the last call of a rate's oldest group
	period int64 // microseconds, as of the call that opened a quota's period or of a rate's last; 0 never renews
	older  *ring // the groups of a rate before newest; nil if there never were any
	newest group // of a rate; without calls when there is none
}

// rateGroups is how many groups a rate keeps.
const rateGroups = 32

// groupSize returns how many calls share a group under a rate of most.
func groupSize(most int64) int64 {
	return max((min(most, MaxRate)+rateGroups-1)/rateGroups, 1)
}

// reset forgets all calls.
func (c *cell) reset() {
	c.used, c.edge, c.newest = 0, 0, group{}
	c.older.clear()
}

// standing ages a cell and returns what it counts against l, and when it next
// frees a call, in unix milliseconds.
func (c *cell) standing(now int64, l *Limit) (used, reset int64) {
	if c.kind == Rate {
		period := micros(l.Period)
		c.age(now, period)
		return c.used, c.frees(period) / 1000
	}
	if c.edge != 0 && c.edge <= now {
		c.used, c.edge, c.period = 0, 0, 0
	}
	return c.used, c.edge / 1000
}

// add counts calls and returns when the cell next frees a call, in unix
// milliseconds.
func (c *cell) add(now, calls int64, l *Limit) (reset int64) {
	if c.kind == Rate {
		c.period = micros(l.Period)
		c.append(group{last: now, calls: calls}, groupSize(l.Max))
		return c.frees(c.period) / 1000
	}
	if c.used == 0 && c.edge == 0 { // its period opens now; a change of Period waits for the next
		if c.period = micros(l.Period); c.period > 0 {
			c.edge = now + c.period
		}
	}
	c.used += calls
	return c.edge / 1000
}

// expired reports whether a cell counts nothing any more.
func (c *cell) expired(now int64) bool {
	if c.kind == Rate {
		return c.used == 0 || c.newest.last+c.period <= now
	}
	return c.edge != 0 && c.edge <= now || c.used == 0 && c.edge == 0
}

// age forgets the groups that are one period old. When the clock stepped back it
// first moves all groups back with it and keeps their distances: nothing is then
// held longer than one period after the step.
func (c *cell) age(now, period int64) {
	if c.used == 0 {
		return
	}
	if ahead := c.newest.last - now; ahead > 0 {
		c.newest.last -= ahead
		c.edge -= ahead
		c.older.shift(ahead)
	}
	if c.newest.last+period <= now {
		c.reset()
		return
	}
	for c.edge+period <= now { // ends at the newest at the latest
		c.used -= c.older.pop().calls
		c.edge = c.oldest().last
	}
}

// append counts calls of one time. It first fills the newest group, which holds
// at most size calls.
func (c *cell) append(more group, size int64) {
	c.used += more.calls
	if free := min(more.calls, size-c.newest.calls); c.newest.calls > 0 && free > 0 {
		c.newest.last = more.last
		c.newest.calls += free
		more.calls -= free
		if c.older.len() == 0 {
			c.edge = more.last
		}
	}
	for more.calls > 0 {
		part := min(more.calls, size)
		c.push(group{last: more.last, calls: part})
		more.calls -= part
	}
}

// push makes g the newest group.
func (c *cell) push(g group) {
	if c.newest.calls == 0 {
		c.edge = g.last
	} else {
		if c.older == nil {
			c.older = new(ring)
		}
		c.older.push(c.newest)
	}
	c.newest = g
}

// oldest returns the group that is forgotten first.
func (c *cell) oldest() group {
	if c.older.len() > 0 {
		return *c.older.at(0)
	}
	return c.newest
}

// frees returns when the oldest group is forgotten, in unix microseconds; 0 if
// there is none.
func (c *cell) frees(period int64) int64 {
	if c.used == 0 {
		return 0
	}
	return c.edge + period
}

// A group is calls that are forgotten together.
type group struct {
	last  int64 // unix microseconds of its last call
	calls int64
}

// A ring holds groups, oldest first. A nil ring is empty.
type ring struct {
	groups   []group // a power of two
	first, n int
}

func (r *ring) len() int {
	if r == nil {
		return 0
	}
	return r.n
}

// at returns the i-th oldest group.
func (r *ring) at(i int) *group { return &r.groups[(r.first+i)&(len(r.groups)-1)] }

// push adds the newest group.
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

// pop removes the oldest group. There must be one.
func (r *ring) pop() group {
	g := *r.at(0)
	r.first = (r.first + 1) & (len(r.groups) - 1)
	r.n--
	return g
}

func (r *ring) clear() {
	if r != nil {
		r.n = 0
	}
}

// shift dates all groups earlier, by microseconds.
func (r *ring) shift(by int64) {
	for i := range r.len() {
		r.at(i).last -= by
	}
}
