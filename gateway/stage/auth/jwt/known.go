package jwt

import (
	"crypto/subtle"
	"hash/maphash"
	"sync/atomic"

	"github.com/sluicegate/sluice/internal/cache"
)

// known caches tokens that were verified. A token is found by a keyed hash and
// confirmed by comparing all of it.
type known struct {
	seed     maphash.Seed
	salts    atomic.Uint64
	tokens   *cache.Cache[uint64, *entry]
	verified atomic.Uint64
}

type entry struct {
	text       []byte
	salt       uint64    // of the verifier
	generation uint64    // of the keys that it was verified with
	identity   *Identity // of a Verifier
	signed     *Signed   // of a Reader
}

func newKnown(size int) *known {
	return &known{seed: maphash.MakeSeed(), tokens: cache.New[uint64, *entry](cache.Options{Entries: size})}
}

// salt returns a number that no other verifier has.
func (k *known) salt() uint64 { return k.salts.Add(1) }

func (k *known) hash(text []byte, salt uint64) uint64 {
	return maphash.Bytes(k.seed, text) ^ salt*0x9e3779b97f4a7c15
}

func (k *known) find(hash uint64, text []byte, salt, generation uint64) *entry {
	e, ok := k.tokens.Get(hash)
	if !ok || e.salt != salt || e.generation != generation || subtle.ConstantTimeCompare(e.text, text) != 1 {
		return nil
	}
	return e
}
