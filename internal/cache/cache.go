// Package cache holds a bounded number of values in memory by key.
//
// A cache is spread over shards, each of which is a Go map, a slice of entries
// and a lock. When a shard is full, the clock algorithm makes room: a hand goes
// round the entries and evicts the first that was not read since it last passed.
// An entry that is read again therefore outlives any number of entries that are
// read once.
package cache

import (
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
)

// Options bound a cache. The bounds are divided evenly among its shards.
type Options struct {
	Entries int // at least 1
	Bytes   int // of the sizes that PutSized is given; 0: not bounded
}

// Cache is a bounded map from keys to values. It is safe for concurrent use.
// Values are copied in and out; a large one should be a pointer.
type Cache[K comparable, V any] struct {
	seed   maphash.Seed
	shards []shard[K, V] // a power of two
}

type shard[K comparable, V any] struct {
	mu      sync.RWMutex
	index   map[K]uint32 // into entries
	entries []entry[K, V]
	free    []uint32 // indexes of entries that are not in use
	hand    int
	bytes   int // sum of the sizes of the entries

	mostEntries, mostBytes int
}

type entry[K comparable, V any] struct {
	key   K
	value V
	size  uint32 // bytes
	state uint32 // atomic; unused, fresh or read
}

// States of an entry.
const (
	unused = iota
	fresh  // not read since the hand last passed
	read
)

const (
	mostShards      = 256
	entriesPerShard = 512 // fewer shards are made rather than smaller ones
)

// New returns an empty cache.
func New[K comparable, V any](o Options) *Cache[K, V] {
	o.Entries = max(o.Entries, 1)
	n := 1 << bits.Len(uint(min(o.Entries/entriesPerShard, mostShards-1)))
	c := &Cache[K, V]{seed: maphash.MakeSeed(), shards: make([]shard[K, V], n)}
	for i := range c.shards {
		s := &c.shards[i]
		s.index = make(map[K]uint32)
		s.mostEntries = (o.Entries + n - 1) / n
		s.mostBytes = (o.Bytes + n - 1) / n
	}
	return c
}

func (c *Cache[K, V]) shard(key K) *shard[K, V] {
	return &c.shards[maphash.Comparable(c.seed, key)&uint64(len(c.shards)-1)]
}

// Get returns the value of a key. It does not allocate.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	s := c.shard(key)
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, ok := s.index[key]
	if !ok {
		return value, false
	}
	e := &s.entries[i]
	if atomic.LoadUint32(&e.state) != read { // a write on each Get would invalidate the line in every other core's cache
		atomic.StoreUint32(&e.state, read)
	}
	return e.value, true
}

// Put sets the value of a key. Its size is 0.
func (c *Cache[K, V]) Put(key K, value V) { c.PutSized(key, value, 0) }

// PutSized sets the value of a key, whose size counts towards Options.Bytes. A
// value that is larger than a shard may be is not kept, and the key has none.
func (c *Cache[K, V]) PutSized(key K, value V, size int) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mostBytes > 0 && size > min(s.mostBytes, math.MaxUint32) {
		s.delete(key)
		return
	}
	s.put(key, value, size)
}

// Update replaces the value of a key by what change makes of it, in one step. ok
// reports whether the key has a value; without one, change gets the zero value.
// change must not use the cache.
func (c *Cache[K, V]) Update(key K, change func(value V, ok bool) V) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := s.index[key]; ok {
		e := &s.entries[i]
		e.value, e.state = change(e.value, true), read
		return
	}
	var none V
	s.put(key, change(none, false), 0)
}

// Delete removes a key and returns the value it had.
func (c *Cache[K, V]) Delete(key K) (value V, ok bool) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.delete(key)
}

// DeleteFunc removes the keys that stale reports. It locks one shard at a time
// and calls rest, unless that is nil, after each. stale must not use the cache.
func (c *Cache[K, V]) DeleteFunc(stale func(key K, value V) bool, rest func()) {
	for i := range c.shards {
		c.shards[i].deleteFunc(stale)
		if rest != nil {
			rest()
		}
	}
}

// All calls yield for every key, in no order, until it returns false. It locks
// one shard at a time; yield must not use the cache.
func (c *Cache[K, V]) All(yield func(key K, value V) bool) {
	for i := range c.shards {
		if !c.shards[i].all(yield) {
			return
		}
	}
}

// Len returns the number of keys.
func (c *Cache[K, V]) Len() int {
	n := 0
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.RLock()
		n += len(s.index)
		s.mu.RUnlock()
	}
	return n
}

// Bytes returns the sum of the sizes of all values.
func (c *Cache[K, V]) Bytes() int {
	n := 0
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.RLock()
		n += s.bytes
		s.mu.RUnlock()
	}
	return n
}

// Clear removes all keys.
func (c *Cache[K, V]) Clear() {
	c.DeleteFunc(func(K, V) bool { return true }, nil)
}

// put sets the value of a key. Like the methods below it needs the shard's lock.
// The value must fit in the shard.
func (s *shard[K, V]) put(key K, value V, size int) {
	state := uint32(fresh)
	if i, ok := s.index[key]; ok {
		if e := &s.entries[i]; size <= int(e.size) {
			s.bytes -= int(e.size) - size
			e.value, e.size, e.state = value, uint32(size), read
			return
		}
		s.delete(key) // making room must not evict the value that it is for
		state = read
	}
	for len(s.index) >= s.mostEntries || s.exceeds(size) {
		s.evict()
	}
	at := s.slot()
	s.entries[at] = entry[K, V]{key: key, value: value, size: uint32(size), state: state}
	s.index[key] = at
	s.bytes += size
}

func (s *shard[K, V]) exceeds(more int) bool {
	return s.mostBytes > 0 && s.bytes+more > s.mostBytes
}

// slot returns the index of an entry that is not in use.
func (s *shard[K, V]) slot() uint32 {
	if last := len(s.free) - 1; last >= 0 {
		at := s.free[last]
		s.free = s.free[:last]
		return at
	}
	n := len(s.entries)
	if n == cap(s.entries) { // append would allocate more than there will ever be
		larger := make([]entry[K, V], n, min(max(2*n, 8), s.mostEntries))
		copy(larger, s.entries)
		s.entries = larger
	}
	s.entries = s.entries[:n+1]
	return uint32(n)
}

// evict removes the entry that the hand finds. There must be one.
func (s *shard[K, V]) evict() {
	for ; ; s.hand++ {
		if s.hand >= len(s.entries) {
			s.hand = 0
		}
		switch e := &s.entries[s.hand]; e.state {
		case fresh:
			s.delete(e.key)
			s.hand++ // the entry that takes its place comes last
			return
		case read:
			e.state = fresh
		}
	}
}

func (s *shard[K, V]) delete(key K) (value V, ok bool) {
	at, ok := s.index[key]
	if !ok {
		return value, false
	}
	e := &s.entries[at]
	value = e.value
	s.bytes -= int(e.size)
	*e = entry[K, V]{}
	s.free = append(s.free, at)
	delete(s.index, key)
	return value, true
}

func (s *shard[K, V]) deleteFunc(stale func(key K, value V) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.entries {
		if e := &s.entries[i]; e.state != unused && stale(e.key, e.value) {
			s.delete(e.key)
		}
	}
	if len(s.index) == 0 { // gives back what they took
		s.index, s.entries, s.free = make(map[K]uint32), nil, nil
	}
}

func (s *shard[K, V]) all(yield func(key K, value V) bool) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key, at := range s.index {
		if !yield(key, s.entries[at].value) {
			return false
		}
	}
	return true
}
