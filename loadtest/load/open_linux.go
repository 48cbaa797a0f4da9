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

	"github.com/sluicegate/sluice/loadtest/poll"
)

// Open makes calls in an open loop: they begin when they are due, whatever the
// answers take. One thread does it all, with epoll and requests that are only
// copied, so that a core makes more calls than a proxy serves. Connections stay
// open between runs. It is used by one goroutine.
type Open struct {
	plan  OpenPlan
	to    syscall.SockaddrInet4
	poll  *poll.Poller
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
	if o.poll, err = poll.New(batch); err != nil {
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

// refill has every connection busy, as long as the run lasts.
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
			return // a server that refuses is asked again with the next step
		}
	}
}

// isDue tells whether there is a call of the run that was not begun, as when the
// client was held up until after its end.
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

// free tells whether a call can be made at once.
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
