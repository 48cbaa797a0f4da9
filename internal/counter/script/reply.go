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
type Reply struct {
	numbers []byte
	calls   int   // of the item
	period  int64 // of its first limit, microseconds
}

// Reply takes the reply to an item from the beginning of what the script said, and
// returns it with the others. It is not ok if that is too short.
func (b *Batch) Reply(item int, all []byte) (r Reply, rest []byte, ok bool) {
	forms := b.Forms(item)
	size := 8 * (1 + 2*len(forms))
	if r = (Reply{numbers: all, calls: b.calls(item), period: forms[0].Period}); r.isShort() {
		size = 8 * len(forms)
	}
	if len(all) < size {
		return Reply{}, all, false
	}
	r.numbers = all[:size]
	return r, all[size:], true
}

// isShort tells whether all calls of a common item were granted, which is told in
// fewer numbers. The first of these is negative, and others begin with one that is not.
func (r Reply) isShort() bool { return len(r.numbers) >= 8 && r.numbers[7]&0x80 != 0 }

// Outcome returns how many calls were granted, and the index of the limit that
// refused the others, None or Foreign.
func (r Reply) Outcome() (granted, refused int) {
	if r.isShort() {
		return r.calls, None
	}
	n := int(r.number(0))
	return n >> 8, n & 255
}

// Limit returns what was free before the item under limit i, and its reset: the
// end of a quota's period in unix milliseconds, Never, Closed or NotAsked; of a
// rate, the milliseconds until a call is freed.
func (r Reply) Limit(i int) (free, reset int64) {
	switch {
	case !r.isShort():
		return r.number(1 + 2*i), r.number(2 + 2*i)
	case i == 0:
		return -1 - r.number(0), r.period / 1000
	default:
		return r.number(i), NotAsked
	}
}

func (r Reply) number(i int) int64 {
	s := r.numbers[8*i : 8*i+8]
	bits := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	return int64(math.Float64frombits(bits))
}
