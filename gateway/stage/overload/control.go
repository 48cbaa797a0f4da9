package overload

import (
	"math"
	"time"
)

// phase is the state of a guard.
type phase uint32

const (
	calm     phase = iota // all calls pass uncounted
	watching              // calls are counted, because the delay was too long
	shedding              // the calls that exceed the limit are shed
)

// window is the interval in which delays and calls are evaluated together.
const window = 50 * time.Millisecond

const (
	lateToShed  = 2  // consecutive windows that must be late before calls are shed
	goodToCalm  = 10 // consecutive windows that must be in time before calls are no longer counted
	spareToStop = 20 // consecutive windows without a need to shed before shedding stops
)

// leastWaiting is how many calls must wait for the delay to be attributed to calls.
const leastWaiting = 8

// A reading is the result of one window.
type reading struct {
	delay        time.Duration // the shortest in the window
	passed, shed float64       // calls per second
	wanted       float64       // calls per second, smoothed; passed and shed together
}

// control decides how many calls may pass. It is a proportional-derivative
// controller: the limit changes with the distance of the delay from its target, and
// with the change of the delay.
type control struct {
	Options

	phase    phase
	limit    float64 // calls per second that may pass
	capacity float64 // calls per second that can be served, estimated

	late, good, spare int // consecutive windows
	tooLate           int // consecutive windows above MaxDelay
	strict            int // remaining windows in which as many calls are shed as it takes
	last              time.Duration
}

// How much the limit changes in one window, for a delay that is off by the length of
// a window, and for one that changed by as much. A queue integrates the limit; these
// two damp it well with one window of lag.
const (
	byOffset = 0.03
	byChange = 0.3

	// The delay of a queue of many windows does not predict the next one.
	maxOffset = 4.0
	maxCut    = 0.3
	maxRaise  = 0.05
)

// costOfShed is the cost of a call that is shed relative to one that is served: it is
// read and answered as well. Measured: 0.46 for REST, 0.58 for GraphQL, whose bodies
// are read too.
const costOfShed = 0.5

// patientShare of the capacity passes as long as no call waits for longer than
// MaxDelay, because shedding uses capacity. Clients that wait for an answer before
// they call again bound the queue themselves.
//
// When calls wait for longer than MaxDelay, they arrive whether others wait or not,
// and the queue has no bound. For strictFor windows as many calls are shed then as it
// takes to return to TargetDelay.
const (
	patientShare = 0.95
	strictFor    = 600
)

// leastShare of the capacity passes however late calls are. A load beyond that cannot
// even be refused in time: it waits in the clients' connections, which are bounded,
// and serving less would not shorten that wait.
const leastShare = 0.4

// step takes the reading of a window and returns the phase of the next.
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

// begin starts shedding with the number of calls that were served in the window.
func (c *control) begin(r reading) {
	c.phase, c.spare, c.last = shedding, 0, c.TargetDelay
	c.capacity, c.limit = r.passed, r.passed
	c.adjust(r, true)
}

// adjust moves the limit so that the delay approaches its target, and stops shedding
// once nothing had to be shed for spareToStop windows.
func (c *control) adjust(r reading, late bool) {
	if late { // only then the capacity was used up
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

// share records whether calls are too late, and returns the share of the capacity that
// passes in any case.
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
