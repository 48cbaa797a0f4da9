package counter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/counter/script"
	"github.com/sluicegate/sluice/internal/sleep"
	"github.com/valkey-io/valkey-go"
)

// clusterLanes is how many lanes a cluster's hash slots are spread over.
const clusterLanes = 16

// Valkey counts in a store that gateways share: a Valkey or Redis server, with or
// without sentinels, or a cluster. Commands are never repeated: the outage policy
// decides calls that the store did not answer.
type Valkey struct {
	clustered bool
	alone     bool // one server without sentinels
	timeout   time.Duration
	taking    script.Script
	adjusting script.Script
	client    atomic.Pointer[valkey.Client] // nil until the store was reached for the first time
	lanes     []*lane
	refunds   chan struct{} // holds one for each refund in flight

	stats     Stats
	changed   func(State)
	reporting sync.Mutex
	reported  bool // the State.Away that Changed was last called with
	opening   bool // only the outcome of opening is reported

	stop    context.CancelFunc
	group   sync.WaitGroup // maintain of each lane, and connectLater
	running sync.WaitGroup // batches that no caller runs
}

// OpenValkey connects to the store. It is no error if the store is away: the outage
// policy applies until it can be reached. It is one if the store refuses the
// gateway or cannot run the scripts. ctx bounds the first attempt only. The caller
// must Close.
func OpenValkey(ctx context.Context, o ValkeyOptions) (*Valkey, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("counter store: %w", err)
	}
	v := newValkey(&o)
	err := v.connect(ctx, &o)
	if isPermanent(err) {
		return nil, fmt.Errorf("counter store: %w", err)
	}
	if err == nil {
		v.reviveAll(ctx)
	} else {
		v.tripAll(err)
	}
	v.opened()
	lifetime, stop := context.WithCancel(context.Background())
	v.stop = stop
	if err != nil {
		v.group.Go(func() { v.connectLater(lifetime, &o) })
	} else {
		v.maintain(lifetime)
	}
	return v, nil
}

func (v *Valkey) maintain(ctx context.Context) {
	for _, l := range v.lanes {
		v.group.Go(func() { l.maintain(ctx) })
	}
}

func newValkey(o *ValkeyOptions) *Valkey {
	v := &Valkey{
		clustered: o.Cluster,
		alone:     !o.Cluster && o.SentinelMaster == "",
		opening:   true,
		timeout:   o.Timeout,
		taking:    script.Take(),
		adjusting: script.Adjust(),
		lanes:     make([]*lane, 1),
		refunds:   make(chan struct{}, refundsInFlight),
		changed:   o.Changed,
	}
	if v.timeout == 0 {
		v.timeout = defaultTimeout
	}
	if o.Cluster {
		v.lanes = make([]*lane, clusterLanes)
	}
	for i := range v.lanes {
		q := newQuotaCache(quotasMost / len(v.lanes))
		v.lanes[i] = &lane{
			v: v, epochs: v.epochKeys(i), down: &outage{cause: errConnecting},
			wake: make(chan struct{}, 1), quotas: q, standby: newStandby(o, q, &v.stats),
		}
	}
	return v
}

