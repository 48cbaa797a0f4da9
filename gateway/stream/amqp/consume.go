package amqp

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sluicegate/sluice/gateway/stream"
)

// takeAgain is after which time a message is offered again that the flow did not take
// although it has demand.
const takeAgain = 5 * time.Millisecond

// consuming is an epoch of an Input. What is settled in a later epoch is not acknowledged
// there: its channel numbers other messages in the same way.
type consuming struct {
	in     *Input
	link   *link
	ch     *amqp.Channel
	acks   *acks
	queues []queue
	closes chan *amqp.Error

	deliveries chan received // merged, of all queues; nil: there are no consumers
	held       *received     // was not taken yet
}

// received is a delivery of one of the queues. The last one of a queue has ended set.
type received struct {
	amqp.Delivery
	queue int
	ended bool
	m     *stream.Message
}

// consume runs an epoch. It returns why it ended, and whether there was a connection.
func (in *Input) consume() (err error, connected bool) {
	l, err := in.group.take(in.halted, in.site.Dial)
	if err != nil {
		return err, false
	}
	defer in.group.release(l)
	c, err := in.open(l)
	if err != nil {
		return err, true
	}
	in.show(c.queues)
	stop := l.gauge(in)
	defer stop()
	err = c.run()
	c.end()
	return err, true
}

// open opens a channel and declares the queues.
func (in *Input) open(l *link) (*consuming, error) {
	defer l.within(in.group.pool.timing.answer)()
	ch, err := exchange(l, in.config.Exchange)
	if err != nil {
		return nil, err
	}
	t := &in.group.pool.timing
	c := &consuming{in: in, link: l, ch: ch, acks: newAcks(ch, l.wire, t.ack), queues: slices.Clone(in.queues)}
	if err := c.declare(); err != nil {
		l.shut(ch)
		return nil, err
	}
	c.closes = ch.NotifyClose(make(chan *amqp.Error, 1))
	return c, nil
}

func (c *consuming) declare() error {
	for _, all := range [][]queue{c.queues, c.in.logs} {
		for i := range all {
			if err := all[i].declare(c.ch, c.in.config.Exchange); err != nil {
				return err
			}
		}
	}
	return c.ch.Qos(c.in.prefetch(), 0, false)
}

// run passes messages on while there is demand.
func (c *consuming) run() error {
	for {
		if err := c.waiting(); err != nil {
			return err
		}
		if c.in.halted.Err() != nil {
			return c.settling()
		}
		if err := c.start(); err != nil {
			return err
		}
		c.in.site.State.Enter(stream.Running)
		err := c.pass()
		if err == nil {
			err = c.stop()
		}
		if err != nil {
			return err
		}
	}
}

// waiting waits for demand, or for Stop.
func (c *consuming) waiting() error {
	for !c.in.flow.Demand().On() {
		c.in.site.State.Enter(stream.Waiting)
		select {
		case <-c.in.wake:
		case <-c.in.halted.Done():
			return nil
		case err := <-c.closes:
			return closedBy(err)
		}
	}
	return nil
}

// settling waits, after Stop, until the channel ends or Close is called: what was passed on
// is acknowledged when it is settled.
func (c *consuming) settling() error {
	c.in.hush()
	select {
	case <-c.in.ctx.Done():
		return c.in.ctx.Err()
	case err := <-c.closes:
		return closedBy(err)
	}
}

// start begins to consume. A queue for this input alone may have expired meanwhile.
func (c *consuming) start() error {
	defer c.link.within(c.in.group.pool.timing.answer)()
	c.deliveries = make(chan received)
	left := new(atomic.Int32)
	left.Store(1)
	defer c.finish(c.deliveries, left)
	for i := range c.queues {
		q := &c.queues[i]
		if q.kind == alone {
			if err := q.declare(c.ch, c.in.config.Exchange); err != nil {
				return err
			}
		}
		from, err := c.ch.Consume(q.name, consumerTag(i), false, false, false, false, c.startAt(i))
		if err != nil {
			return &setupError{"consuming from queue " + q.name, err}
		}
		left.Add(1)
		go c.merge(i, from, c.deliveries, left)
	}
	return nil
}

func consumerTag(i int) string { return "sluice-" + strconv.Itoa(i) }

// startAt returns the arguments to consume with: of a queue that keeps messages, from where.
func (c *consuming) startAt(i int) amqp.Table {
	if c.queues[i].kind != log {
		return nil
	}
	switch at := c.in.offsets[i]; {
	case at >= 0:
		return amqp.Table{"x-stream-offset": at}
	case c.in.config.StartFromOldest:
		return amqp.Table{"x-stream-offset": "first"}
	}
	return amqp.Table{"x-stream-offset": "next"}
}

// merge passes the deliveries of a queue to the goroutine of the epoch, until the consumer
// is cancelled. The last one closes the channel.
func (c *consuming) merge(i int, from <-chan amqp.Delivery, to chan<- received, left *atomic.Int32) {
	for d := range from {
		to <- received{Delivery: d, queue: i}
	}
	to <- received{queue: i, ended: true}
	c.finish(to, left)
}

func (c *consuming) finish(to chan<- received, left *atomic.Int32) {
	if left.Add(-1) == 0 {
		close(to)
	}
}

