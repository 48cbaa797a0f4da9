package frozen

import (
	"iter"
	"math/bits"
	"slices"
)

// Edit builds a changed copy of a map. It is not safe for concurrent use, and ends with
// Done.
type Edit[V any] struct {
	from *Map[V]
	open []*list[V] // by block; nil: the block is unchanged
	len  int
}

// A list is the entries of a changed block.
type list[V any] []entry[V]

// Edit returns an Edit of m, which stays unchanged.
func (m *Map[V]) Edit() *Edit[V] {
	if m == nil {
		m = &Map[V]{blocks: make([]block[V], 1)}
	}
	return &Edit[V]{from: m, open: make([]*list[V], len(m.blocks)), len: m.len}
}

// Len returns the current number of keys.
func (e *Edit[V]) Len() int { return e.len }

// Get returns the current value of a key.
func (e *Edit[V]) Get(key string) (value V, ok bool) {
	hash := hashOf(key)
	in := e.open[blockAt(hash, len(e.open))]
	if in == nil {
		return e.from.Get(key)
	}
	if i := in.index(hash, key); i >= 0 {
		return (*in)[i].value, true
	}
	return value, false
}

// All returns all keys with their current values, in no order.
func (e *Edit[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for at, in := range e.open {
			all := e.original(at)
			if in != nil {
				all = block[V](*in)
			}
			for i := range all {
				if all[i].hash != 0 && !yield(all[i].key, all[i].value) {
					return
				}
			}
		}
	}
}

// original returns the unchanged block, or nil if the number of lists has changed.
func (e *Edit[V]) original(at int) block[V] {
	if len(e.open) != len(e.from.blocks) {
		return nil
	}
	return e.from.blocks[at]
}

func (l *list[V]) index(hash uint64, key string) int {
	for i := range *l {
		if one := &(*l)[i]; one.hash == hash && one.key == key {
			return i
		}
	}
	return -1
}

// Set sets the value of a key.
func (e *Edit[V]) Set(key string, value V) {
	hash := hashOf(key)
	in := e.list(hash)
	if i := in.index(hash, key); i >= 0 {
		(*in)[i].value = value
		return
	}
	*in = append(*in, entry[V]{hash, key, value})
	e.len++
	if e.len > fullAt*len(e.open) {
		e.resize(2 * len(e.open))
	}
}

// Delete removes a key.
func (e *Edit[V]) Delete(key string) {
	if _, there := e.Get(key); !there {
		return
	}
	hash := hashOf(key)
	in := e.list(hash)
	i := in.index(hash, key)
	*in = slices.Delete(*in, i, i+1)
	e.len--
}

// list returns the list of a hash, which it copies from the block.
func (e *Edit[V]) list(hash uint64) *list[V] {
	at := blockAt(hash, len(e.open))
	if e.open[at] == nil {
		e.open[at] = new(entriesOf(e.from.blocks[at], 1))
	}
	return e.open[at]
}

// entriesOf copies the entries of a block, with capacity for more.
func entriesOf[V any](in block[V], more int) list[V] {
	all := make(list[V], 0, len(in)+more)
	for i := range in {
		if in[i].hash != 0 {
			all = append(all, in[i])
		}
	}
	return all
}

// resize distributes all entries over a number of lists.
func (e *Edit[V]) resize(lists int) {
	old := e.open
	e.open = make([]*list[V], lists)
	for at := range e.open {
		e.open[at] = new(make(list[V], 0, 2*e.len/lists))
	}
	for at, in := range old {
		if in == nil {
			in = new(entriesOf(e.from.blocks[at], 0))
		}
		for _, one := range *in {
			to := e.open[blockAt(one.hash, lists)]
			*to = append(*to, one)
		}
	}
}

// Done returns the changed map, or the original one if nothing was changed. The edit must
// not be used afterwards.
func (e *Edit[V]) Done() *Map[V] {
	m, _ := e.DoneBySteps(func() error { return nil })
	return m
}

// DoneBySteps is Done that calls step between small pieces of work. step may wait;
// DoneBySteps returns its error.
func (e *Edit[V]) DoneBySteps(step func() error) (*Map[V], error) {
	if len(e.open) == 1 && e.len > smallUpTo {
		e.resize(2) // a single block is searched linearly
	}
	m := &Map[V]{blocks: make([]block[V], len(e.open)), len: e.len}
	if len(e.open) == len(e.from.blocks) {
		copy(m.blocks, e.from.blocks)
	}
	changed := false
	for at, in := range e.open {
		if in == nil {
			continue
		}
		changed = true
		if err := step(); err != nil {
			return nil, err
		}
		if len(e.open) == 1 {
			m.blocks[at] = append(make(block[V], 0, len(*in)), *in...)
		} else {
			m.blocks[at] = in.block()
		}
	}
	if !changed {
		return e.from, nil
	}
	return m, nil
}

// block returns the block of the entries.
func (l *list[V]) block() block[V] {
	size := 1 << bits.Len(uint(len(*l)*3/2)) // free entries keep probing short
	in := make(block[V], size)
	for _, one := range *l {
		at := one.hash >> 1
		for in[at&uint64(size-1)].hash != 0 {
			at++
		}
		in[at&uint64(size-1)] = one
	}
	return in
}
