package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/bench/answer"
)

// A Kind is one sort of call that an open loop makes.
type Kind struct {
	Name   string
	Weight float64 // its share of all calls is this by the sum of the weights

	// Request appends the n-th request of this kind to dst, whole. It must not
	// allocate if the client is to be quick.
	Request func(dst []byte, n uint64) []byte
	Want    answer.Want

	// Refusals are statuses that are in order as well, and counted apart: those
	// of a limit, or of a server that sheds load.
	Refusals []int
}

// OpenPlan describes the calls of one server.
type OpenPlan struct {
	Addr     string        // IPv4 address and port
	Conns    int           // connections at most; opened when a call finds none idle
	Patience time.Duration // what a call may take before it is given up; 0: 5 s
	Kinds    []Kind        // at least one

	// Apart gives each kind its own connections, as different clients have: half of all
	// are divided by weight, and half evenly. Otherwise any connection makes any call.
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
	Slice time.Duration // results are reported by slices of this length; 0: one slice
	Seed  uint64        // of the arrival times; equal seeds, equal times
}

// A Tally counts calls by outcome. Each call is in one of Good, Refused, Bad, Late and
// Unsent. Latencies count from the moment that the call was due, not from when it could
// be sent, so that a stall counts for all calls that were due meanwhile.
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

// Open makes calls in an open loop: they begin when they are due, whatever the
// answers take. One thread does it all, with epoll and requests that are only
// copied, so that a core makes more calls than a proxy serves. Connections stay
// open between runs. It is used by one goroutine.
type Open struct {
	plan  OpenPlan
	to    syscall.SockaddrInet4
	poll  *Poller
	slots []slot
	pools []pool // one, or one for each kind
	asked []uint64
	sums  []float64 // of the weights up to a kind
	in    []byte    // what is read, before it is anybody's
	out   []byte    // the request under way

	// Of the run under way.
	pace    Pace
	began   time.Time
	now     time.Duration // since began, read once per step
	next    time.Duration // when the next call is due
	random  *rand.Rand
	swept   time.Duration
	busy    int // connections that have a call
	outcome *Outcome
}

// NewOpen returns a client for a plan. Close ends it.
func NewOpen(plan OpenPlan) (*Open, error) {
	addr, err := netip.ParseAddrPort(plan.Addr)
	if err != nil || !addr.Addr().Is4() {
		return nil, fmt.Errorf("an open loop to %q: want an IPv4 address and a port", plan.Addr)
	}
	if len(plan.Kinds) == 0 || plan.Conns < 1 {
		return nil, fmt.Errorf("an open loop of %d kinds of calls on %d connections: want at least one of each", len(plan.Kinds), plan.Conns)
	}
	if plan.Apart && plan.Conns < len(plan.Kinds) {
		return nil, fmt.Errorf("an open loop of %d callers on %d connections: want one for each at least", len(plan.Kinds), plan.Conns)
	}
	if plan.Patience == 0 {
		plan.Patience = 5 * time.Second
	}
	o := &Open{
		plan: plan, to: syscall.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()},
		slots: make([]slot, plan.Conns), asked: make([]uint64, len(plan.Kinds)),
		in: make([]byte, 256<<10),
	}
	if o.poll, err = NewPoller(batch); err != nil {
		return nil, err
	}
	sum := 0.0
	for _, k := range plan.Kinds {
		sum += k.Weight
		o.sums = append(o.sums, sum)
	}
	o.share(sum)
	return o, nil
}

// A pool is the connections of one caller.
type pool struct {
	idle    []int32 // slots that wait for a call; the one used last is used next
	empty   []int32 // slots without a connection
	waiting queue   // calls for which there was none
}

// share gives each pool its slots, as Apart says.
func (o *Open) share(weights float64) {
	o.pools = make([]pool, 1)
	if o.plan.Apart {
		o.pools = make([]pool, len(o.plan.Kinds))
	}
	end := len(o.slots)
	for k := range slices.Backward(o.pools) {
		begin := 0
		if k > 0 {
			part := (o.sums[k-1]/weights + float64(k)/float64(len(o.pools))) / 2
			begin = max(k, min(int(part*float64(len(o.slots))), end-1)) // everybody has one
		}
		for i := end - 1; i >= begin; i-- {
			o.slots[i].fd, o.slots[i].pool = -1, int32(k)
			o.pools[k].empty = append(o.pools[k].empty, int32(i))
		}
		end = begin
	}
}

