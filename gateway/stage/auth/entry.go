package auth

import (
	"errors"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// entry is a cached session. It does not change once it is cached, except that
// grants are added.
type entry struct {
	text    string // the identity of the session in the store, a name for logs if the identity must not be shown, and the credential
	scope   *scope // in which it was looked up
	grants  pipeline.Grants
	loaded  time.Duration // since Sessions.base
	stamp   stamp
	slot    uint16 // of the identity
	length  uint16 // of the credential, in bytes
	flags   uint8
	session definition.Session // in the entry, which saves an allocation for each
}

// Flags of an entry.
const (
	isOff     = 1 << iota // the session is inactive
	isSecret              // the identity must not be shown: it is the key itself, or a legacy hash
	isInGrace             // the key has a successor
)

func (e *entry) is(flag uint8) bool { return e.flags&flag != 0 }

// setSession sets the session and what is derived from it.
func (e *entry) setSession(session *definition.Session) {
	e.session = *session
	if session.IsInactive && len(session.Policies()) == 0 { // with policies, those decide
		e.flags |= isOff
	}
}

// isOf reports whether the entry is that of a credential.
func (e *entry) isOf(token []byte, sc *scope) bool {
	return e.token() == string(token) && (e.scope == sc || e.scope.org == sc.org && e.scope.kind == sc.kind)
}

// nameLength is how much of a hash logs show, in hex digits.
const nameLength = 12

// token returns the credential.
func (e *entry) token() string { return e.text[len(e.text)-int(e.length):] }

// identity returns the name of the session in the store.
func (e *entry) identity() string {
	end := len(e.text) - int(e.length)
	if e.is(isSecret) {
		end -= nameLength
	}
	return e.text[:end]
}

// name returns the key's name in logs: the first digits of a hash.
func (e *entry) name() string {
	end := len(e.text) - int(e.length)
	if e.is(isSecret) {
		return e.text[end-nameLength : end]
	}
	return e.text[:min(end, nameLength)]
}

// get returns the cached entry of a credential, or nil.
func (s *Sessions) get(hash uint64, token []byte, sc *scope) *entry {
	if e, ok := s.entries.Get(hash); ok && e.isOf(token, sc) {
		return e
	}
	return nil
}

// keep caches what a look-up found, or that it found nothing.
func (s *Sessions) keep(w *wanted, c *call, check uint64) {
	switch {
	case c.entry != nil:
		s.entries.Put(w.hash, c.entry)
	case errors.Is(c.err, keystore.ErrNotFound):
		s.entries.Delete(w.hash)
		if s.opts.UnknownTTL > 0 {
			s.unknown.Put(w.hash, unknownKey{check: check, until: w.now + s.opts.UnknownTTL, seen: c.seen})
		}
	}
}

// maxCandidates is how many identities one credential may be stored under: alone
// and after its organisation, and three of each older algorithm.
const maxCandidates = 11

// unknownKey is a credential that the store does not have. Two keyed hashes of 64
// bits stand for the credential.
type unknownKey struct {
	check uint64
	until time.Duration // since Sessions.base
	seen  trail
}

// isUnknown reports whether a credential was recently not found.
func (s *Sessions) isUnknown(hash, check uint64, now time.Duration) bool {
	u, ok := s.unknown.Get(hash)
	if !ok || u.check != check || now >= u.until || !s.changes.hold(&u.seen) {
		return false
	}
	s.stats.unknown.Add(1)
	return true
}

// changeSlots is how many invalidation counters there are. Identities that share one
// are all read again when one of them changes.
const changeSlots = 1 << 16

// invalidations count the changes that the store reported. What is loaded is
// stamped with the counts from before the load, so that neither a cached session
// nor one that is being loaded outlives a change.
type invalidations struct {
	all   atomic.Uint32 // reports that any session may have changed
	slots [changeSlots]atomic.Uint32
}

// A stamp is the state of the counters for one identity.
type stamp struct{ all, slot uint32 }

func (i *invalidations) stamp(slot uint16) stamp {
	return stamp{all: i.all.Load(), slot: i.slots[slot].Load()}
}

// slotOf returns the slot of an identity.
func (s *Sessions) slotOf(identity string) uint16 {
	return uint16(maphash.String(s.second, identity))
}

// A trail is the stamps of all identities that a look-up tried. The counters only
// grow, so their sum shows whether any of them has changed.
type trail struct {
	all, sum uint32
	n        uint8
	slots    [maxCandidates + 1]uint16 // one more for the session of a key that replaced another
}

// add adds an identity that is about to be looked up.
func (t *trail) add(slot uint16, at stamp) {
	if t.n == 0 {
		t.all = at.all
	}
	t.sum += at.slot
	t.slots[t.n] = slot
	t.n++
}

// hold reports whether none of the identities of a trail has changed.
func (i *invalidations) hold(t *trail) bool {
	sum := uint32(0)
	for _, slot := range t.slots[:t.n] {
		sum += i.slots[slot].Load()
	}
	return sum == t.sum && i.all.Load() == t.all
}
