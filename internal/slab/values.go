package slab

import (
	"encoding/binary"
	"iter"
	"math/bits"
)

// A Value is what Values hold: a struct without pointers.
type Value[T any] interface {
	*T

	// Sum returns the hash of the value's key.
	Sum() uint64

	// Leave is called when the value is dropped or has moved: whoever still knows
	// it has to look its key up.
	Leave()
}

// Values finds values of one type by their keys. The values lie in blocks, and
// the memory of one never serves another key once it has served one: a pointer to
// it may be kept, as long as whoever keeps it sees that the value has left. The
// zero value is empty. It is not safe for concurrent use.
type Values[T any, P Value[T]] struct {
	keys    Table      // the number of each value, in 4 bytes, and its key
	blocks  []block[T] // number n at n/mostValues
	spare   []uint32   // places in blocks that are empty
	filling uint32     // the place of the block that grows
}

// A block is some values that lie side by side.
type block[T any] struct {
	values []T
	there  uint64 // bit i: the i-th has not left
}

// How many values a block has: a quarter of those there are, so that little is
// lost to the one that is being filled, within these bounds.
const (
	leastValues = 2
	mostValues  = 64
)

// numberSize is what stands before the key in a record.
const numberSize = 4

// Len returns the number of values.
func (v *Values[T, P]) Len() int { return v.keys.Len() }

func numberOf(record []byte) uint32 { return binary.LittleEndian.Uint32(record) }

func (v *Values[T, P]) value(number uint32) P {
	return &v.blocks[number/mostValues].values[number%mostValues]
}

// Find returns the value of a key, or nil. sum is the key's hash.
func (v *Values[T, P]) Find(sum uint64, key string) P {
	if at := v.place(sum, key); at >= 0 {
		return v.value(numberOf(v.keys.Record(at)))
	}
	return nil
}

func (v *Values[T, P]) place(sum uint64, key string) int {
	for at := v.keys.Find(sum); at >= 0; at = v.keys.Another(at) {
		if string(v.keys.Record(at)[numberSize:]) == key {
			return at
		}
	}
	return -1
}

// Add puts in the value of a key that has none, and returns where it is.
func (v *Values[T, P]) Add(sum uint64, key string, value T) P {
	at, number := v.open()
	*at = value
	v.keys.Add(sum, append(room(number), key...))
	return at
}

// room begins a record.
func room(number uint32) []byte {
	return binary.LittleEndian.AppendUint32(make([]byte, 0, 128), number)
}

// open takes a place that nobody has had, and returns its number.
func (v *Values[T, P]) open() (P, uint32) {
	if len(v.blocks) == 0 || v.blocks[v.filling].isFull() {
		v.begin()
	}
	b := &v.blocks[v.filling]
	i := len(b.values)
	b.values = b.values[:i+1]
	b.there |= 1 << i
	return &b.values[i], v.filling*mostValues + uint32(i)
}

func (b *block[T]) isFull() bool { return len(b.values) == cap(b.values) }

// begin begins a block.
func (v *Values[T, P]) begin() {
	fresh := block[T]{values: make([]T, 0, min(max(v.Len()/4, leastValues), mostValues))}
	if last := len(v.spare) - 1; last >= 0 {
		v.filling, v.spare = v.spare[last], v.spare[:last]
		v.blocks[v.filling] = fresh
		return
	}
	v.blocks = append(v.blocks, fresh)
	v.filling = uint32(len(v.blocks) - 1)
}

// Drop takes out the value of a key, if there is one. Others may move.
func (v *Values[T, P]) Drop(sum uint64, key string) {
	at := v.place(sum, key)
	if at < 0 {
		return
	}
	number := numberOf(v.keys.Record(at))
	v.keys.Remove(at)
	v.leave(number)
	v.tidy(number / mostValues)
}

func (v *Values[T, P]) leave(number uint32) {
	v.blocks[number/mostValues].there &^= 1 << (number % mostValues)
	v.value(number).Leave()
}

// Sweep drops the values that stale says it of. Others may move.
func (v *Values[T, P]) Sweep(stale func(value P) bool) {
	v.keys.Sweep(func(record []byte) bool {
		number := numberOf(record)
		if !stale(v.value(number)) {
			return false
		}
		v.leave(number)
		return true
	})
	for at := range v.blocks {
		v.tidy(uint32(at))
	}
}

// tidy gives a block up that is full and mostly of values that have left. The
// others move.
func (v *Values[T, P]) tidy(at uint32) {
	b := v.blocks[at]
	if len(b.values) == 0 || !b.isFull() || 2*bits.OnesCount64(b.there) >= len(b.values) {
		return
	}
	for left := b.there; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		old := P(&b.values[i])
		now, number := v.open()
		*now = *old
		v.renumber(old.Sum(), at*mostValues+uint32(i), number)
		old.Leave()
	}
	v.blocks[at] = block[T]{}
	v.spare = append(v.spare, at)
}

// renumber notes that a value has moved.
func (v *Values[T, P]) renumber(sum uint64, from, to uint32) {
	at := v.keys.Find(sum)
	for numberOf(v.keys.Record(at)) != from {
		at = v.keys.Another(at)
	}
	v.keys.Replace(at, append(room(to), v.keys.Record(at)[numberSize:]...))
}

// All yields every value with its key. Nothing may be added or dropped meanwhile.
func (v *Values[T, P]) All() iter.Seq2[[]byte, P] {
	return func(yield func(key []byte, value P) bool) {
		for _, record := range v.keys.All() {
			if !yield(record[numberSize:], v.value(numberOf(record))) {
				return
			}
		}
	}
}
