package counter

import "github.com/sluicegate/sluice/internal/counter/rings"

// keep has the shard note changes for a Saver, all it holds now being saved by
// the full save that follows.
func (s *shard) keep() {
	s.mu.Lock()
	s.keeps = true
	s.mu.Unlock()
}

// worth tells whether a cell is saved: not when its key, so long, does not fit a record,
// and not a rate that will be over soon anyway.
func (c *cell) worth(length int) bool {
	return length <= 1<<16-1 && (c.kind == Quota || c.period >= micros(savedRate))
}

// takeChanged appends the cells that changed since the last save.
func (s *shard) takeChanged(b []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.changed {
		c := s.cells.Find(s.of.sumOf(key), key)
		if c != nil {
			c.dirty = false
			if !c.worth(len(key)) {
				continue
			}
		}
		if len(key) <= 1<<16-1 {
			b = appendRecord(b, &s.cells.rings, key, c)
		}
	}
	s.cleared()
	return b
}

// cleared empties the list of changes. s.mu is held.
func (s *shard) cleared() {
	clear(s.changed)
	s.changed = s.changed[:0]
}

// forgetChanged has the cells that changed count as saved.
func (s *shard) forgetChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.changed {
		if c := s.cells.Find(s.of.sumOf(key), key); c != nil {
			c.dirty = false
		}
	}
	s.cleared()
}

// takeAll appends all cells that still count.
func (s *shard) takeAll(b []byte, now int64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, c := range s.cells.All() {
		c.dirty = false
		if c.worth(len(key)) && !c.over(now) {
			b = appendRecord(b, &s.cells.rings, key, c)
		}
	}
	s.cleared()
	return b
}

// restore takes in a saved cell, whose groups stand in r. One that is over, or gone, is dropped; one that
// would last longer than its period from now, since the clock was set back
// meanwhile, ends then.
func (m *Memory) restore(key string, c *cell, r *rings.Rings, now int64) {
	sum := m.sumOf(key)
	s := m.shardOf(sum)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.cells.Find(sum, key); old != nil {
		s.cells.drop(key, old)
	}
	if c.kind == savedGone || c.over(now) {
		return
	}
	switch {
	case c.kind == Rate:
		c.age(r, now, c.period)
	case c.period > 0:
		c.edge = min(c.edge, now+c.period)
	}
	held := s.add(sum, key, c.kind)
	held.used, held.edge, held.period, held.newest = c.used, c.edge, c.period, c.newest
	if older := r.Of(c.older); older != nil {
		held.older = s.cells.rings.Take()
		*s.cells.rings.Of(held.older) = *older
	}
	s.sweepAt = max(s.sweepAt, 2*s.cells.Len())
}
