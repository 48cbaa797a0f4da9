package auth

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// entry is a session in memory. A gateway may hold a million of them: it has no
// field that another can stand for.
type entry struct {
	hash    uint64
	token   string // the credential, which a request must equal
	scope   *scope // in which it was looked up
	text    string // the identity under which the store has it, and behind that the name, when the identity is no hash
	session *definition.Session
	grants  pipeline.Grants
	loaded  time.Duration // since Sessions.base
	expires int64         // the session's, which with many keys would be one more trip to main memory
	mark    mark
	place   int32 // in the shard's ring
	slot    uint16
	off     bool        // the session is inactive of itself
	clear   bool        // the identity is the key itself
	used    atomic.Bool // since the hand of the clock last passed
}

// nameLength is how much of a hash logs show, in hex digits.
const nameLength = 12

// identity returns what the store knows the session by.
func (e *entry) identity() string {
	if e.clear {
		return e.text[:len(e.text)-nameLength]
	}
	return e.text
}

// name returns what logs call the key: the beginning of a hash.
func (e *entry) name() string {
	if e.clear {
		return e.text[len(e.text)-nameLength:]
	}
	return e.text[:min(len(e.text), nameLength)]
}

// shard holds a part of the sessions in memory, and of the credentials that are
// known to be unknown.
type shard struct {
	mu      sync.RWMutex
	entries map[uint64]*entry
	ring    []*entry // all of entries, in the order in which the clock's hand passes them
	hand    int
	most    int
	unknown unknowns
	flights map[string]*flight

	hits    atomic.Uint64
	refused atomic.Uint64
}

// newShards spreads size sessions and unknown credentials over as many locks as
// is worth it.
func newShards(size, unknown int) []shard {
	n := 1 << bits.Len(uint(min(size/256, 255)))
	all := make([]shard, n)
	for i := range all {
		all[i] = shard{
			entries: make(map[uint64]*entry),
			most:    (size + n - 1) / n,
			unknown: unknowns{byHash: make(map[uint64]unknownKey), most: (unknown + n - 1) / n},
			flights: make(map[string]*flight),
		}
	}
	return all
}

// get returns the entry of a credential, or nil.
func (sh *shard) get(hash uint64, token []byte, sc *scope) *entry {
	sh.mu.RLock()
	e := sh.entries[hash]
	sh.mu.RUnlock()
	if e == nil || e.token != string(token) || e.scope != sc && e.scope.org != sc.org {
		return nil
	}
	if !e.used.Load() { // most often it is: a write would cost every core its copy
		e.used.Store(true)
	}
	return e
}

// put keeps an entry, in place of the one that was found by the same hash, or
// else of one that has not been used for a while.
func (sh *shard) put(e *entry) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if old := sh.entries[e.hash]; old != nil {
		e.place = old.place
		e.used.Store(true)
	} else if len(sh.ring) < sh.most {
		e.place = int32(len(sh.ring))
		sh.ring = append(sh.ring, nil)
	} else {
		e.place = sh.evict()
	}
	sh.ring[e.place] = e
	sh.entries[e.hash] = e
}

// evict makes room and returns where. The hand passes an entry that was used
// since it came by last; after one round all have been spared once.
func (sh *shard) evict() int32 {
	for {
		if sh.hand++; sh.hand >= len(sh.ring) {
			sh.hand = 0
		}
		if e := sh.ring[sh.hand]; !e.used.Swap(false) {
			delete(sh.entries, e.hash)
			return int32(sh.hand)
		}
	}
}

// forget drops the entry that is found by a hash, if there is one.
func (sh *shard) forget(hash uint64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if e := sh.entries[hash]; e != nil {
		sh.drop(e)
	}
}

// sweep drops entries that were loaded before oldest.
func (sh *shard) sweep(oldest time.Duration) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i := len(sh.ring) - 1; i >= 0; i-- {
		if e := sh.ring[i]; e.loaded < oldest {
			sh.drop(e)
		}
	}
}

// drop takes an entry out; the last of the ring takes its place. The caller
// holds the lock.
func (sh *shard) drop(e *entry) {
	delete(sh.entries, e.hash)
	last := len(sh.ring) - 1
	moved := sh.ring[last]
	sh.ring[e.place] = moved
	moved.place = e.place
	sh.ring[last] = nil
	sh.ring = sh.ring[:last]
}

func (sh *shard) addTo(st *Stats) {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	st.Hits += sh.hits.Load()
	st.Unknown += sh.refused.Load()
	st.Entries += len(sh.entries)
	st.Unknowns += len(sh.unknown.byHash)
}
