// Package frozen has a map that never changes, and from which another one is
// made at the cost of what they differ by.
//
// Configuration with a hundred thousand objects is held in such maps: requests
// read one while the next is made from it, and a change of one object copies a
// list of buckets and one bucket, not everything.
package frozen

import (
	"hash/maphash"
	"iter"
	"slices"
	"strings"
)

// Map is an immutable map from strings. A nil *Map is empty. It is safe for
// concurrent use; reading it does not allocate.
type Map[V any] struct {
	blocks []block[V] // as many as a power of two; of a small map one, which is a plain list
	len    int
}

// A block holds the entries whose hashes agree in the bits that choose it. Its
// length is a power of two; an entry stands at the first free place from the one
// that its hash names, and there are always free ones, whose hash is 0.
type block[V any] []entry[V]

type entry[V any] struct {
	hash  uint64
	key   string
	value V
}

const (
	smallUpTo = 8  // entries of a map that is searched without hashing
	fullAt    = 64 // entries of a block, on average, before there are twice as many blocks
	blockBits = 16 // bits of a hash that say where in a block an entry stands
)

// hashOf is never 0.
func hashOf(key string) uint64 { return maphash.String(seed, key) | 1 }

// blockAt returns which of so many blocks a hash belongs to.
func blockAt(hash uint64, blocks int) int { return int(hash>>blockBits) & (blocks - 1) }

// seed is the same for all maps, which saves room: there may be one per node of a
// tree.
var seed = maphash.MakeSeed()

// Len returns how many keys there are.
func (m *Map[V]) Len() int {
	if m == nil {
		return 0
	}
	return m.len
}

// Get returns the value of a key.
func (m *Map[V]) Get(key string) (value V, ok bool) {
	if m == nil {
		return value, false
	}
	if len(m.blocks) == 1 {
		for i := range m.blocks[0] {
			if e := &m.blocks[0][i]; e.key == key {
				return e.value, true
			}
		}
		return value, false
	}
	hash := hashOf(key)
	in := m.blocks[blockAt(hash, len(m.blocks))]
	for at := hash >> 1; ; at++ {
		switch e := &in[at&uint64(len(in)-1)]; {
		case e.hash == hash && e.key == key:
			return e.value, true
		case e.hash == 0:
			return value, false
		}
	}
}

// Find is Get with a key in bytes, which it does not hold on to.
func (m *Map[V]) Find(key []byte) (value V, ok bool) {
	if m == nil {
		return value, false
	}
	if len(m.blocks) == 1 {
		for i := range m.blocks[0] {
			if e := &m.blocks[0][i]; e.key == string(key) {
				return e.value, true
			}
		}
		return value, false
	}
	hash := maphash.Bytes(seed, key) | 1
	in := m.blocks[blockAt(hash, len(m.blocks))]
	for at := hash >> 1; ; at++ {
		switch e := &in[at&uint64(len(in)-1)]; {
		case e.hash == hash && e.key == string(key):
			return e.value, true
		case e.hash == 0:
			return value, false
		}
	}
}

// All yields all keys with their values, in no order.
func (m *Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		if m == nil {
			return
		}
		for _, in := range m.blocks {
			for i := range in {
				if in[i].hash != 0 && !yield(in[i].key, in[i].value) {
					return
				}
			}
		}
	}
}

// Sorted returns the keys in order.
func (m *Map[V]) Sorted() []string {
	keys := make([]string, 0, m.Len())
	for key := range m.All() {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, strings.Compare)
	return keys
}
