package slab

import "iter"

// A chunk is a block of records, one behind the other. Nothing in it is ever
// written over, so that whoever reads a record needs no lock.
type chunk struct {
	bytes []byte
	live  int // bytes of records that are wanted, heads included
}

// How large chunks are, in bytes: an eighth of what is wanted, so that little is
// lost to the one that is being filled, within these bounds. A longer record has
// a chunk of its own.
const (
	leastChunk = 512
	mostChunk  = 64 << 10
)

// chunks is where the records of a table lie.
type chunks struct {
	all     []chunk  // number n at n-1
	spare   []uint32 // numbers without a chunk
	filling uint32   // the number of the chunk that grows; 0: none
	live    int      // bytes of records that are wanted
	size    int      // bytes of all chunks
}

func (c *chunks) record(number, at uint32) []byte {
	b := c.all[number-1].bytes[at:]
	_, length := head(b)
	return b[headSize : headSize+length : headSize+length]
}

// fits tells whether there is room for a record in the chunk that is being
// filled.
func (c *chunks) fits(record []byte) bool {
	if c.filling == 0 {
		return false
	}
	b := c.all[c.filling-1].bytes
	return cap(b)-len(b) >= headSize+len(record)
}

// begin begins a chunk with room for a record, and returns the number of the one
// that was being filled, or 0.
func (c *chunks) begin(record []byte) (full uint32) {
	full = c.filling
	room := max(headSize+len(record), min(max(c.live/8, leastChunk), mostChunk))
	fresh := chunk{bytes: make([]byte, 0, room)}
	c.size += room
	if last := len(c.spare) - 1; last >= 0 {
		c.filling, c.spare = c.spare[last], c.spare[:last]
		c.all[c.filling-1] = fresh
		return full
	}
	c.all = append(c.all, fresh)
	c.filling = uint32(len(c.all))
	return full
}

// add appends a record that fits, and returns where it lies.
func (c *chunks) add(hash uint64, record []byte) (number, at uint32) {
	size := headSize + len(record)
	into := &c.all[c.filling-1]
	at = uint32(len(into.bytes))
	into.bytes = append(putHead(into.bytes, hash, len(record)), record...)
	into.live += size
	c.live += size
	return c.filling, at
}

// drop takes note that a record is no longer wanted.
func (c *chunks) drop(number, at uint32) {
	from := &c.all[number-1]
	_, length := head(from.bytes[at:])
	from.live -= headSize + length
	c.live -= headSize + length
}

// isWasteful tells whether a chunk holds more records that are not wanted than
// others, and is not being filled.
func (c *chunks) isWasteful(number uint32) bool {
	one := &c.all[number-1]
	return one.live == 0 || number != c.filling && 2*one.live < len(one.bytes)
}

// each yields the hash of every record of a chunk, wanted or not, and where it
// lies; none when none is wanted.
func (c *chunks) each(number uint32) iter.Seq2[uint64, uint32] {
	return func(yield func(hash uint64, at uint32) bool) {
		b := c.all[number-1].bytes
		if c.all[number-1].live == 0 {
			return
		}
		for at := 0; at < len(b); {
			hash, length := head(b[at:])
			if !yield(hash, uint32(at)) {
				return
			}
			at += headSize + length
		}
	}
}

// release gives a chunk back, whose records have moved.
func (c *chunks) release(number uint32) {
	gone := &c.all[number-1]
	c.live -= gone.live // they are counted where they are now
	c.size -= cap(gone.bytes)
	*gone = chunk{}
	c.spare = append(c.spare, number)
	if c.filling == number {
		c.filling = 0
	}
}
