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

// unpack adds what pack wrote.
func (t *tally) unpack(packed []byte) error {
	number := -1
	for len(packed) > 0 {
		step, n := binary.Uvarint(packed)
		if n <= 0 || step == 0 || step > most {
			return errBroken
		}
		calls, m := binary.Uvarint(packed[n:])
		if m <= 0 || calls > math.MaxInt64 {
			return errBroken
		}
		packed = packed[n+m:]
		if number += int(step); number > most {
			return errBroken
		}
		if number < len(*t) { // most often
			at := &(*t)[number]
			*at += min(int64(calls), math.MaxInt64-*at)
			continue
		}
		t.add(number, int64(calls))
	}
	return nil
}
