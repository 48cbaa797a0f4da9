package counter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/sluicegate/sluice/internal/counter/exchange"
	"github.com/sluicegate/sluice/internal/counter/recall"
	"github.com/sluicegate/sluice/internal/counter/script"
	"github.com/sluicegate/sluice/internal/counter/slots"
)

// clusterLanes is how many lanes a cluster's slots are spread over.
const clusterLanes = 16

// Valkey counts in a store that gateways share: a Valkey or Redis server, with
// or without sentinels, or a cluster. Commands are never repeated: an answer
// that did not come is left to the outage policy.
type Valkey struct {
	clustered bool
	alone     bool // one server without sentinels
	timeout   time.Duration
	taking    script.Script
	adjusting script.Script
	client    atomic.Pointer[valkey.Client] // nil until the store was reached for the first time
	lanes     []*lane
	refunds   chan struct{} // places for refunds under way

	stats     Stats
	changed   func(State)
	reporting sync.Mutex
	reported  bool // the Away that Changed was told last
	quiet     bool // while opening: the outcome is told, not the way there

	stop   context.CancelFunc
	group  sync.WaitGroup // lanes' tend, and connect
	flying sync.WaitGroup // flights that no caller flies
}

// OpenValkey connects to the store. One that is away is no error: the outage
// policy applies until it is there. One that refuses us or is unfit is.
// ctx bounds the first attempt alone. The caller must Close.
func OpenValkey(ctx context.Context, o ValkeyOptions) (*Valkey, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("counter store: %w", err)
	}
	v := newValkey(&o)
	err := v.connect(ctx, &o)
	if refusesUs(err) {
		return nil, fmt.Errorf("counter store: %w", err)
	}
	if err == nil {
		v.reviveAll(ctx)
	} else {
		v.tripAll(err)
	}
	v.speak()
	lifetime, stop := context.WithCancel(context.Background())
	v.stop = stop
	if err != nil {
		v.group.Go(func() { v.connectLater(lifetime, &o) })
	} else {
		v.tend(lifetime)
	}
	return v, nil
}

func (v *Valkey) tend(ctx context.Context) {
	for _, l := range v.lanes {
		v.group.Go(func() { l.tend(ctx) })
	}
}

func newValkey(o *ValkeyOptions) *Valkey {
	v := &Valkey{
		clustered: o.Cluster,
		alone:     !o.Cluster && o.SentinelMaster == "",
		quiet:     true,
		timeout:   o.Timeout,
		taking:    script.Take(),
		adjusting: script.Adjust(),
		lanes:     make([]*lane, 1),
		refunds:   make(chan struct{}, refundsAway),
		changed:   o.Changed,
	}
	if v.timeout == 0 {
		v.timeout = defaultTimeout
	}
	if o.Cluster {
		v.lanes = make([]*lane, clusterLanes)
	}
	for i := range v.lanes {
		r := recall.New(recall.Keys / len(v.lanes))
		v.lanes[i] = &lane{
			v: v, epochs: v.epochKeys(i), down: &outage{cause: errConnecting},
			wake: make(chan struct{}, 1), own: v.own(o), recall: r, standby: newStandby(o, r, &v.stats),
		}
	}
	return v
}

// epochKeys names the epochs of a lane, so that they lie among the lane's keys.
// In a cluster a range of slots may lie on two nodes, so both its ends have one.
func (v *Valkey) epochKeys(lane int) []string {
	const name = "sluice:counter:epoch"
	if !v.clustered {
		return []string{name}
	}
	const size, end = slots.Count / clusterLanes, 16 // 16 slots of either end: names are found soon
	keys := make([]string, 2)
	for i := 0; keys[0] == "" || keys[1] == ""; i++ {
		key := name + ":{" + strconv.Itoa(i) + "}"
		switch at := slots.Of(key) - lane*size; {
		case at >= 0 && at < end:
			keys[0] = key
		case at >= size-end && at < size:
			keys[1] = key
		}
	}
	return keys
}

func (v *Valkey) connect(ctx context.Context, o *ValkeyOptions) error {
	c, err := valkey.NewClient(v.clientOption(o))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, max(time.Second, v.timeout))
	defer cancel()
	if err := examine(ctx, c, o.Cluster); err != nil {
		c.Close()
		return err
	}
	v.client.Store(&c)
	return nil
}

