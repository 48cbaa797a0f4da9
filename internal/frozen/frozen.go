// Package frozen provides an immutable map from which a changed copy can be made at the
// cost of the changes.
//
// Configuration with a hundred thousand objects is kept in such maps: requests read one
// while the next is made from it, and a change of one object copies the list of blocks
// and one block.
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
	blocks []block[V] // a power of two; a small map has one, which is a plain list
	len    int
}

// A block has the entries whose hashes agree in the bits that select it. It is a hash
// table with linear probing: its length is a power of two, and some entries are free,
// with a hash of 0.
type block[V any] []entry[V]

type entry[V any] struct {
	hash  uint64
	key   string
	value V
}

const (
	smallUpTo = 8  // entries of a map that is searched linearly
	fullAt    = 64 // average entries of a block at which the number of blocks doubles
	blockBits = 16 // low bits of a hash, which select the entry in a block
)

// hashOf returns the hash of a key, which is never 0.
func hashOf(key string) uint64 { return maphash.String(seed, key) | 1 }

// blockAt returns the index of the block of a hash.
func blockAt(hash uint64, blocks int) int { return int(hash>>blockBits) & (blocks - 1) }

// seed is shared by all maps to save memory, as there may be one map per node of a
// tree.
var seed = maphash.MakeSeed()

// Len returns the number of keys.
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

// Find is Get with a key in bytes, which it does not keep.
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

// All returns all keys with their values, in no order.
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
