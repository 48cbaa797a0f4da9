package usage

import (
	"encoding/binary"
	"errors"
	"math"
)

// A tally is how often each key called, at the place that its number is. Numbers
// are dense: there are hardly more places than keys.
type tally []int64

// most is the largest number that a key may have: beyond it a rank is broken.
const most = 50_000_000

// errBroken says that a rank was not written by pack.
var errBroken = errors.New("a rank of keys is broken")

// add counts calls of a key. What is beyond all numbers stays at the largest.
func (t *tally) add(number int, calls int64) {
	for number >= len(*t) {
		*t = append(*t, make([]int64, max(number+1-len(*t), len(*t)))...)
	}
	at := &(*t)[number]
	*at += min(calls, math.MaxInt64-*at)
}

// pack writes a tally in the order of numbers: of every key that has called, how
// many numbers after the one before it is, and how often it did.
func (t tally) pack() []byte {
	packed := []byte{}
	last := -1
	for number, calls := range t {
		if calls > 0 {
			packed = binary.AppendUvarint(packed, uint64(number-last))
			packed = binary.AppendUvarint(packed, uint64(calls))
			last = number
		}
	}
	return packed
}

// unpack adds what pack wrote. A month of a large organisation is millions of
// numbers, nearly all of one byte or two.
func (t *tally) unpack(packed []byte) error {
	sums, number := *t, -1
	for at := 0; at < len(packed); {
		step, after := uvarint(packed, at)
		if after < 0 || step == 0 || step > most {
			return errBroken
		}
		calls, after := uvarint(packed, after)
		if after < 0 || calls > math.MaxInt64 {
			return errBroken
		}
		at = after
		if number += int(step); number > most {
			return errBroken
		}
		if number >= len(sums) {
			t.add(number, 0)
			sums = *t
		}
		sums[number] += min(int64(calls), math.MaxInt64-sums[number])
	}
	return nil
}

// uvarint reads the number that begins at a place, and returns where the next one
// does; less than 0: there is none.
func uvarint(b []byte, at int) (value uint64, after int) {
	if at < len(b) && b[at] < 0x80 {
		return uint64(b[at]), at + 1
	}
	return longUvarint(b, at)
}

func longUvarint(b []byte, at int) (value uint64, after int) {
	if at+1 < len(b) && b[at+1] < 0x80 {
		return uint64(b[at]&0x7f) | uint64(b[at+1])<<7, at + 2
	}
	value, n := binary.Uvarint(b[at:])
	if n <= 0 {
		return 0, -1
	}
	return value, at + n
}
