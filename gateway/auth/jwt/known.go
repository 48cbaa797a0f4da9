package jwt

import (
	"crypto/subtle"
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// known remembers tokens that were verified, up to a number of them. What it
// holds is found by a keyed hash and confirmed by comparing all of the token.
type known struct {
	seed     maphash.Seed
	salts    atomic.Uint64
	shards   [shards]shard
	limit    int // entries of one shard
	verified atomic.Uint64
}

const shards = 64

type shard struct {
	mu      sync.RWMutex
	entries map[uint64]*entry
	_       [32]byte // what the next shard's lock is not to be slowed by
}

type entry struct {
	text       []byte
	salt       uint64    // of the verifier that knows it
	generation uint64    // of the keys that it was verified with
	identity   *Identity // of a Verifier
	signed     *Signed   // of a Reader
}

func newKnown(size int) *known {
	k := &known{seed: maphash.MakeSeed(), limit: max((size+shards-1)/shards, 1)}
	for i := range k.shards {
		k.shards[i].entries = make(map[uint64]*entry)
	}
	return k
}

// salt returns a number that no other verifier has.
func (k *known) salt() uint64 { return k.salts.Add(1) }

func (k *known) hash(text []byte, salt uint64) uint64 {
	return maphash.Bytes(k.seed, text) ^ salt*0x9e3779b97f4a7c15
}

func (k *known) find(hash uint64, text []byte, salt, generation uint64) *entry {
	s := &k.shards[hash%shards]
	s.mu.RLock()
	e := s.entries[hash]
	s.mu.RUnlock()
	if e == nil || e.salt != salt || e.generation != generation || !same(e.text, text) {
		return nil
	}
	return e
}

// same compares without telling by its time how much is right.
func same(known, text []byte) bool {
	return len(known) == len(text) && subtle.ConstantTimeCompare(known, text) == 1
}

// put remembers a token, in place of any other when there is no room.
func (k *known) put(hash uint64, e *entry) {
	s := &k.shards[hash%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.entries[hash]; !there && len(s.entries) >= k.limit {
		for any := range s.entries {
			delete(s.entries, any)
			break
		}
	}
	s.entries[hash] = e
}

func (k *known) len() int {
	n := 0
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.RLock()
		n += len(s.entries)
		s.mu.RUnlock()
	}
	return n
}
