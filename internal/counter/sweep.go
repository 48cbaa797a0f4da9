package counter

import "maps"

// sweepLeast is the number of cells below which a shard is not worth sweeping.
const sweepLeast = 32

// sweep drops the cells whose period is over. Each shard is swept when it has
// twice the cells that the last sweep left, so that sweeping costs every new
// cell a small constant and a shard holds at most about twice what is alive.
// Without new cells nothing grows, so nothing needs sweeping.
func (s *shard) sweep(now int64) {
	before := len(s.cells)
	for key, c := range s.cells {
		if c.over(now) {
			delete(s.cells, key)
		}
	}
	alive := len(s.cells)
	s.sweepAt = max(2*alive, sweepLeast)
	if alive < before/4 { // a map does not give back what deleted entries held
		smaller := make(map[string]*cell, alive)
		maps.Copy(smaller, s.cells)
		s.cells = smaller
	}
}

// over tells whether a cell counts nothing any more.
func (c *cell) over(now int64) bool {
	return c.end != 0 && c.end <= now || c.kind == Quota && c.used == 0 && c.end == 0
}
