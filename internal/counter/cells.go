package counter

import (
	"github.com/sluicegate/sluice/internal/counter/rings"
	"github.com/sluicegate/sluice/internal/slab"
)

// cells holds the counters of a shard. There may be millions, so neither they nor
// their keys have pointers: a collection of garbage passes them by.
type cells struct {
	slab.Values[cell, *cell]
	rings rings.Rings
}

// drop takes out the cell of a key.
func (s *cells) drop(key string, c *cell) {
	s.rings.Release(c.older)
	s.Drop(c.sum, key)
}

// sweep drops the cells whose period is over.
func (s *cells) sweep(now int64) {
	s.Sweep(func(c *cell) bool {
		if !c.over(now) {
			return false
		}
		s.rings.Release(c.older)
		return true
	})
}

// Sum implements slab.Value.
func (c *cell) Sum() uint64 { return c.sum }

// Leave implements slab.Value.
func (c *cell) Leave() { c.gone = true }
