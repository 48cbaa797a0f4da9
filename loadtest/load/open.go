package load

import "time"

// A Kind is one sort of call that an open loop makes.
type Kind struct {
	Name   string
	Weight float64 // its share of all calls is this by the sum of the weights

	// Request appends the n-th request of this kind to dst, whole. It must not
	// allocate if the client is to be quick.
	Request func(dst []byte, n uint64) []byte
	Want    Want

	// Refusals are statuses that are in order as well, and counted apart: those
	// of a limit, or of a server that sheds load.
	Refusals []int
}

// OpenPlan says what is asked of one server.
type OpenPlan struct {
	Addr     string        // IPv4 address and port
	Conns    int           // connections at most; opened when a call finds none idle
	Patience time.Duration // what a call may take before it is given up; 0: 5 s
	Kinds    []Kind        // at least one

	// Apart says that kinds are calls of different callers, who have connections
	// of their own: half of all are shared out by how much they call, and half
	// evenly. Otherwise any connection makes any call.
	Apart bool

	// Unqueued says that a call for which there is no connection is not made.
	// Otherwise it waits for one.
	Unqueued bool
}

// Pace says how a run goes.
type Pace struct {
	// Rate is how many calls a second arrive, at times that do not depend on the
	// answers nor on each other (a Poisson process). 0 is a closed loop: all
	// connections are kept busy.
	Rate  float64
	For   time.Duration
	Slice time.Duration // results are told apart by slices of this length; 0: one slice
	Seed  uint64        // of the arrival times; equal seeds, equal times
}

// A Tally is what became of calls. Each call is in one of Good, Refused, Bad,
// Late and Unsent. Latencies count from the moment that the call was due, not from
// when it could be sent: a server that stalls is charged for all who had come
// meanwhile.
type Tally struct {
	Asked   uint64 // calls that were due
	Good    uint64 // answered as wanted
	Refused uint64 // answered with one of the kind's refusals
	Bad     uint64 // answered otherwise, or the connection broke
	Late    uint64 // given up after the plan's patience
	Unsent  uint64 // not made, for want of a connection

	// Served is how many good answers came in this slice, whenever their calls
	// were due. Those that come after the end of the run are in none.
	Served uint64

	Latency Histogram // of good answers
	Refusal Histogram // of refusals
}

// Add adds another tally.
func (t *Tally) Add(other *Tally) {
	t.Asked += other.Asked
	t.Good += other.Good
	t.Refused += other.Refused
	t.Bad += other.Bad
	t.Late += other.Late
	t.Unsent += other.Unsent
	t.Served += other.Served
	t.Latency.Add(&other.Latency)
	t.Refusal.Add(&other.Refusal)
}

// An Outcome is what a run came to.
type Outcome struct {
	Slices [][]Tally     // by slice of the run, then by kind
	Took   time.Duration // until no call was due any more; answers may have come later
	CPU    time.Duration // of the thread that made the calls
	Lag    Histogram     // how long after it was due the client turned to a call
	Opened int           // connections that were opened
	First  error         // the first thing that went wrong; nil: nothing
}

// Total returns the tally of all slices and kinds.
func (o *Outcome) Total() *Tally {
	t := new(Tally)
	for i := range o.Slices {
		t.Add(o.Slice(i))
	}
	return t
}

// Slice returns the tally of one slice over all kinds.
func (o *Outcome) Slice(i int) *Tally {
	t := new(Tally)
	for k := range o.Slices[i] {
		t.Add(&o.Slices[i][k])
	}
	return t
}

// Kind returns the tally of one kind over all slices.
func (o *Outcome) Kind(k int) *Tally {
	t := new(Tally)
	for i := range o.Slices {
		t.Add(&o.Slices[i][k])
	}
	return t
}

// newOutcome returns an empty one for a pace.
func newOutcome(p Pace, kinds int) *Outcome {
	n := 1
	if p.Slice > 0 {
		n = max(int((p.For+p.Slice-1)/p.Slice), 1)
	}
	o := &Outcome{Slices: make([][]Tally, n)}
	for i := range o.Slices {
		o.Slices[i] = make([]Tally, kinds)
	}
	return o
}
