package counter

import "github.com/sluicegate/sluice/internal/counter/rings"

// A cell is one counter. It takes one line of the processor's cache: most of what
// a call costs is waiting for memory. It has no pointer.
type cell struct {
	of     uint64 // the Memory's id; like at and kind it never changes, and may be read without the lock
	sum    uint64 // of its key
	at     uint8  // its shard
	kind   Kind
	dirty  bool        // its key stands in its shard's changed
	gone   bool        // its shard does not hold it any more
	older  uint32      // the number of the ring that holds the groups of a rate before newest; 0: there never were any
	used   int64       // calls that are counted now
	edge   int64       // unix microseconds: when a quota's period ends, 0 never; the last call of a rate's oldest group
	period int64       // microseconds, as of the call that opened a quota's period or of a rate's last; 0 never renews
	newest rings.Group // of a rate; without calls when there is none
}

// clear forgets all calls.
func (c *cell) clear(r *rings.Rings) {
	c.used, c.edge, c.newest = 0, 0, rings.Group{}
	r.Of(c.older).Clear()
}

// standing ages a cell and returns what it holds against l, and when it next
// lets go, in unix milliseconds.
func (c *cell) standing(r *rings.Rings, now int64, l *Limit) (used, reset int64) {
	if c.kind == Rate {
		period := micros(l.Period)
		c.age(r, now, period)
		return c.used, c.frees(period) / 1000
	}
	if c.edge != 0 && c.edge <= now {
		c.used, c.edge, c.period = 0, 0, 0
	}
	return c.used, c.edge / 1000
}

// add counts calls and returns when the cell next lets go, in unix milliseconds.
func (c *cell) add(r *rings.Rings, now, calls int64, l *Limit) (reset int64) {
	if c.kind == Rate {
		c.period = micros(l.Period)
		c.append(r, rings.Group{Last: now, Calls: calls}, groupSize(l.Max))
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

// over tells whether a cell counts nothing any more.
func (c *cell) over(now int64) bool {
	if c.kind == Rate {
		return c.used == 0 || c.newest.Last+c.period <= now
	}
	return c.edge != 0 && c.edge <= now || c.used == 0 && c.edge == 0
}
