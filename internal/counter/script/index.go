package script

// places is the size of an index: a power of two above MaxKeys.
const places = 1024

// An index finds keys by their hashes. Emptying it takes constant time, as batches
// are filled and emptied thousands of times a second.
type index struct {
	place [places]place
	turn  uint32 // places with another turn are free
}

type place struct {
	turn uint32
	hash uint32
	item int32 // the newest that begins with the key; -1 if none does
}

func (x *index) reset() {
	if x.turn++; x.turn == 0 {
		clear(x.place[:])
		x.turn = 1
	}
}

// at returns the place of a hash, or the free one where it belongs. The upper half
// of the hash distinguishes those that begin at the same place.
func (x *index) at(hash uint64) *place {
	for i := hash; ; i++ {
		p := &x.place[i%places]
		if p.turn != x.turn || p.hash == uint32(hash>>32) {
			return p
		}
	}
}

// find returns the newest item that begins with a key, or -1.
func (x *index) find(hash uint64) int {
	if p := x.at(hash); p.turn == x.turn {
		return int(p.item)
	}
	return -1
}

// put adds a key that begins an item, or with item -1 one that does not, and reports
// whether it was there before.
func (x *index) put(hash uint64, item int32) bool {
	p := x.at(hash)
	was := p.turn == x.turn
	if !was {
		*p = place{turn: x.turn, hash: uint32(hash >> 32), item: item}
	} else if item >= 0 {
		p.item = item
	}
	return was
}
