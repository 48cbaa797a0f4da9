package auth

import "time"

// table finds entries by the keyed hash of their credential. Its places are in
// one block, each hash at the first free place from its own on, so that a look-up
// nearly always touches one line of the processor's cache before the entry.
//
// The places are also the ring that a clock's hand goes round.
type table struct {
	places []place // as many as a power of two, at most three quarters taken; none before the first entry
	n      int     // taken
	hand   int
}

type place struct {
	hash  uint64
	entry *entry // nil: free
}

// leastPlaces is how many places a table begins with.
const leastPlaces = 8

func (t *table) next(i int) int { return (i + 1) & (len(t.places) - 1) }

func (t *table) home(hash uint64) int { return int(hash & uint64(len(t.places)-1)) }

// find returns the entry of a hash, or nil.
func (t *table) find(hash uint64) *entry {
	if t.n == 0 {
		return nil
	}
	return t.places[t.seek(hash)].entry
}

// seek returns the place of a hash, or the free one where it would be put. There
// must be places.
func (t *table) seek(hash uint64) int {
	i := t.home(hash)
	for t.places[i].entry != nil && t.places[i].hash != hash {
		i = t.next(i)
	}
	return i
}

// set puts an entry in the place of its hash.
func (t *table) set(hash uint64, e *entry) {
	if (t.n+1)*4 > len(t.places)*3 {
		t.grow()
	}
	p := &t.places[t.seek(hash)]
	if p.entry == nil {
		t.n++
	}
	*p = place{hash, e}
}

func (t *table) grow() {
	old := t.places
	t.places, t.hand = make([]place, max(2*len(old), leastPlaces)), 0
	for _, p := range old {
		if p.entry != nil {
			t.places[t.seek(p.hash)] = p
		}
	}
}

// remove takes the entry of a hash out, if there is one.
func (t *table) remove(hash uint64) {
	if t.find(hash) != nil {
		t.free(t.seek(hash))
	}
}

// free frees a taken place. Entries behind it that would no longer be found move
// up, one of them perhaps to that very place.
func (t *table) free(i int) {
	last := len(t.places) - 1
	for j := t.next(i); t.places[j].entry != nil; j = t.next(j) {
		if (j-t.home(t.places[j].hash))&last >= (j-i)&last {
			t.places[i] = t.places[j]
			i = j
		}
	}
	t.places[i] = place{}
	t.n--
}

// evict takes an entry out and returns its hash. The hand passes one that was
// used since it came by last; after one round all have been spared once. There
// must be an entry.
func (t *table) evict() uint64 {
	for ; ; t.hand = t.next(t.hand) {
		if p := t.places[t.hand]; p.entry != nil && p.entry.flags.And(^uint32(isUsed))&isUsed == 0 {
			t.free(t.hand)
			return p.hash
		}
	}
}

// sweep takes out entries that were loaded before oldest.
func (t *table) sweep(oldest time.Duration) {
	for i := 0; i < len(t.places); {
		if e := t.places[i].entry; e != nil && e.loaded < oldest {
			t.free(i) // what moves up to it is looked at next
			continue
		}
		i++
	}
}