// pass passes messages on until there was no demand for some time, Stop is called, or the
// epoch has ended, which is an error.
func (c *consuming) pass() error {
	idle := time.NewTimer(c.in.group.pool.timing.idle)
	idle.Stop()
	defer idle.Stop()
	waits := false // for demand
	for {
		from := c.deliveries
		if c.held != nil && c.offer() {
			c.held = nil
		}
		if c.held != nil || !c.in.flow.Demand().On() {
			from = nil
			if !waits {
				idle.Reset(c.in.group.pool.timing.idle)
			}
			waits = true
		} else if waits {
			idle.Stop()
			waits = false
		}
		var retry <-chan time.Time
		if c.held != nil && c.in.flow.Demand().On() {
			retry = time.After(takeAgain)
		}
		select {
		case d := <-from:
			if d.ended {
				return c.over(d.queue)
			}
			c.held = c.receive(d)
		case <-retry:
		case <-c.in.wake:
		case <-idle.C:
			if !c.in.flow.Demand().On() {
				return nil
			}
			waits = false
		case <-c.in.halted.Done():
			return nil
		case err := <-c.closes:
			return closedBy(err)
		}
	}
}

// over returns why a queue delivers no more: it was deleted, or the channel is closed.
func (c *consuming) over(queue int) error {
	if c.ch.IsClosed() {
		return closedBy(<-c.closes)
	}
	return fmt.Errorf("the queue %s was deleted", c.queues[queue].name)
}

// receive notes a delivery. It returns nil if the message is too large for the stream: it
// becomes a dead letter.
func (c *consuming) receive(d received) *received {
	offset, _ := integer(d.Headers["x-stream-offset"])
	c.acks.received(d.DeliveryTag, delivery{queue: d.queue, offset: offset})
	if c.queues[d.queue].kind == log {
		c.in.offsets[d.queue] = offset + 1
	}
	if d.Redelivered {
		c.in.site.State.Again.Add(1)
	}
	if limit := c.in.site.MaxMessageBytes; len(d.Body) > limit {
		c.in.site.State.Fail(stream.Failf(stream.Permanent, "a message in queue %s has %d bytes, more than the %d of max_message_bytes", c.queues[d.queue].name, len(d.Body), limit))
		c.refuse(d.queue, d.DeliveryTag)
		return nil
	}
	d.m = messageOf(&d.Delivery)
	return &d
}

// refuse makes a dead letter of a delivery. A queue that keeps messages has none.
func (c *consuming) refuse(queue int, tag uint64) {
	if c.queues[queue].kind == log {
		c.acks.settle(tag)
		return
	}
	c.acks.giveBack(tag, false)
}

// offer passes the held message on, and reports whether it was taken.
func (c *consuming) offer() bool {
	tag, queue, attempt := c.held.DeliveryTag, c.held.queue, c.held.m.Attempt
	if !c.in.flow.Take(c.held.m, func(err error) { c.settle(queue, tag, attempt, err) }) {
		return false
	}
	c.in.site.State.Messages.Add(1)
	c.in.site.State.Bytes.Add(uint64(len(c.held.Body)))
	return true
}

// settle acknowledges a message, makes a dead letter of it, or has it delivered again after
// a pause that grows with its attempts.
func (c *consuming) settle(queue int, tag uint64, attempt int, err error) {
	switch class := stream.ClassOf(err); {
	case err == nil:
		c.acks.settle(tag)
	case errors.Is(err, stream.ErrClosed):
		c.acks.giveBack(tag, true)
	case class == stream.Permanent || class == stream.Refused:
		c.refuse(queue, tag)
	default:
		time.AfterFunc(c.in.group.pool.timing.pause(attempt), func() { c.again(queue, tag) })
	}
}

// again has a message delivered again. From a queue that keeps messages it is delivered in
// the next epoch, which begins at the first that is not settled.
func (c *consuming) again(queue int, tag uint64) {
	if c.queues[queue].kind != log {
		c.acks.giveBack(tag, true)
		return
	}
	if !c.acks.ended() {
		c.link.shut(c.ch)
	}
}

// stop cancels the consumers and hands back what was not passed on. What was passed on can
// still be acknowledged.
func (c *consuming) stop() error {
	answered := c.link.within(c.in.group.pool.timing.answer)
	var unread []*received
	if c.held != nil {
		unread, c.held = append(unread, c.held), nil
	}
	failed := make(chan error, 1)
	go func() {
		var all []error
		for i := range c.queues {
			all = append(all, c.ch.Cancel(consumerTag(i), false))
		}
		failed <- errors.Join(all...)
	}()
	for d := range c.deliveries {
		if d.ended {
			continue
		}
		if one := c.receive(d); one != nil {
			unread = append(unread, one)
		}
	}
	err := <-failed
	answered()
	c.deliveries = nil
	c.link.wire.cork()
	c.handBack(unread)
	c.link.wire.uncork()
	return err
}

// handBack has messages delivered again. Positions in queues that keep messages go back to
// the first of them.
func (c *consuming) handBack(unread []*received) {
	for _, d := range slices.Backward(unread) {
		if offset, ok := integer(d.Headers["x-stream-offset"]); ok && c.queues[d.queue].kind == log {
			c.in.offsets[d.queue] = offset
		}
	}
	for _, d := range unread {
		c.acks.giveBack(d.DeliveryTag, true)
	}
}

// end leaves the channel. The broker delivers what is not acknowledged again.
func (c *consuming) end() {
	left := c.acks.close()
	c.resumeAt(left)
	c.link.shut(c.ch)
	if c.deliveries != nil {
		for range c.deliveries { // until the channel is closed
		}
	}
}

// resumeAt notes where to go on in queues that keep messages: at the first that is not
// settled.
func (c *consuming) resumeAt(left []delivery) {
	for _, d := range slices.Backward(left) {
		if d.state == open && d.queue >= 0 && c.queues[d.queue].kind == log {
			c.in.offsets[d.queue] = d.offset
		}
	}
}

// closedBy returns why a channel was closed.
func closedBy(err *amqp.Error) error {
	if err == nil {
		return errors.New("the channel was closed")
	}
	return err
}
