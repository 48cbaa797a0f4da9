// Package tempo tells how many calls of a store should be under way at a time.
package tempo

import "time"

// How many are under way. More only split flights while the way is short against
// what a flight costs both ends; where most of a flight is the way, fewer leave
// the store idle. Measured with a store on the same machine.
const (
	Near = 1 // to a store that is near
	Away = 2 // to one that is neither near nor far, and until that is known
	Far  = 4
)

const (
	near = 200 * time.Microsecond // the shortest round trips to a store that is near are below
	far  = time.Millisecond       // and to one that is far not

	over = 64 // how many round trips decide
)

// A Tempo goes by the shortest of some round trips: the others tell how busy both
// ends are. The zero Tempo knows of none.
type Tempo struct {
	flights int
	least   time.Duration
	seen    int
}

// Flights is how many may be under way.
func (t *Tempo) Flights() int {
	if t.flights == 0 {
		return Away
	}
	return t.flights
}

// Note hears how long a round trip took.
func (t *Tempo) Note(took time.Duration) {
	if t.seen == 0 || took < t.least {
		t.least = took
	}
	if t.seen++; t.seen < over {
		return
	}
	switch t.seen = 0; {
	case t.least < near:
		t.flights = Near
	case t.least < far:
		t.flights = Away
	default:
		t.flights = Far
	}
}
