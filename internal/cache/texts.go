package cache

import (
	"sync/atomic"
	"unsafe"
)

// A TextKey names a value by a text and the name of a part of it. Each owner has
// texts of its own.
type TextKey struct {
	Owner uint64
	Name  []byte
	Text  []byte
}

// overhead is the memory of an entry besides its text and value, in bytes.
const overhead = 168

// MaxText is the longest text that is cached, with its name, in bytes. Longer texts
// are rare, and a few of them would evict many others.
const MaxText = 16 << 10

// Texts caches what is known about texts within a bound in bytes. It is safe for
// concurrent use. Two texts are never confused: keys are compared in full.
type Texts[V any] struct {
	cache *Cache[textKey, *V] // nil: nothing is cached
	hits  atomic.Uint64
}

type textKey struct {
	owner      uint64
	name, text string
}

// NewTexts returns a cache of at most size bytes; 0 caches nothing.
func NewTexts[V any](size int) *Texts[V] {
	if size <= 0 {
		return &Texts[V]{}
	}
	return &Texts[V]{cache: New[textKey, *V](Options{Entries: size / overhead, Bytes: size})}
}

// alias returns a key that aliases the bytes of k, for a lookup.
func (k TextKey) alias() textKey {
	return textKey{k.Owner, unsafe.String(unsafe.SliceData(k.Name), len(k.Name)), unsafe.String(unsafe.SliceData(k.Text), len(k.Text))}
}

// Get returns the value of a key, nil if there is none. It does not allocate.
func (t *Texts[V]) Get(k TextKey) *V {
	value := t.Peek(k)
	if value != nil {
		t.hits.Add(1)
	}
	return value
}

// Peek is Get that does not count as a hit.
func (t *Texts[V]) Peek(k TextKey) *V {
	if t.cache == nil {
		return nil
	}
	value, _ := t.cache.Get(k.alias())
	return value
}

// Add stores a value, whose size is in bytes, unless the key has one. It copies
// the key.
func (t *Texts[V]) Add(k TextKey, value *V, size int) {
	if t.Peek(k) == nil {
		t.Set(k, value, size)
	}
}

// Set stores a value, whose size is in bytes, in place of another one. It copies
// the key.
func (t *Texts[V]) Set(k TextKey, value *V, size int) {
	n := len(k.Name) + len(k.Text)
	if t.cache != nil && n <= MaxText {
		both := append(append(make([]byte, 0, n), k.Name...), k.Text...)
		name := len(k.Name)
		t.cache.PutSized(TextKey{k.Owner, both[:name:name], both[name:]}.alias(), value, n+size+overhead)
	}
}

// Largest returns the size of the largest value that can be cached, in bytes, for
// a key of so many bytes.
func (t *Texts[V]) Largest(key int) int {
	if t.cache == nil {
		return 0
	}
	return t.cache.shards[0].mostBytes - key - overhead
}

// Drop removes the values of an owner.
func (t *Texts[V]) Drop(owner uint64) { t.DropAll(map[uint64]bool{owner: true}) }

// DropAll removes the values of owners in one pass.
func (t *Texts[V]) DropAll(owners map[uint64]bool) {
	if t.cache != nil && len(owners) > 0 {
		t.cache.DeleteFunc(func(k textKey, _ *V) bool { return owners[k.owner] }, nil)
	}
}

// Hits returns the number of calls of Get that found a value.
func (t *Texts[V]) Hits() uint64 { return t.hits.Load() }

// Size returns the number of values and their memory in bytes.
func (t *Texts[V]) Size() (entries, bytes int) {
	if t.cache == nil {
		return 0, 0
	}
	return t.cache.Len(), t.cache.Bytes()
}
