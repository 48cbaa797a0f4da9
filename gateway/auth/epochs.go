package auth

import (
	"hash/maphash"
	"sync/atomic"
)

// slots is how many epochs there are. A session shares its epoch with one in so
// many, and is read again needlessly when one of those changes.
const slots = 1 << 16

// epochs count the changes that the store has reported. What is loaded is marked
// with the epoch that was current before the load began, so that neither a
// session in memory nor one on its way into it outlives a change.
type epochs struct {
	all   atomic.Uint32 // reports that anything may have changed
	slots [slots]atomic.Uint32
}

// mark is the state of the epochs for one slot.
type mark struct{ all, slot uint32 }

func (e *epochs) mark(slot uint16) mark {
	return mark{all: e.all.Load(), slot: e.slots[slot].Load()}
}

// slotOf returns the slot of an identity.
func (s *Sessions) slotOf(identity string) uint16 {
	return uint16(maphash.String(s.second, identity))
}