// connectLater goes on trying to reach a store that was away at the start.
func (v *Valkey) connectLater(ctx context.Context, o *ValkeyOptions) {
	for wait := probeFirst; pause(ctx, jitter(wait)); wait = min(2*wait, probeMost) {
		err := v.connect(ctx, o)
		if err == nil {
			v.tend(ctx) // the lanes are shut and nudged
			return
		}
		v.tripAll(err)
	}
}

// reviveAll opens the lanes of a store that was reached at once.
func (v *Valkey) reviveAll(ctx context.Context) {
	var group sync.WaitGroup
	for _, l := range v.lanes {
		group.Go(func() {
			if err := l.revive(ctx); err != nil {
				l.trip(outageOf(err))
			}
		})
	}
	group.Wait()
}

func (v *Valkey) tripAll(err error) {
	for _, l := range v.lanes {
		l.trip(outageOf(err))
	}
}

// reconnected has the lanes look whether the store still has its data. A single
// server does not count in the meantime. With several, new connections are too
// common for that, and what is counted before the lane has looked may be early.
func (v *Valkey) reconnected() {
	if v.client.Load() == nil {
		return
	}
	for _, l := range v.lanes {
		if v.alone {
			l.trip(&outage{cause: errNewConn})
		}
		l.nudge()
	}
}

// Close ends all connections. Calls after it fail, or follow the outage policy.
func (v *Valkey) Close() {
	for _, l := range v.lanes {
		l.trip(&outage{cause: errClosed})
	}
	v.stop()
	v.group.Wait()
	v.flying.Wait()
	for _, l := range v.lanes {
		l.own.Close()
	}
	if c := v.client.Load(); c != nil {
		(*c).Close()
	}
}

// Take implements Counter. In a cluster, list the limits of the caller's
// credential before those it shares with others: limits in different slots are
// counted one after the other, so that an exhausted key costs the others
// nothing. What an earlier slot counted for a call that a later one refuses is
// refunded; limits after the refused one's slot are left out, their counts zero.
func (v *Valkey) Take(ctx context.Context, limits []Limit, calls int, counts []Count) (int, error) {
	if calls < 1 || calls > MaxCalls {
		return 0, ErrCalls
	}
	return v.ask(ctx, limits, counts, int32(calls))
}

// Peek implements Counter.
func (v *Valkey) Peek(ctx context.Context, limits []Limit, counts []Count) error {
	_, err := v.ask(ctx, limits, counts, 0)
	return err
}

// ask counts calls, or with calls 0 only looks.
func (v *Valkey) ask(ctx context.Context, limits []Limit, counts []Count, calls int32) (int, error) {
	if err := fits(limits, counts); err != nil {
		return 0, err
	}
	if len(limits) == 0 {
		return -1, nil
	}
	if l, ok := v.shared(limits); ok {
		refused, _, err := l.decide(ctx, limits, counts, calls)
		return refused, err
	}
	return v.askParts(ctx, limits, counts, calls)
}

// Reset implements Counter. With the store away it fails with ErrUnavailable,
// whatever the outage policy: nothing would be forgotten where it counts.
func (v *Valkey) Reset(ctx context.Context, keys ...string) error {
	c := v.client.Load()
	if c == nil {
		return &outage{cause: errConnecting}
	}
	ctx, cancel := context.WithTimeout(ctx, max(v.timeout, time.Second))
	defer cancel()
	for _, key := range keys {
		l := v.laneOf(slots.Of(key))
		if err := (*c).Do(ctx, (*c).B().Del().Key(key).Build()).Error(); err != nil {
			return outageOf(err)
		}
		l.recall.Forget(key)
		l.standby.forget(key)
	}
	return nil
}

// laneOf returns the lane of a slot.
func (v *Valkey) laneOf(slot int) *lane { return v.lanes[slot*len(v.lanes)/slots.Count] }

// decide asks the store, or the outage policy in its place. local tells that the
// policy decided.
func (l *lane) decide(ctx context.Context, limits []Limit, counts []Count, calls int32) (refused int, local bool, err error) {
	refused, err = l.ask(ctx, limits, counts, calls)
	o, away := err.(*outage) // ask never wraps it
	if !away {
		return refused, false, err
	}
	if errors.Is(o.cause, ErrBusy) {
		l.v.stats.Busy.Add(1)
	}
	refused, err = l.standby.ask(limits, counts, calls, o)
	if err == nil && refused < 0 && calls > 0 {
		l.nudge() // what was admitted here is to be told to the store, which may be back by now
	}
	return refused, true, err
}

