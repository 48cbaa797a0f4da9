package auth

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/slab"
)

// entry is a session in memory that is ready for requests. It has no field that
// another can stand for, and what a request needs of it lies together.
type entry struct {
	text    string // the identity under which the store has the session, a name for logs when that is no hash, and the credential
	scope   *scope // in which it was looked up
	session *definition.Session
	grants  pipeline.Grants
	loaded  time.Duration // since Sessions.base
	expires int64         // the session's, which with many keys would be one more trip to main memory
	mark    mark
	slot    uint16
	length  uint16        // of the credential, which a request must equal
	flags   atomic.Uint32 // in one word, for size
}

// The flags of an entry.
const (
	isUsed     = 1 << iota // since the hand of the clock last passed
	isOff                  // the session is inactive of itself
	isClear                // the identity is the key itself
	isRetiring             // the key has a successor
)

func (e *entry) is(flag uint32) bool { return e.flags.Load()&flag != 0 }

// hold sets the session.
func (e *entry) hold(session *definition.Session) {
	e.session, e.expires = session, session.Expires
	if session.IsInactive && len(session.Policies()) == 0 { // with policies, those alone decide
		e.flags.Or(isOff)
	}
}

// isOf tells whether the entry is that of a credential.
func (e *entry) isOf(token []byte, sc *scope) bool {
	return e.token() == string(token) && (e.scope == sc || e.scope.org == sc.org && e.scope.kind == sc.kind)
}

// nameLength is how much of a hash logs show, in hex digits.
const nameLength = 12

// token returns the credential.
func (e *entry) token() string { return e.text[len(e.text)-int(e.length):] }

// identity returns what the store knows the session by.
func (e *entry) identity() string {
	end := len(e.text) - int(e.length)
	if e.is(isClear) {
		end -= nameLength
	}
	return e.text[:end]
}

// name returns what logs call the key: the beginning of a hash.
func (e *entry) name() string {
	end := len(e.text) - int(e.length)
	if e.is(isClear) {
		return e.text[end-nameLength : end]
	}
	return e.text[:min(end, nameLength)]
}

// shard holds a part of the sessions in memory, and of the credentials that are
// known to be unknown. Where there are more sessions than are kept ready, all are
// packed, and those that were used of late ready as well.
type shard struct {
	mu         sync.RWMutex
	entries    table // those that are ready, at most as many as most
	most       int
	packs      bool
	packed     slab.Table // at most as many as mostPacked, which is more than most
	mostPacked int
	hits       atomic.Uint64
	unpacked   atomic.Uint64
	sightings  sightings // where packs
	refused    atomic.Uint64
	unknown    unknowns
	flights    map[string]*flight
}

// newShards spreads sessions and unknown credentials over as many locks as is
// worth it.
func newShards(o *SessionOptions) []shard {
	n := 1 << bits.Len(uint(min(o.Size/256, 255)))
	all := make([]shard, n)
	for i := range all {
		size := (o.Size + n - 1) / n
		ready := min((o.Ready+n-1)/n, size)
		all[i] = shard{
			most: ready, packs: ready < size, mostPacked: size,
			unknown: unknowns{byHash: make(map[uint64]unknownKey), most: (o.UnknownSize + n - 1) / n},
			flights: make(map[string]*flight),
		}
		if all[i].packs {
			all[i].sightings = newSightings(ready)
		}
	}
	return all
}

// get returns the entry of a credential, or nil. It may be good for host alone,
// which may be nil.
func (sh *shard) get(hash uint64, token []byte, sc *scope, host *pipeline.Exchange) *entry {
	var record []byte
	sh.mu.RLock()
	e := sh.entries.find(hash)
	if e == nil {
		record = sh.find(hash)
	}
	full := sh.entries.n >= sh.most
	sh.mu.RUnlock()
	switch {
	case record == nil:
	case full && host != nil && host.Guest == nil && !sh.sightings.often(hash):
		sh.unpacked.Add(1)
		return receive(host, record, token, sc)
	default:
		return sh.prepare(hash, record, token, sc)
	}
	if e == nil || !e.isOf(token, sc) {
		return nil
	}
	if !e.is(isUsed) { // most often it is: a write would cost every core its copy
		e.flags.Or(isUsed)
	}
	return e
}

// put keeps an entry.
func (sh *shard) put(hash uint64, e *entry) {
	var record []byte
	if sh.packs {
		var room [512]byte // for most
		record = e.pack(room[:0])
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.packs {
		sh.keepPacked(hash, record)
	}
	sh.ready(hash, e)
}

// forget drops the entry that is found by a hash, if there is one.
func (sh *shard) forget(hash uint64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.entries.remove(hash)
	if i := sh.packed.Find(hash); i >= 0 {
		sh.packed.Remove(i)
	}
}

// sweep drops entries that were loaded before oldest.
func (sh *shard) sweep(oldest time.Duration) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.entries.sweep(oldest)
	sh.packed.Sweep(func(record []byte) bool { return loadedOf(record) < oldest })
}

func (sh *shard) addTo(st *Stats) {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	st.Hits += sh.hits.Load()
	st.Unknown += sh.refused.Load()
	st.Unpacked += sh.unpacked.Load()
	st.Entries += max(sh.entries.n, sh.packed.Len())
	st.Unknowns += len(sh.unknown.byHash)
}
