package counter

// keep has the shard note changes for a Saver, all it holds now being saved by
// the full save that follows.
func (s *shard) keep() {
	s.mu.Lock()
	s.keeps = true
	s.mu.Unlock()
}

// worth tells whether a cell is saved: not when its key does not fit a record,
// and not a rate that will be over soon anyway.
func (c *cell) worth(key string) bool {
	return len(key) <= 1<<16-1 && (c.kind == Quota || c.period >= micros(savedRate))
}

// takeChanged appends the cells that changed since the last save.
func (s *shard) takeChanged(b []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.changed {
		c := s.cells[key]
		if c != nil {
			c.dirty = false
			if !c.worth(key) {
				continue
			}
		}
		if len(key) <= 1<<16-1 {
			b = appendRecord(b, key, c)
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
		if c := s.cells[key]; c != nil {
			c.dirty = false
		}
	}
	s.cleared()
}

// takeAll appends all cells that still count.
func (s *shard) takeAll(b []byte, now int64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, c := range s.cells {
		c.dirty = false
		if c.worth(key) && !c.over(now) {
			b = appendRecord(b, key, c)
		}
	}
	s.cleared()
	return b
}

// restore takes in a saved cell. One that is over, or gone, is dropped; one that
// would last longer than its period from now, since the clock was set back
// meanwhile, ends then.
func (m *Memory) restore(key string, c *cell, now int64) {
	s := m.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.cells[key]; old != nil {
		s.drop(key, old)
	}
	if c.kind == savedGone || c.over(now) {
		return
	}
	switch {
	case c.kind == Rate:
		c.age(now, c.period)
	case c.period > 0:
		c.edge = min(c.edge, now+c.period)
	}
	c.home = s
	s.cells[key] = c
	s.sweepAt = max(s.sweepAt, 2*len(s.cells))
}
