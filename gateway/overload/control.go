package overload

import (
	"math"
	"time"
)

// phase is what a guard does with calls.
type phase uint32

const (
	calm     phase = iota // lets all pass, without looking at them
	watching              // counts them, because the delay was too long
	shedding              // sheds what is too much
)

// window is how long delays and calls are looked at together.
const window = 50 * time.Millisecond

const (
	lateToShed  = 2  // windows in a row that must be late before calls are shed
	goodToCalm  = 10 // in a row that must be in time before calls are no longer watched
	spareToStop = 20 // in a row that must have had room for all before shedding stops
)

// leastWaiting is how many calls must be waiting for calls to be what is too much.
const leastWaiting = 8

// A reading is what one window came to.
type reading struct {
	delay        time.Duration // the shortest that was seen
	passed, shed float64       // calls per second
	wanted       float64       // calls per second, smoothed; passed and shed together
}

// control decides how many calls may pass. It works like a valve before a tank:
// the delay is the level of the tank, and the valve is turned by how far that is
// from where it should be, and by how fast it moves.
type control struct {
	Options

	phase    phase
	limit    float64 // calls per second that may pass
	capacity float64 // calls per second that seem to be possible

	late, good, spare int // windows in a row
	tooLate           int // windows in a row above MaxDelay
	strict            int // windows that are left in which as many are shed as it takes
	last              time.Duration
}

// How much the limit is changed in one window, for a delay that is off by a
// window's length, and for one that moved by as much. A queue answers to the
// limit as an integral; these two leave it well damped with a window of lag.
const (
	byOffset = 0.03
	byChange = 0.3

	// The delay of a queue of many windows tells little about the next one.
	maxOffset = 4.0
	maxCut    = 0.3
	maxRaise  = 0.05
)

// costOfShed is about what a call that is shed costs of one that is served: it
// has to be read and answered all the same. For REST 0.46 was measured, for GraphQL,
// whose bodies are read as well, 0.58.
const costOfShed = 0.5

// patientShare of the capacity is let through as long as no call waits for longer
// than MaxDelay, because shedding costs what could be served. Callers who wait
// for their answer before they call again are bounded: they wait for each other,
// and all of the capacity is theirs but for what is shed with the rest of it.
//
// When there are more than wait within MaxDelay, calls come whether others wait
// or not, and there is no bound to how long all of them would. For strictFor
// windows as many are shed then as it takes to come back to TargetDelay.
const (
	patientShare = 0.95
	strictFor    = 600
)

// leastShare of the capacity is let through however late calls are. What comes
// in beyond that is more than can even be refused; waiting in the clients'
// connections, which are bounded, is all that is left, and serving less would
// not shorten it.
const leastShare = 0.4

// step takes the reading of a window and returns what is to be done in the next.
func (c *control) step(r reading) phase {
	late := r.delay > c.TargetDelay
	if late {
		c.late, c.good = c.late+1, 0
	} else {
		c.late, c.good = 0, c.good+1
	}
	switch {
	case c.phase == calm && late:
		c.phase = watching
	case c.phase == watching && c.late >= lateToShed && r.passed*r.delay.Seconds() >= leastWaiting:
		c.begin(r)
	case c.phase == watching && c.good >= goodToCalm:
		c.phase = calm
	case c.phase == shedding:
		c.adjust(r, late)
	}
	return c.phase
}

// begin starts shedding from what was served in a window that was too much.
func (c *control) begin(r reading) {
	c.phase, c.spare, c.last = shedding, 0, c.TargetDelay
	c.capacity, c.limit = r.passed, r.passed
	c.adjust(r, true)
}

// adjust moves the limit so that the delay moves to its target, and stops
// shedding once nothing had to be shed for a while.
func (c *control) adjust(r reading, late bool) {
	if late { // only then all that was possible was done
		c.capacity = smoothed(c.capacity, r.passed+costOfShed*r.shed)
	}
	share := c.share(r.delay)
	off := float64(r.delay-c.TargetDelay) / float64(window)
	moved := float64(r.delay-c.last) / float64(window)
	c.last = r.delay
	turn := byOffset*min(off, maxOffset) + byChange*moved
	c.limit *= math.Exp(-min(max(turn, -maxRaise), maxCut))
	most := max(1.25*r.wanted, 1.1*c.capacity)
	c.limit = min(max(c.limit, share*c.capacity), most)
	if late || c.limit < r.wanted {
		c.spare = 0
	} else {
		c.spare++
	}
	if c.spare >= spareToStop {
		*c = control{Options: c.Options}
	}
}

// share notes how late calls are, and returns how much of the capacity passes all
// the same.
func (c *control) share(delay time.Duration) float64 {
	if delay > max(c.MaxDelay, c.TargetDelay) {
		c.tooLate++
	} else {
		c.tooLate = 0
	}
	c.strict = max(c.strict-1, 0)
	if c.tooLate >= lateToShed {
		c.strict = strictFor
	}
	if c.strict > 0 {
		return leastShare
	}
	return patientShare
}
