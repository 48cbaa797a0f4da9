package script

import "math"

// What a Reply names instead of a limit that refused.
const (
	None    = 255 // None: all calls were granted.
	Foreign = 254 // Foreign: a key holds what is no counter of its kind.
)

// What a Reply tells instead of the end of a quota's period.
const (
	Never    = -1 // Never: the period does not end.
	Closed   = -2 // Closed: none is open.
	NotAsked = -3 // NotAsked: one is open, and was before the item.
)

// A Reply is what take.lua answers to one item.
type Reply string

// ReplySize is the length of a Reply about so many limits.
func ReplySize(limits int) int { return 8 + 16*limits }

// Outcome returns how many calls were granted, and the index of the limit that
// refused the others, None or Foreign.
func (r Reply) Outcome() (granted, refused int) {
	n := int(r.number(0))
	return n >> 8, n & 255
}

// Limit returns what was free before the item under limit i, and its reset: the
// end of a quota's period in unix milliseconds, Never, Closed or NotAsked; of a
// rate, the milliseconds until a call is freed.
func (r Reply) Limit(i int) (free, reset int64) {
	return r.number(1 + 2*i), r.number(2 + 2*i)
}

func (r Reply) number(i int) int64 {
	s := string(r[8*i : 8*i+8])
	bits := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	return int64(math.Float64frombits(bits))
}
