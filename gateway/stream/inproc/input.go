package inproc

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

// An Input takes messages from topics. It has a goroutine only while there are messages to
// pass on.
type Input struct {
	broker *Broker
	site   *stream.Site
	group  string
	limit  int64 // unsettled messages
	topics []*topic
	flow   stream.Flow

	on, stopped atomic.Bool
	flying      atomic.Int64 // unsettled messages
	unwatch     func()

	mu         sync.Mutex
	running    bool // pump runs
	again      bool // and is to look once more
	ended      chan struct{}
	closed     bool
	groups     []*group // of topics, nil while the input is away
	turn       int
	deliveries map[*delivery]struct{}
	away       *time.Timer
}

// NewInput returns an input of topics. The error is that of opening the journal.
func (b *Broker) NewInput(c *streams.BrokerInput, site *stream.Site) (stream.Input, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	in := &Input{
		broker: b, site: site, group: c.ConsumerGroup, limit: int64(max(1, min(c.CheckpointLimit, site.MaxInFlight))),
		groups: make([]*group, len(c.Topics)), deliveries: make(map[*delivery]struct{}),
	}
	if len(c.ConsumerGroup) > maxName {
		return nil, fmt.Errorf("the consumer group has %d bytes; at most %d are allowed", len(c.ConsumerGroup), maxName)
	}
	for _, name := range c.Topics {
		t, err := b.topic(site.Org, name)
		if err != nil {
			return nil, err
		}
		in.topics = append(in.topics, t)
	}
	return in, nil
}

// Start implements stream.Input.
func (in *Input) Start(to stream.Flow) {
	in.flow = to
	for i, t := range in.topics {
		if in.group == "" {
			t.listen(1)
			continue
		}
		in.groups[i] = t.join(in, in.group)
	}
	in.unwatch = to.Demand().Watch(in.demand)
}

// demand follows the demand of the flow.
func (in *Input) demand(on bool) {
	in.on.Store(on)
	if !on {
		in.site.State.Enter(stream.Waiting)
		if in.group == "" {
			in.leaveLater()
		}
		return
	}
	in.site.State.Enter(stream.Running)
	if in.group == "" {
		in.attach()
	}
	in.wake()
}

// attach makes an input without a group get what is published from now on.
func (in *Input) attach() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.away != nil {
		in.away.Stop()
		in.away = nil
	}
	if in.closed || in.stopped.Load() {
		return
	}
	for i, t := range in.topics {
		if in.groups[i] == nil {
			in.groups[i] = t.join(in, "")
		}
	}
}

func (in *Input) leaveLater() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.away == nil && !in.closed {
		in.away = time.AfterFunc(in.broker.limits.away, in.detach)
	}
}

// detach makes an input without a group miss what is published.
func (in *Input) detach() {
	in.mu.Lock()
	if in.away == nil || in.closed {
		in.mu.Unlock()
		return // there was demand in the meantime
	}
	in.away = nil
	groups := append([]*group(nil), in.groups...)
	clear(in.groups)
	in.mu.Unlock()
	for i, t := range in.topics {
		if groups[i] != nil {
			t.leave(in, groups[i])
		}
	}
	if in.on.Load() {
		in.attach() // demand came back while this ran
	}
}

