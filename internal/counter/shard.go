package counter

import "sync"

// sweepLeast is the number of cells below which a shard is not worth sweeping.
const sweepLeast = 32

// shard holds a part of the cells under one lock. It takes one line of the
// processor's cache.
type shard struct {
	mu      sync.Mutex
	cells   *cells
	of      *Memory
	sweepAt int // the number of cells that starts the next sweep
	at      uint8
	keeps   bool     // changes are noted for a Saver
	changed []string // keys whose cell differs from what was saved; twice when one was dropped in between
}

// makeRoom sweeps a shard when it is time to. It comes before a cell is added.
func (s *shard) makeRoom(now int64) {
	if s.cells.Len() >= s.sweepAt {
		s.sweep(now)
	}
}

// sweep drops the cells whose period is over. Each shard is swept when it has
// twice the cells that the last sweep left, so that sweeping costs every new
// cell a small constant and a shard holds at most about twice what is alive.
// Without new cells nothing grows, so nothing needs sweeping.
func (s *shard) sweep(now int64) {
	s.cells.sweep(now)
	s.sweepAt = max(2*s.cells.Len(), sweepLeast)
}

// add makes the cell of a key that has none.
func (s *shard) add(sum uint64, key string, kind Kind) *cell {
	return s.cells.Add(sum, key, cell{of: s.of.id, sum: sum, at: s.at, kind: kind})
}

// note marks a cell as changed since the last save.
func (s *shard) note(key string, c *cell) {
	if s.keeps && !c.dirty {
		c.dirty = true
		s.changed = append(s.changed, key)
	}
}
