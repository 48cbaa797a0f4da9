// Package recall remembers what a shared store last said about quotas.
package recall

import (
	"hash/maphash"
	"strings"
	"sync"
)

// Keys is how many keys' last replies are worth keeping, for all of a store.
const Keys = 100_000

// parts is how many locks the entries are spread over.
const parts = 16

// freshFor is how long the end of a period is believed without asking again, in
// milliseconds: another gateway may have reset the quota, whose next period
// ends at another time.
const freshFor = 1000

// A Recall keeps what the store last said about quotas, of the keys seen
// latest: where to go on from when the store is away, what to give back when it
// has lost its data, and what need not be asked again.
type Recall struct {
	seed maphash.Seed
	part [parts]part
	most int // entries a part may hold
}

type part struct {
	mu      sync.Mutex
	entries map[string]*Entry
	ring    []*Entry // eviction order: a hand passes over entries used since it last came by
	hand    int
}

// An Entry is the last reply about one quota. It belongs to its Recall; a copy
// that Open returned may be read.
type Entry struct {
	Key   string
	Used  int64
	Reset int64 // unix milliseconds; 0: never renews

	asked    int64  // unix milliseconds when the store told Reset; 0: ask
	flight   uint64 // the flight that told it, to ignore one that landed late
	touched, // used again since the hand came by
	gone bool
}

// New returns an empty Recall of about so many entries.
func New(most int) *Recall {
	r := &Recall{seed: maphash.MakeSeed(), most: max(most/parts, 1)}
	for i := range r.part {
		r.part[i].entries = make(map[string]*Entry)
	}
	return r
}

// Hash is the hash of a key, by which other methods find it.
func (r *Recall) Hash(key string) uint64 { return maphash.String(r.seed, key) }

func (r *Recall) of(hash uint64) *part { return &r.part[hash%parts] }

// Look returns the entry of a key, nil when there is none, and the end of its
// period; ask tells that the end is not known well enough.
func (r *Recall) Look(key string, hash uint64, now int64) (e *Entry, reset int64, ask bool) {
	p := r.of(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	if e = p.entries[key]; e == nil {
		return nil, 0, true
	}
	over := e.Reset != 0 && e.Reset <= now
	return e, e.Reset, over || uint64(now-e.asked) > freshFor // a clock set back asks as well
}

// A Told is what a flight learned about a quota. Flights are numbered in the
// order in which they left.
type Told struct {
	Used   int64 // after the flight's calls
	Before int64 // before them
	Reset  int64 // unix milliseconds; 0: never renews
	Asked  bool  // Reset is what the store said now, and not what Look said
	Flight uint64
	Now    int64 // unix milliseconds
	Doubt  bool  // the store may have lost its data
}

// Note remembers what a flight said. e is what Look returned, and may be nil.
// Of a store in doubt a lower count in a period that is still open is not
// believed: it would be what is given back.
func (r *Recall) Note(e *Entry, key string, hash uint64, t Told) {
	p := r.of(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	if e == nil || e.gone {
		e = p.entry(key, r.most)
	} else {
		e.touched = true
	}
	doubt := t.Doubt && t.Used < e.Used && (e.Reset == 0 || e.Reset > t.Now)
	if t.Flight < e.flight || doubt {
		return
	}
	if t.Asked {
		e.Reset, e.asked = t.Reset, t.Now
	} else if t.Before < e.Used {
		e.asked = 0 // someone reset it: its period is another one
	} else if e.flight == 0 {
		e.Reset = t.Reset // its entry was forgotten meanwhile
	}
	e.Used, e.flight = t.Used, t.Flight
}

// Add notes calls that the store was told of without saying what it then held.
func (r *Recall) Add(key string, calls, reset int64) {
	p := r.of(r.Hash(key))
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entry(key, r.most)
	if e.Reset != reset {
		e.Used, e.Reset, e.asked = 0, reset, 0
	}
	e.Used += calls
}

// entry returns a key's entry. A new one takes the room of the one that was not
// used for longest, about, when there is no other. It does not count as touched
// yet: else the hand, having passed over nothing but touched entries, would take
// one that is used all the time to make room for one that came once.
func (p *part) entry(key string, most int) *Entry {
	if e := p.entries[key]; e != nil {
		e.touched = true
		return e
	}
	e := &Entry{Key: strings.Clone(key)} // it may be a part of something large
	p.entries[key] = e
	if len(p.ring) < most {
		p.ring = append(p.ring, e)
		return e
	}
	for p.ring[p.hand].touched && !p.ring[p.hand].gone {
		p.ring[p.hand].touched = false
		p.hand = (p.hand + 1) % len(p.ring)
	}
	if old := p.ring[p.hand]; !old.gone {
		delete(p.entries, old.Key)
		old.gone = true // a flight may hold it
	}
	p.ring[p.hand] = e
	p.hand = (p.hand + 1) % len(p.ring)
	return e
}

// Find returns what is known of a key's open period.
func (r *Recall) Find(key string, now int64) (used, reset int64, ok bool) {
	p := r.of(r.Hash(key))
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[key]
	if e == nil || e.Reset != 0 && e.Reset <= now {
		return 0, 0, false
	}
	return e.Used, e.Reset, true
}

// Forget drops a key that was reset.
func (r *Recall) Forget(key string) {
	p := r.of(r.Hash(key))
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entries[key]; e != nil {
		e.gone = true
		delete(p.entries, key)
	}
}

// Open returns a copy of all entries whose period is open and that have calls.
func (r *Recall) Open(now int64) []Entry {
	var all []Entry
	for i := range r.part {
		p := &r.part[i]
		p.mu.Lock()
		for _, e := range p.entries {
			if e.Used > 0 && (e.Reset == 0 || e.Reset > now) {
				all = append(all, *e)
			}
		}
		p.mu.Unlock()
	}
	return all
}
