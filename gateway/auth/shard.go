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
// field that another can stand for, and what a request needs of it lies together.
type entry struct {
	text    string // the identity under which the store has the session, a name for logs when that is no hash, and the credential
	scope   *scope // in which it was looked up
	session *definition.Session
	grants  pipeline.Grants
	loaded  time.Duration // since Sessions.base
	expires int64         // the session's, which with many keys would be one more trip to main memory
	mark    mark
	slot    uint16
	length  uint16      // of the credential, which a request must equal
	off     bool        // the session is inactive of itself
	clear   bool        // the identity is the key itself
	used    atomic.Bool // since the hand of the clock last passed
}

// nameLength is how much of a hash logs show, in hex digits.
const nameLength = 12

// token returns the credential.
func (e *entry) token() string { return e.text[len(e.text)-int(e.length):] }

// identity returns what the store knows the session by.
func (e *entry) identity() string {
	end := len(e.text) - int(e.length)
	if e.clear {
		end -= nameLength
	}
	return e.text[:end]
}

// name returns what logs call the key: the beginning of a hash.
func (e *entry) name() string {
	end := len(e.text) - int(e.length)
	if e.clear {
		return e.text[end-nameLength : end]
	}
	return e.text[:min(end, nameLength)]
}

// shard holds a part of the sessions in memory, and of the credentials that are
// known to be unknown.
type shard struct {
	mu      sync.RWMutex
	entries table // at most as many as most
	most    int
	hits    atomic.Uint64
	refused atomic.Uint64
	unknown unknowns
	flights map[string]*flight
}

// newShards spreads size sessions and unknown credentials over as many locks as
// is worth it.
func newShards(size, unknown int) []shard {
	n := 1 << bits.Len(uint(min(size/256, 255)))
	all := make([]shard, n)
	for i := range all {
		all[i] = shard{
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
	e := sh.entries.find(hash)
	sh.mu.RUnlock()
	if e == nil || e.token() != string(token) || e.scope != sc && e.scope.org != sc.org {
		return nil
	}
	if !e.used.Load() { // most often it is: a write would cost every core its copy
		e.used.Store(true)
	}
	return e
}

// put keeps an entry, in place of the one that was found by the same hash, or
// else of one that has not been used for a while.
func (sh *shard) put(hash uint64, e *entry) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.entries.find(hash) != nil {
		e.used.Store(true)
	} else if sh.entries.n >= sh.most {
		sh.entries.evict()
	}
	sh.entries.set(hash, e)
}

// forget drops the entry that is found by a hash, if there is one.
func (sh *shard) forget(hash uint64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.entries.remove(hash)
}

// sweep drops entries that were loaded before oldest.
func (sh *shard) sweep(oldest time.Duration) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.entries.sweep(oldest)
}

func (sh *shard) addTo(st *Stats) {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	st.Hits += sh.hits.Load()
	st.Unknown += sh.refused.Load()
	st.Entries += sh.entries.n
	st.Unknowns += len(sh.unknown.byHash)
}
