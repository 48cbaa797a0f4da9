package frozen

import (
	"iter"
	"math/bits"
	"slices"
)

// Edit makes a map of another one. It is used by one goroutine, up to Done.
type Edit[V any] struct {
	from *Map[V]
	open []*list[V] // by block; nil: the block is as it was
	len  int
}

// A list is a block in the making: its entries one after the other.
type list[V any] []entry[V]

// Edit returns what makes another map of m, which stays as it is.
func (m *Map[V]) Edit() *Edit[V] {
	if m == nil {
		m = &Map[V]{blocks: make([]block[V], 1)}
	}
	return &Edit[V]{from: m, open: make([]*list[V], len(m.blocks)), len: m.len}
}

// Len returns how many keys there are now.
func (e *Edit[V]) Len() int { return e.len }

// Get returns the value that a key has now.
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

// All yields all keys with the values that they have now, in no order.
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

// original returns a block as it was, none where there are more lists by now.
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

// Set gives a key a value.
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

// Delete takes a key out, if it is there.
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

// list returns the list for a hash, which it makes of the block.
func (e *Edit[V]) list(hash uint64) *list[V] {
	at := blockAt(hash, len(e.open))
	if e.open[at] == nil {
		e.open[at] = new(entriesOf(e.from.blocks[at], 1))
	}
	return e.open[at]
}

// entriesOf copies the entries of a block, with room for more.
func entriesOf[V any](in block[V], more int) list[V] {
	all := make(list[V], 0, len(in)+more)
	for i := range in {
		if in[i].hash != 0 {
			all = append(all, in[i])
		}
	}
	return all
}

// resize distributes all entries over so many lists.
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

// Done returns the map as it is now: the one that the edit began with when
// nothing was changed. The edit must not be used any more.
func (e *Edit[V]) Done() *Map[V] {
	m, _ := e.DoneBySteps(func() error { return nil })
	return m
}

// DoneBySteps is Done that calls step between small pieces of work, which may
// wait. It returns step's error.
func (e *Edit[V]) DoneBySteps(step func() error) (*Map[V], error) {
	if len(e.open) == 1 && e.len > smallUpTo {
		e.resize(2) // one block is a plain list, and this would be a long one
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

// block puts the entries where they are found by their hash.
func (l *list[V]) block() block[V] {
	size := 1 << bits.Len(uint(len(*l)*3/2)) // free places keep the ways short
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