// send runs the script for all items of a flight. The result is why the lane
// must shut, if it must.
func (l *lane) send(ctx context.Context, f *flight) *outage {
	c := l.v.client.Load()
	if c == nil {
		f.err = &outage{cause: errConnecting}
		return f.err
	}
	f.number = l.flights.Add(1)
	if l.v.clustered {
		return l.sendEach(ctx, *c, f)
	}
	return l.sendAll(ctx, *c, f)
}

// sendAll sends one command for all items: their keys are on one node.
func (l *lane) sendAll(ctx context.Context, c valkey.Client, f *flight) *outage {
	err := l.takeAll(ctx, c, f)
	if err == nil {
		err = f.divide()
	}
	if err != nil {
		f.err = outageOf(err)
	}
	return f.err
}

// takeAll asks on the lane's own connection, if there is one that no other flight
// uses. Where that was lost meanwhile, the client's may be as well: the lane finds out.
func (l *lane) takeAll(ctx context.Context, c valkey.Client, f *flight) (err error) {
	argument := f.batch.Pack()
	until, _ := ctx.Deadline()
	f.told, err = l.v.taking.Exchange(f.told[:0], l.own, until, f.batch.Keys, argument)
	switch {
	case err == exchange.ErrStale:
		l.nudge()
	case err != exchange.ErrNone && !script.Missing(err):
		return err
	}
	all, err := l.v.taking.Run(ctx, c, f.batch.Keys, string(argument))
	f.told = append(f.told[:0], all...)
	return err
}

var errReply = errors.New("reply of the counting script has a wrong length")

// divide gives each item its part of the reply.
func (f *flight) divide() error {
	all := f.told
	for i := range f.items {
		var ok bool
		if f.items[i].reply, all, ok = f.batch.Reply(i, all); !ok {
			return errReply
		}
	}
	if len(all) > 0 {
		return errReply
	}
	return nil
}

// sendEach sends a command for each item: their keys may be on different nodes.
func (l *lane) sendEach(ctx context.Context, c valkey.Client, f *flight) *outage {
	commands := make([]valkey.Completed, len(f.items))
	for i := range f.items {
		it := &f.items[i]
		commands[i] = l.v.taking.Command(c, f.itemKeys(it), f.batch.PackItem(i))
	}
	var failed *outage
	for i, result := range c.DoMulti(ctx, commands...) {
		it := &f.items[i]
		answer, err := result.ToString()
		if script.Missing(err) {
			answer, err = l.v.taking.Send(ctx, c, f.itemKeys(it), f.batch.PackItem(i))
		}
		reply, rest, ok := f.batch.Reply(i, []byte(answer))
		if it.reply = reply; err == nil && (!ok || len(rest) > 0) {
			err = errReply
		}
		if err != nil {
			it.err = outageOf(err)
			failed = it.err
			l.blame(f.batch.Keys[it.keyAt])
		}
	}
	return failed
}

func (f *flight) itemKeys(it *item) []string {
	return f.batch.Keys[it.keyAt : it.keyAt+it.keys : it.keyAt+it.keys]
}

// blame has the next probe try the slot of a key that failed.
func (l *lane) blame(key string) {
	l.mu.Lock()
	l.suspect = key
	l.mu.Unlock()
}

// remember notes what the store said about a flight's quotas, and makes sure of
// the resets that its callers read.
func (l *lane) remember(f *flight) {
	doubt := l.isDown() != nil
	for i := range f.items {
		if it := &f.items[i]; it.err == nil {
			l.rememberItem(f, i, doubt)
		}
	}
}

func (l *lane) rememberItem(f *flight, at int, doubt bool) {
	it := &f.items[at]
	granted, refused := it.reply.Outcome()
	if refused == script.Foreign {
		return
	}
	for i, form := range f.batch.Forms(at) {
		if form.Rate {
			continue
		}
		key, k := f.batch.Keys[int(it.keyAt)+i], &f.known[int(it.keyAt)+i]
		free, reset := it.reply.Limit(i)
		asked := reset != script.NotAsked
		if asked {
			k.reset = max(reset, 0)
		}
		before := form.Max - free
		if used := before + int64(granted); used > 0 && reset != script.Closed {
			l.recall.Note(k.entry, key, k.hash, recall.Told{
				Used: used, Before: before, Reset: k.reset, Asked: asked, Flight: f.number, Now: f.now, Doubt: doubt,
			})
		}
	}
}