// poolOf is the one whose connections make a call.
func (o *Open) poolOf(c call) *pool { return &o.pools[min(int(c.kind), len(o.pools)-1)] }

// queued is how many calls have no connection yet.
func (o *Open) queued() (n int) {
	for k := range o.pools {
		n += o.pools[k].waiting.len()
	}
	return n
}

// Close closes all connections.
func (o *Open) Close() {
	for i := range o.slots {
		if o.slots[i].fd >= 0 {
			o.drop(int32(i))
		}
	}
	o.poll.Close()
}

// Run makes calls at a pace, and returns when all of them have ended or were
// given up. Its error is that of ctx, or one of the client's own: what the server
// does wrong is in the outcome.
func (o *Open) Run(ctx context.Context, pace Pace) (*Outcome, error) {
	if o.plan.Apart && pace.Rate <= 0 {
		return nil, errApart
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer punctual()()
	o.pace, o.outcome = pace, newOutcome(pace, len(o.plan.Kinds))
	o.random = rand.New(rand.NewPCG(pace.Seed, 1))
	for k := range o.pools {
		o.pools[k].waiting = queue{calls: o.pools[k].waiting.calls}
	}
	used := threadCPU()
	o.began, o.now, o.swept = time.Now(), 0, 0
	if pace.Rate > 0 {
		o.next = o.gap()
	}
	for o.now < pace.For || o.isDue() || o.busy > 0 || o.queued() > 0 {
		if err := ctx.Err(); err != nil {
			o.abandon()
			return nil, err
		}
		o.begin()
		if err := o.step(); err != nil {
			o.abandon()
			return nil, fmt.Errorf("waiting for answers: %w", err)
		}
	}
	o.outcome.CPU = threadCPU() - used
	o.outcome.Took = pace.For
	return o.outcome, nil
}

// The client looks for answers after so many calls at the latest, and takes so
// many answers at a time: neither waits long for the other.
const batch = 64

// begin makes the calls that are due.
func (o *Open) begin() {
	if o.pace.Rate <= 0 {
		o.refill()
		return
	}
	for range batch {
		if o.next > o.now || o.next >= o.pace.For {
			return
		}
		c := call{due: o.next, kind: o.pick()}
		o.next += o.gap()
		o.outcome.Lag.Record(o.now - c.due)
		o.tally(c).Asked++
		o.make(c)
	}
}

// refill keeps every connection busy during the run.
func (o *Open) refill() {
	for o.now < o.pace.For {
		failed := o.outcome.First
		c := call{due: o.now, kind: o.pick()}
		if !o.poolOf(c).free() {
			return
		}
		o.tally(c).Asked++
		o.make(c)
		if o.outcome.First != failed {
			return // a server that refuses connections is retried with the next step
		}
	}
}

// isDue reports whether a call of the run was not started, as when the client was delayed
// until after its end.
func (o *Open) isDue() bool { return o.pace.Rate > 0 && o.next < o.pace.For }

// gap is the time between one arrival and the next.
func (o *Open) gap() time.Duration {
	return time.Duration(o.random.ExpFloat64() * float64(time.Second) / o.pace.Rate)
}

// pick chooses a kind by the weights.
func (o *Open) pick() int32 {
	if len(o.sums) == 1 {
		return 0
	}
	at := o.random.Float64() * o.sums[len(o.sums)-1]
	for k, sum := range o.sums {
		if at < sum {
			return int32(k)
		}
	}
	return int32(len(o.sums) - 1)
}

// make sends a call on a connection that is idle, on a new one, or has it wait
// for one where it may. Who has waited longer than the plan's patience has gone.
func (o *Open) make(c call) {
	if o.now-c.due > o.plan.Patience {
		o.tally(c).Late++
		return
	}
	p := o.poolOf(c)
	if n := len(p.idle); n > 0 {
		i := p.idle[n-1]
		p.idle = p.idle[:n-1]
		o.busy++
		o.slots[i].call, o.slots[i].state = c, asking
		o.send(i)
		return
	}
	if n := len(p.empty); n > 0 {
		i := p.empty[n-1]
		p.empty = p.empty[:n-1]
		o.busy++
		o.connect(i, c)
		return
	}
	if o.plan.Unqueued {
		o.tally(c).Unsent++
		return
	}
	p.waiting.push(c)
}

// free reports whether a call can be made at once.
func (p *pool) free() bool { return len(p.idle)+len(p.empty) > 0 }

// step waits until a call is due or an answer is there, and takes answers.
func (o *Open) step() error {
	o.now = time.Since(o.began) // sending takes its time
	wait := sweepEvery
	if o.pace.Rate > 0 && o.next < o.pace.For {
		wait = min(wait, o.next-o.now)
	}
	ready, err := o.poll.Wait(wait)
	if err != nil {
		return err
	}
	o.now = time.Since(o.began)
	for _, e := range ready {
		if o.slots[e.Slot].turn == e.Turn { // otherwise it is of a connection that is gone
			o.attend(e.Slot, e.What)
		}
	}
	for k := range o.pools {
		for p := &o.pools[k]; p.waiting.len() > 0 && p.free(); {
			o.make(p.waiting.pop())
		}
	}
	if o.now-o.swept >= sweepEvery {
		o.sweep()
	}
	return nil
}

// sweepEvery is how often calls are looked for that took too long.
const sweepEvery = 20 * time.Millisecond

func (o *Open) sweep() {
	o.swept = o.now
	for k := range o.pools {
		for p := &o.pools[k]; p.waiting.len() > 0 && o.now-p.waiting.first().due > o.plan.Patience; {
			o.tally(p.waiting.pop()).Late++
		}
	}
	for i := range o.slots {
		s := &o.slots[i]
		if s.fd >= 0 && s.state != idle && o.now-s.call.due > o.plan.Patience {
			o.tally(s.call).Late++
			o.busy--
			o.drop(int32(i))
		}
	}
}

// abandon ends a run before its time: no connection may keep a call of it.
func (o *Open) abandon() {
	for i := range o.slots {
		if o.slots[i].fd >= 0 && o.slots[i].state != idle {
			o.drop(int32(i))
		}
	}
	o.busy = 0
}

// tally is the one that a call belongs to.
func (o *Open) tally(c call) *Tally { return &o.outcome.Slices[o.sliceAt(c.due)][c.kind] }

func (o *Open) sliceAt(at time.Duration) int {
	if o.pace.Slice <= 0 {
		return 0
	}
	return min(int(at/o.pace.Slice), len(o.outcome.Slices)-1)
}

// wrong notes a call that went wrong.
func (o *Open) wrong(c call, err error) {
	o.tally(c).Bad++
	if o.outcome.First == nil {
		o.outcome.First = fmt.Errorf("%s: %w", o.plan.Kinds[c.kind].Name, err)
	}
}

var errApart = errors.New("a closed loop of callers with connections of their own: want a rate")

var errClosed = errors.New("the server closed the connection before its answer")

// call is one that is due or under way.
type call struct {
	due  time.Duration
	kind int32
}

// queue holds calls that wait for a connection, first in, first out. It grows to
// what is needed and keeps that.
type queue struct {
	calls []call // a ring, its length a power of two
	head  int
	n     int
}

func (q *queue) len() int { return q.n }

func (q *queue) push(c call) {
	if q.n == len(q.calls) {
		grown := make([]call, max(2*len(q.calls), 1024))
		for i := range q.n {
			grown[i] = q.calls[(q.head+i)&(len(q.calls)-1)]
		}
		q.calls, q.head = grown, 0
	}
	q.calls[(q.head+q.n)&(len(q.calls)-1)] = c
	q.n++
}

// first is the one that waits longest. There must be one.
func (q *queue) first() call { return q.calls[q.head] }

func (q *queue) pop() call {
	c := q.first()
	q.head, q.n = (q.head+1)&(len(q.calls)-1), q.n-1
	return c
}

// punctual sets the timer slack of this thread from 50 µs to 1 ns, until restore is
// called.
func punctual() (restore func()) {
	const setTimerSlack = 29
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0) // refused: latencies are as much longer, for all alike
	return func() { _, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 0, 0) }
}

// threadCPU is how long this thread has been on a processor.
func threadCPU() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var used syscall.Rusage
	if err := syscall.Getrusage(thread, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
