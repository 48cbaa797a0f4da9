package script

import "math"

// Values of refused that are not the index of a limit.
const (
	None    = 255 // None means that all calls were granted.
	Foreign = 254 // Foreign means that a key holds something other than a counter of its kind.
)

// Values of reset that are not the end of a quota's period.
const (
	Never    = -1 // Never means that the period does not end.
	Closed   = -2 // Closed means that no period is open.
	NotAsked = -3 // NotAsked means that a period is open, and was before the item.
)

// A Reply is what take.lua replies to one item.
type Reply struct {
	numbers []byte
	calls   int   // of the item
	period  int64 // of its first limit, microseconds
}

// Reply takes the reply to an item off the front of the script's reply, and returns
// it and the rest. ok is false if the script's reply is too short.
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

// isShort reports whether the reply has the short form, in which all calls of a
// rate and a quota were granted. Only in that form is the first number negative.
func (r Reply) isShort() bool { return len(r.numbers) >= 8 && r.numbers[7]&0x80 != 0 }

// Outcome returns how many calls were granted, and the index of the limit that
// refused the others, or None or Foreign.
func (r Reply) Outcome() (granted, refused int) {
	if r.isShort() {
		return r.calls, None
	}
	n := int(r.number(0))
	return n >> 8, n & 255
}

// Limit returns what was left of limit i before the item, and its reset: for a quota
// the end of its period in unix milliseconds, or Never, Closed or NotAsked; for a
// rate the milliseconds until it frees a call.
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