// wake has the input look for messages, on a goroutine that ends when there are none.
func (in *Input) wake() {
	if !in.able() {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.running {
		in.again = true
		return
	}
	in.running = true
	go in.pump()
}

// able reports whether a message could be passed on now.
func (in *Input) able() bool {
	return in.on.Load() && !in.stopped.Load() && in.flying.Load() < in.limit
}

func (in *Input) pump() {
	for {
		for in.able() && in.passOne() {
		}
		in.mu.Lock()
		if !in.again {
			in.running = false
			if in.ended != nil {
				close(in.ended)
				in.ended = nil
			}
			in.mu.Unlock()
			return
		}
		in.again = false
		in.mu.Unlock()
	}
}

// A delivery is a message that was passed on.
type delivery struct {
	in    *Input
	topic *topic
	group *group
	item  *item
	done  atomic.Bool
}

// next takes a waiting message, of each topic in turn.
func (in *Input) next() *delivery {
	in.mu.Lock()
	groups, from := append(make([]*group, 0, 64), in.groups...), in.turn
	in.turn = (in.turn + 1) % len(in.topics)
	in.mu.Unlock()
	for i := range groups {
		at := (from + i) % len(groups)
		if groups[at] == nil {
			continue
		}
		if it, left := in.topics[at].take(groups[at]); it != nil {
			in.site.State.Lag.Store(int64(left))
			return &delivery{in: in, topic: in.topics[at], group: groups[at], item: it}
		}
	}
	return nil
}

// refused is how long an input waits when its flow has demand and takes nothing.
const refused = 10 * time.Millisecond

// passOne passes a message on, and reports whether there was one and it was taken.
func (in *Input) passOne() bool {
	d := in.next()
	if d == nil {
		return false
	}
	e, attempt := d.topic.content(d.item)
	if e == nil {
		return true
	}
	in.mu.Lock()
	if in.closed {
		in.mu.Unlock()
		d.topic.back(d.group, d.item)
		return false
	}
	in.deliveries[d] = struct{}{}
	in.mu.Unlock()
	in.flying.Add(1)
	if size := len(e.body); size > in.site.MaxMessageBytes {
		d.settle(stream.Failf(stream.Permanent, "the message has %d bytes; the stream takes %d at most", size, in.site.MaxMessageBytes))
		return true
	}
	if attempt > 1 {
		in.site.State.Again.Add(1)
	}
	m := &stream.Message{ID: e.id, Body: e.body, Meta: e.meta, Key: e.key, At: time.Now(), Attempt: attempt}
	if in.flow.Take(m, d.settle) {
		in.site.State.Messages.Add(1)
		in.site.State.Bytes.Add(uint64(len(e.body)))
		return true
	}
	if d.end() {
		d.topic.refuse(d.group, d.item)
		if in.on.Load() {
			time.AfterFunc(refused, func() { d.topic.wake(d.group) })
		} else {
			d.topic.wake(d.group) // other members
		}
	}
	return false
}

// end reports whether the delivery had not ended before.
func (d *delivery) end() bool {
	if !d.done.CompareAndSwap(false, true) {
		return false
	}
	d.in.mu.Lock()
	delete(d.in.deliveries, d)
	d.in.mu.Unlock()
	d.in.flying.Add(-1)
	return true
}

// settle is the stream.Settle of the delivery.
func (d *delivery) settle(err error) {
	if !d.end() {
		return
	}
	switch {
	case err == nil:
		d.topic.finish(d.group, d.item)
	case stream.ClassOf(err) == stream.Permanent || stream.ClassOf(err) == stream.Refused:
		d.in.site.State.Fail(err)
		d.topic.bury(d.group, d.item, err)
	default:
		d.in.site.State.Fail(err)
		d.topic.rest(d.group, d.item)
	}
	d.in.wake()
}

// Stop implements stream.Input.
func (in *Input) Stop(ctx context.Context) {
	in.stopped.Store(true)
	if in.unwatch != nil {
		in.unwatch()
	}
	in.site.State.Enter(stream.Draining)
	in.mu.Lock()
	if !in.running {
		in.mu.Unlock()
		return
	}
	if in.ended == nil {
		in.ended = make(chan struct{})
	}
	ended := in.ended
	in.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// Close implements stream.Input. What is not settled goes to other members of the group, or
// waits for the next one.
func (in *Input) Close() {
	in.stopped.Store(true)
	if in.unwatch != nil {
		in.unwatch()
	}
	in.mu.Lock()
	if in.closed {
		in.mu.Unlock()
		return
	}
	in.closed = true
	if in.away != nil {
		in.away.Stop()
	}
	left := make([]*delivery, 0, len(in.deliveries))
	for d := range in.deliveries {
		left = append(left, d)
	}
	groups := append([]*group(nil), in.groups...)
	clear(in.groups)
	in.mu.Unlock()
	for i, g := range groups {
		if g != nil {
			in.topics[i].leave(in, g)
		}
		if in.group == "" && in.flow != nil {
			in.topics[i].listen(-1)
		}
	}
	for _, d := range left {
		if d.end() {
			d.topic.back(d.group, d.item)
		}
	}
	in.site.State.Enter(stream.Stopped)
}