// epochKeys names the epochs of a lane so that they are stored among the lane's
// keys. In a cluster a range of hash slots may be split between two nodes, so both
// its ends have an epoch.
func (v *Valkey) epochKeys(lane int) []string {
	const name = "sluice:counter:epoch"
	if !v.clustered {
		return []string{name}
	}
	const size, end = hashSlots / clusterLanes, 16 // names for the 16 hash slots at either end are found soon
	keys := make([]string, 2)
	for i := 0; keys[0] == "" || keys[1] == ""; i++ {
		key := name + ":{" + strconv.Itoa(i) + "}"
		switch at := hashSlot(key) - lane*size; {
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

// connectLater tries to reach a store that was away at the start.
func (v *Valkey) connectLater(ctx context.Context, o *ValkeyOptions) {
	for wait := probeFirst; sleep.For(ctx, jitter(wait)) == nil; wait = min(2*wait, probeMost) {
		err := v.connect(ctx, o)
		if err == nil {
			v.maintain(ctx) // the lanes are shut and will be probed
			return
		}
		v.tripAll(err)
	}
}

// reviveAll opens the lanes of a store that was reached on the first attempt.
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

// reconnected makes the lanes check whether the store still has its data. A single
// server does not count in the meantime. With several servers new connections are
// too common for that, and some calls may be counted before the check.
func (v *Valkey) reconnected() {
	if v.client.Load() == nil {
		return
	}
	for _, l := range v.lanes {
		if v.alone {
			l.trip(&outage{cause: errNewConn})
		}
		l.requestProbe()
	}
}

// Close closes all connections. Later calls follow the outage policy.
func (v *Valkey) Close() {
	for _, l := range v.lanes {
		l.trip(&outage{cause: errClosed})
	}
	v.stop()
	v.group.Wait()
	v.running.Wait()
	if c := v.client.Load(); c != nil {
		(*c).Close()
	}
}

// Take implements Counter. In a cluster, list the limits of the caller's credential
// before those it shares with others: limits in different hash slots are counted
// one after the other, so that an exhausted key costs the others nothing. What an
// earlier slot counted for a call that a later one refuses is refunded; limits in
// slots after the refused one are not counted, and their counts are zero.
func (v *Valkey) Take(ctx context.Context, limits []Limit, calls int, counts []Count) (int, error) {
	if calls < 1 || calls > MaxCalls {
		return 0, ErrCalls
	}
	return v.count(ctx, limits, counts, int32(calls))
}

// Peek implements Counter.
func (v *Valkey) Peek(ctx context.Context, limits []Limit, counts []Count) error {
	_, err := v.count(ctx, limits, counts, 0)
	return err
}

// count counts calls, or with calls 0 peeks.
func (v *Valkey) count(ctx context.Context, limits []Limit, counts []Count, calls int32) (int, error) {
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
	return v.countParts(ctx, limits, counts, calls)
}

// Reset implements Counter. While the store is away it fails with ErrUnavailable,
// whatever the outage policy, because the store would keep its counts.
func (v *Valkey) Reset(ctx context.Context, keys ...string) error {
	c := v.client.Load()
	if c == nil {
		return &outage{cause: errConnecting}
	}
	ctx, cancel := context.WithTimeout(ctx, max(v.timeout, time.Second))
	defer cancel()
	for _, key := range keys {
		l := v.laneOf(hashSlot(key))
		if err := (*c).Do(ctx, (*c).B().Del().Key(key).Build()).Error(); err != nil {
			return outageOf(err)
		}
		l.quotas.forget(key)
		l.standby.forget(key)
	}
	return nil
}

// laneOf returns the lane of a hash slot.
func (v *Valkey) laneOf(slot int) *lane { return v.lanes[slot*len(v.lanes)/hashSlots] }

// decide counts calls in the store, or by the outage policy. local reports that the
// policy decided.
func (l *lane) decide(ctx context.Context, limits []Limit, counts []Count, calls int32) (refused int, local bool, err error) {
	refused, err = l.count(ctx, limits, counts, calls)
	o, away := err.(*outage) // count never wraps it
	if !away {
		return refused, false, err
	}
	if errors.Is(o.cause, ErrBusy) {
		l.v.stats.Busy.Add(1)
	}
	refused, err = l.standby.count(limits, counts, calls, o)
	if err == nil && refused < 0 && calls > 0 {
		l.requestProbe() // the store does not have these calls, and may be back by now
	}
	return refused, true, err
}

// exchange runs the script for all items of a batch. It returns why the lane has to
// be shut, if it has.
func (l *lane) exchange(ctx context.Context, b *batch) *outage {
	c := l.v.client.Load()
	if c == nil {
		b.err = &outage{cause: errConnecting}
		return b.err
	}
	b.number = l.sent.Add(1)
	if l.v.clustered {
		return l.exchangeEach(ctx, *c, b)
	}
	reply, err := l.v.taking.Run(ctx, *c, b.request.Keys, b.request.Pack())
	if err == nil {
		err = b.divide(reply)
	}
	if err != nil {
		b.err = outageOf(err)
	}
	return b.err
}

var errReply = errors.New("reply of the counting script has a wrong length")

// divide gives each item its part of the reply.
func (b *batch) divide(reply string) error {
	b.reply = append(b.reply[:0], reply...)
	rest := b.reply
	for i := range b.items {
		var ok bool
		if b.items[i].reply, rest, ok = b.request.Reply(i, rest); !ok {
			return errReply
		}
	}
	if len(rest) > 0 {
		return errReply
	}
	return nil
}

// exchangeEach sends a command for each item, as their keys may be on different
// nodes.
func (l *lane) exchangeEach(ctx context.Context, c valkey.Client, b *batch) *outage {
	commands := make([]valkey.Completed, len(b.items))
	for i := range b.items {
		commands[i] = l.v.taking.Command(c, b.keysOf(&b.items[i]), b.request.PackItem(i))
	}
	var failed *outage
	for i, result := range c.DoMulti(ctx, commands...) {
		it := &b.items[i]
		answer, err := result.ToString()
		if script.Missing(err) {
			answer, err = l.v.taking.Send(ctx, c, b.keysOf(it), b.request.PackItem(i))
		}
		reply, rest, ok := b.request.Reply(i, []byte(answer))
		if it.reply = reply; err == nil && (!ok || len(rest) > 0) {
			err = errReply
		}
		if err != nil {
			it.err = outageOf(err)
			failed = it.err
			l.mu.Lock()
			l.suspect = b.request.Keys[it.keyAt]
			l.mu.Unlock()
		}
	}
	return failed
}

// record caches what the store reported about a batch's quotas, and sets the resets
// that its callers read.
func (l *lane) record(b *batch) {
	suspect := l.isDown() != nil
	for i := range b.items {
		if b.items[i].err == nil {
			l.recordItem(b, i, suspect)
		}
	}
}

func (l *lane) recordItem(b *batch, at int, suspect bool) {
	it := &b.items[at]
	granted, refused := it.reply.Outcome()
	if refused == script.Foreign {
		return
	}
	for i, form := range b.request.Forms(at) {
		if form.Rate {
			continue
		}
		key, known := b.request.Keys[int(it.keyAt)+i], &b.resets[int(it.keyAt)+i]
		free, reset := it.reply.Limit(i)
		asked := reset != script.NotAsked
		if asked {
			*known = max(reset, 0)
		}
		before := form.Max - free
		if used := before + int64(granted); used > 0 && reset != script.Closed {
			l.quotas.record(key, report{
				used: used, before: before, reset: *known, asked: asked, batch: b.number, now: b.now, suspect: suspect,
			})
		}
	}
}
