package counter

import (
	"hash/maphash"
	"sync"
	"time"
)

// recallMost is how many keys' last replies are kept, for all lanes together.
const recallMost = 100_000

// A recall keeps what the store last said about quotas, of the keys seen
// latest: where to go on from when the store is away, and what to give back
// when it has lost its data.
type recall struct {
	seed maphash.Seed
	part [16]recallPart
	most int // entries a part may hold
}

type recallPart struct {
	mu      sync.Mutex
	entries map[string]*known
	ring    []*known // eviction order: a hand passes over entries used since it last came by
	hand    int
}

// known is the last reply about one quota.
type known struct {
	key      string
	used     int64
	reset    int64  // unix milliseconds; 0: never renews
	flight   uint64 // the flight that told it, to ignore one that landed late
	touched, // used again since the hand came by
	gone bool
}

func newRecall(most int) *recall {
	r := &recall{seed: maphash.MakeSeed(), most: max(most/16, 1)}
	for i := range r.part {
		r.part[i].entries = make(map[string]*known)
	}
	return r
}

func (r *recall) of(key string) *recallPart {
	return &r.part[maphash.String(r.seed, key)%uint64(len(r.part))]
}

// note remembers what a flight said. Flights are numbered in the order in which
// they left. Of a store in doubt, which may have lost its data, a lower count in
// a period that is still open is not believed: it would be what is given back.
func (r *recall) note(key string, used, reset int64, flight uint64, doubt bool) {
	p := r.of(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entry(key, r.most)
	doubt = doubt && used < e.used && (e.reset == 0 || e.reset > time.Now().UnixMilli())
	if flight >= e.flight && !doubt {
		e.used, e.reset, e.flight = used, reset, flight
	}
}

// add notes calls that the store was told of without saying what it then held.
func (r *recall) add(key string, calls, reset int64) {
	p := r.of(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entry(key, r.most)
	if e.reset != reset {
		e.used, e.reset = 0, reset
	}
	e.used += calls
}

// entry returns a key's entry. A new one takes the room of the one that was not
// used for longest, about, when there is no other. It does not count as touched
// yet: else the hand, having passed over nothing but touched entries, would take
// one that is used all the time to make room for one that came once.
func (p *recallPart) entry(key string, most int) *known {
	if e := p.entries[key]; e != nil {
		e.touched = true
		return e
	}
	e := &known{key: key}
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
		delete(p.entries, old.key)
	}
	p.ring[p.hand] = e
	p.hand = (p.hand + 1) % len(p.ring)
	return e
}

// find returns what is known of a key's open period.
func (r *recall) find(key string, now int64) (used, reset int64, ok bool) {
	p := r.of(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[key]
	if e == nil || e.reset != 0 && e.reset <= now {
		return 0, 0, false
	}
	return e.used, e.reset, true
}

// forget drops a key that was reset.
func (r *recall) forget(key string) {
	p := r.of(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entries[key]; e != nil {
		e.gone = true
		delete(p.entries, key)
	}
}

// open returns a copy of all entries whose period is open and that have calls.
func (r *recall) open(now int64) []known {
	var all []known
	for i := range r.part {
		p := &r.part[i]
		p.mu.Lock()
		for _, e := range p.entries {
			if e.used > 0 && (e.reset == 0 || e.reset > now) {
				all = append(all, *e)
			}
		}
		p.mu.Unlock()
	}
	return all
}
