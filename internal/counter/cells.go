package counter

import (
	"encoding/binary"

	"github.com/sluicegate/sluice/internal/slab"
)

// cells holds the counters of a shard, and finds them by key. There may be
// millions, so neither they nor their keys hold pointers: a collection of garbage
// passes them by.
//
// A cell never serves another key once it has served one: who still knows one
// that was dropped, or has moved, sees that it is gone.
type cells struct {
	keys    slab.Table // the number of each cell, in 4 bytes, and its key
	blocks  []block    // number n at n/mostCells
	spare   []uint32   // places in blocks that are empty
	filling uint32     // the place of the block that grows
	rings   rings
}

// A block is some cells that lie side by side.
type block struct {
	cells []cell
	live  int // that are not gone
}

// How many cells a block has: a quarter of those there are, so that little is
// lost to the one that is being filled, within these bounds.
const (
	leastCells = 2
	mostCells  = 64
)

func (s *cells) len() int { return s.keys.Len() }

// cell returns the cell of a record.
func (s *cells) cell(record []byte) *cell {
	number := binary.LittleEndian.Uint32(record)
	return &s.blocks[number/mostCells].cells[number%mostCells]
}

// keyOf returns the key of a record.
func keyOf(record []byte) []byte { return record[4:] }

// find returns the cell of a key, or nil. sum is the key's hash.
func (s *cells) find(sum uint64, key string) *cell {
	if at := s.place(sum, key); at >= 0 {
		return s.cell(s.keys.Record(at))
	}
	return nil
}

func (s *cells) place(sum uint64, key string) int {
	for at := s.keys.Find(sum); at >= 0; at = s.keys.Another(at) {
		if string(keyOf(s.keys.Record(at))) == key {
			return at
		}
	}
	return -1
}

// add makes the cell of a key that has none, as one of a kind.
func (s *cells) add(sum uint64, key string, like cell) *cell {
	c, number := s.open()
	*c = like
	c.sum = sum
	var room [128]byte // for most
	s.keys.Add(sum, append(binary.LittleEndian.AppendUint32(room[:0], number), key...))
	return c
}

// open takes a cell that nobody has had, and returns its number.
func (s *cells) open() (*cell, uint32) {
	if len(s.blocks) == 0 || len(s.blocks[s.filling].cells) == cap(s.blocks[s.filling].cells) {
		s.begin()
	}
	b := &s.blocks[s.filling]
	i := len(b.cells)
	b.cells = b.cells[:i+1]
	b.live++
	return &b.cells[i], s.filling*mostCells + uint32(i)
}

// begin begins a block.
func (s *cells) begin() {
	fresh := block{cells: make([]cell, 0, min(max(s.len()/4, leastCells), mostCells))}
	if last := len(s.spare) - 1; last >= 0 {
		s.filling, s.spare = s.spare[last], s.spare[:last]
		s.blocks[s.filling] = fresh
		return
	}
	s.blocks = append(s.blocks, fresh)
	s.filling = uint32(len(s.blocks) - 1)
}

// drop takes out the cell of a key, which must be there.
func (s *cells) drop(key string, c *cell) {
	at := s.place(c.sum, key)
	number := binary.LittleEndian.Uint32(s.keys.Record(at))
	s.keys.Remove(at)
	s.end(c, number/mostCells)
	s.tidy(number / mostCells)
}

// end has a cell of a block be gone, and gives up what it held.
func (s *cells) end(c *cell, at uint32) {
	c.gone = true
	s.rings.release(c.older)
	c.older = 0
	s.blocks[at].live--
}

// sweep drops the cells of which over says so.
func (s *cells) sweep(over func(c *cell) bool) {
	s.keys.Sweep(func(record []byte) bool {
		c := s.cell(record)
		if !over(c) {
			return false
		}
		s.end(c, binary.LittleEndian.Uint32(record)/mostCells)
		return true
	})
	for at := range s.blocks {
		s.tidy(uint32(at))
	}
}

// tidy gives a block up that is full and mostly of cells that are gone. The
// others move.
func (s *cells) tidy(at uint32) {
	b := s.blocks[at]
	if len(b.cells) == 0 || len(b.cells) < cap(b.cells) || 2*b.live >= len(b.cells) {
		return
	}
	for i := range b.cells {
		if old := &b.cells[i]; !old.gone {
			c, number := s.open()
			*c = *old
			old.gone = true
			s.renumber(c.sum, at*mostCells+uint32(i), number)
		}
	}
	s.blocks[at] = block{}
	s.spare = append(s.spare, at)
}

// renumber notes that a cell has moved.
func (s *cells) renumber(sum uint64, from, to uint32) {
	at := s.keys.Find(sum)
	for binary.LittleEndian.Uint32(s.keys.Record(at)) != from {
		at = s.keys.Another(at)
	}
	var room [128]byte
	s.keys.Replace(at, append(binary.LittleEndian.AppendUint32(room[:0], to), keyOf(s.keys.Record(at))...))
}

// rings holds what rates remember beside their newest group, by number: from 1.
type rings struct {
	all   []ring // number n at n-1
	spare []uint32
}

// of returns the ring of a number, or nil for 0. It is good until the next take.
func (r *rings) of(number uint32) *ring {
	if number == 0 {
		return nil
	}
	return &r.all[number-1]
}

// take returns the number of an empty ring.
func (r *rings) take() uint32 {
	if last := len(r.spare) - 1; last >= 0 {
		number := r.spare[last]
		r.spare = r.spare[:last]
		return number
	}
	r.all = append(r.all, ring{})
	return uint32(len(r.all))
}

// release takes a ring back; 0 is none.
func (r *rings) release(number uint32) {
	if number == 0 {
		return
	}
	r.all[number-1] = ring{}
	r.spare = append(r.spare, number)
	if len(r.spare) == len(r.all) {
		*r = rings{}
	}
}
