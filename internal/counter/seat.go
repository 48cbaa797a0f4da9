package counter

import "sync/atomic"

// A Seat remembers where a Memory counts under one limit, for whoever asks with
// the same limit again and again: the counter need not be looked up then. The
// zero value remembers nothing yet. A seat is of one key for good, and safe for
// concurrent use. It never goes wrong: not when its key is reset or forgotten,
// nor when it is used with another Memory.
type Seat struct{ cell atomic.Pointer[cell] }

// in returns the cell of a key in m, or nil when it is not known. Whether it has
// gone meanwhile shows only under its shard's lock.
func (s *Seat) in(m *Memory, kind Kind) *cell {
	if c := s.cell.Load(); c != nil && c.kind == kind && c.of == m.id {
		return c
	}
	return nil
}

// keep has the seats know what was found.
func (c *call) keep(seats []Seat) {
	for i := range seats {
		if found := c.cells[i]; found != nil && seats[i].cell.Load() != found {
			seats[i].cell.Store(found)
		}
	}
}
