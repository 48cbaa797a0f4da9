package auth

import "time"

// maxCandidates is how many identities one credential may be stored under: bare
// and behind its organisation, and three of each older algorithm.
const maxCandidates = 11

// unknownKey is a credential that no store entry was found for. The credential
// itself is not kept: twice 64 bits of keyed hashes stand for it.
type unknownKey struct {
	check uint64
	until time.Duration // since Sessions.base
	seen  trail
}

// trail is where a look-up has been: the epochs of all identities that it tried.
// As epochs only grow, their sum tells whether any of them has changed.
type trail struct {
	all, sum uint32
	n        uint8
	slots    [maxCandidates + 1]uint16 // that of the session of a key that followed another too
}

// add notes an identity that is about to be looked up.
func (t *trail) add(slot uint16, m mark) {
	if t.n == 0 {
		t.all = m.all
	}
	t.sum += m.slot
	t.slots[t.n] = slot
	t.n++
}

// holds tells whether nothing has changed for any of the identities.
func (t *trail) holds(e *epochs) bool {
	sum := uint32(0)
	for _, slot := range t.slots[:t.n] {
		sum += e.slots[slot].Load()
	}
	return sum == t.sum && e.all.Load() == t.all
}

// unknowns remembers a bounded number of unknown credentials, each for the same
// time, so that the first in is the first to go.
type unknowns struct {
	byHash map[uint64]unknownKey
	order  []uint64 // hashes, a ring that begins at first once it is full
	first  int
	most   int
}

// isUnknown tells whether a credential was not found a short while ago.
func (sh *shard) isUnknown(e *epochs, hash, check uint64, now time.Duration) bool {
	sh.mu.RLock()
	u, ok := sh.unknown.byHash[hash]
	sh.mu.RUnlock()
	if !ok || u.check != check || now >= u.until || !u.seen.holds(e) {
		return false
	}
	sh.refused.Add(1)
	return true
}

// markUnknown remembers that a credential was not found.
func (sh *shard) markUnknown(hash uint64, k unknownKey) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.unknown.add(hash, k)
}

// add remembers a credential, in place of the one that was remembered longest
// when there is no room. The caller holds the shard's lock.
func (u *unknowns) add(hash uint64, k unknownKey) {
	_, known := u.byHash[hash]
	switch {
	case known:
	case len(u.order) < u.most:
		u.order = append(u.order, hash)
	default:
		delete(u.byHash, u.order[u.first])
		u.order[u.first] = hash
		if u.first++; u.first == len(u.order) {
			u.first = 0
		}
	}
	u.byHash[hash] = k
}
