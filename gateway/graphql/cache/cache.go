// Package cache keeps what was found out about texts, within a bound in bytes
// that no variety of texts gets beyond.
//
// Hits take no lock. Two texts are never taken for each other: a hash only says
// where to look, and it cannot be foreseen.
package cache

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// A Key names what is kept: a text, and the name of what is meant in it, under
// an owner, whose texts mean something else than those of others.
type Key struct {
	Owner uint64
	Name  []byte
	Text  []byte
}

// shards is how many parts are written to at a time.
const shards = 64

// overhead is what an entry takes beside its text and value, in bytes.
const overhead = 168

// MaxText is the longest text that is kept, with its name, in bytes. Longer ones
// are rare, and a few of them would take the place of many.
const MaxText = 16 << 10

// A Cache holds values by key. It is safe for concurrent use.
type Cache[V any] struct {
	seed    maphash.Seed
	buckets []atomic.Pointer[entry[V]] // a power of two; chains of one bucket lie in one shard
	shards  [shards]shard[V]
}

// New returns a cache of at most size bytes, at least 1 MiB or 0: then it keeps
// nothing.
func New[V any](size int) *Cache[V] {
	n := shards
	for n < size/512 {
		n *= 2
	}
	c := &Cache[V]{seed: maphash.MakeSeed(), buckets: make([]atomic.Pointer[entry[V]], n)}
	for i := range c.shards {
		c.shards[i].init(size / shards)
	}
	return c
}

// entry is one key with its value. Only next, used, and what the shard's lock
// guards change once it is in a chain.
type entry[V any] struct {
	hash  uint64
	owner uint64
	name  string
	text  string
	value *V
	next  atomic.Pointer[entry[V]] // in the bucket; stays when the entry is taken out, for who is just reading it
	used  atomic.Bool              // since the shard last looked

	// Of the shard.
	cost         int
	queue        *queue[V] // that it is in
	newer, older *entry[V]
}

// copied returns name and text in one piece of memory.
func (k *Key) copied() (name, text string) {
	if len(k.Name) == 0 {
		return "", string(k.Text)
	}
	var b strings.Builder
	b.Grow(len(k.Name) + len(k.Text))
	b.Write(k.Name)
	b.Write(k.Text)
	return b.String()[:len(k.Name)], b.String()[len(k.Name):]
}

func (e *entry[V]) is(hash uint64, k *Key) bool {
	return e.hash == hash && e.owner == k.Owner && e.text == string(k.Text) && e.name == string(k.Name)
}

func (c *Cache[V]) hash(k *Key) uint64 {
	h := maphash.Bytes(c.seed, k.Text)
	if len(k.Name) > 0 {
		h ^= maphash.Bytes(c.seed, k.Name) * 0x9e3779b97f4a7c15
	}
	return h ^ k.Owner*0xff51afd7ed558ccd
}

func (c *Cache[V]) bucket(hash uint64) *atomic.Pointer[entry[V]] {
	return &c.buckets[hash&uint64(len(c.buckets)-1)]
}

// Get returns the value for a key, or nil. It does not allocate.
func (c *Cache[V]) Get(k Key) *V {
	hash := c.hash(&k)
	for e := c.bucket(hash).Load(); e != nil; e = e.next.Load() {
		if e.is(hash, &k) {
			c.shards[hash&(shards-1)].hits.Add(1)
			if !e.used.Load() { // read mostly, so that cores share the line
				e.used.Store(true)
			}
			return e.value
		}
	}
	return nil
}

// Peek is Get for whoever does not count as using the value.
func (c *Cache[V]) Peek(k Key) *V {
	hash := c.hash(&k)
	for e := c.bucket(hash).Load(); e != nil; e = e.next.Load() {
		if e.is(hash, &k) {
			return e.value
		}
	}
	return nil
}

// Add keeps a value for a key, whose bytes it copies. size is that of the value
// in bytes. Another value that is there already stays.
func (c *Cache[V]) Add(k Key, value *V, size int) { c.put(k, value, size, false) }

// Set is Add, but that the value takes the place of one that is there already.
func (c *Cache[V]) Set(k Key, value *V, size int) { c.put(k, value, size, true) }

// Largest returns the size of the largest value that is kept, in bytes, for a key
// of so many bytes.
func (c *Cache[V]) Largest(key int) int { return c.shards[0].max/4 - key - overhead }

func (c *Cache[V]) put(k Key, value *V, size int, instead bool) {
	if len(k.Text)+len(k.Name) > MaxText {
		return
	}
	hash := c.hash(&k)
	cost := len(k.Text) + len(k.Name) + size + overhead
	s := &c.shards[hash&(shards-1)]
	s.mu.Lock()
	defer s.mu.Unlock()
	if cost > s.max/4 {
		return
	}
	head := c.bucket(hash)
	for e := head.Load(); e != nil; e = e.next.Load() {
		switch {
		case !e.is(hash, &k):
			continue
		case !instead:
			return
		}
		e.queue.remove(e)
		c.unlink(e)
		break
	}
	e := &entry[V]{hash: hash, owner: k.Owner, value: value, cost: cost}
	e.name, e.text = k.copied()
	e.next.Store(head.Load())
	head.Store(e)
	s.probation.push(e)
	for s.size() > s.max {
		c.unlink(s.evict())
	}
}

// unlink takes an entry out of its bucket. The lock of its shard is held.
func (c *Cache[V]) unlink(gone *entry[V]) {
	at := c.bucket(gone.hash)
	for e := at.Load(); e != gone; e = at.Load() {
		at = &e.next
	}
	at.Store(gone.next.Load())
}

// Drop takes out everything of an owner.
func (c *Cache[V]) Drop(owner uint64) { c.DropAll(map[uint64]bool{owner: true}) }

// DropAll takes out everything of owners, in one look through all that is kept.
func (c *Cache[V]) DropAll(owners map[uint64]bool) {
	if len(owners) == 0 {
		return
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for _, q := range [...]*queue[V]{&s.probation, &s.main} {
			for e := q.oldest; e != nil; {
				newer := e.newer
				if owners[e.owner] {
					q.remove(e)
					c.unlink(e)
				}
				e = newer
			}
		}
		s.mu.Unlock()
	}
}

// Hits returns how often Get found something.
func (c *Cache[V]) Hits() (n uint64) {
	for i := range c.shards {
		n += c.shards[i].hits.Load()
	}
	return n
}

// Size returns how many entries there are and how many bytes they take.
func (c *Cache[V]) Size() (entries, bytes int) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		entries += s.probation.entries + s.main.entries
		bytes += s.size()
		s.mu.Unlock()
	}
	return entries, bytes
}
