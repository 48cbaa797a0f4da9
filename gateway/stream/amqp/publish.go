package amqp

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sluicegate/sluice/gateway/stream"
)

const (
	// batch is how many messages are written at once.
	batch = 64

	// abandoned is after which time the library gives up to report a return or a
	// confirmation (5 s), less some for the clock.
	abandoned = 4500 * time.Millisecond

	// tagHeader names a message in a return, which has no tag of its own. Consumers ignore
	// it.
	tagHeader = "svc-tag"
)

// publishing is an epoch of an Output: a channel, and what was sent on it.
//
// The confirm loop reads returns and confirmations from unbuffered channels: only so a
// return is seen before the confirmation of the same message, which is positive. While the
// loop is busy, the library's reader waits, with locks that are needed to publish. So the
// loop never waits for a goroutine that publishes.
type publishing struct {
	o        *Output
	link     *link
	ch       *amqp.Channel
	confirms chan amqp.Confirmation
	returns  chan amqp.Return
	closes   chan *amqp.Error
	heard    time.Time // when the last return or confirmation came
	late     bool      // a confirmation is overdue: the channel is being closed

	flight  fifo[*letter]  // sent and not confirmed, in order; with Output.mu
	first   uint64         // tag of the first in flight; with Output.mu
	writing bool           // with Output.mu
	writers sync.WaitGroup // at most one goroutine that publishes
	headers amqp.Table     // of the message that it publishes
}

// publish runs an epoch. It returns why it ended, and whether there was a connection.
func (o *Output) publish() (err error, connected bool) {
	l, err := o.group.take(o.ctx, o.site.Dial)
	if err != nil {
		return err, false
	}
	defer o.group.release(l)
	e, err := o.open(l)
	if err != nil {
		return err, true
	}
	e.begin()
	err = e.confirmed()
	e.end(err)
	return err, true
}

// open opens a channel and declares the exchange.
func (o *Output) open(l *link) (*publishing, error) {
	defer l.within(o.group.pool.timing.answer)()
	ch, err := exchange(l, o.config.Exchange)
	if err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		l.shut(ch)
		return nil, err
	}
	return &publishing{
		o: o, link: l, ch: ch, first: 1, heard: time.Now(), headers: make(amqp.Table, 3),
		confirms: ch.NotifyPublish(make(chan amqp.Confirmation)),
		returns:  ch.NotifyReturn(make(chan amqp.Return)),
		closes:   ch.NotifyClose(make(chan *amqp.Error, 1)),
	}, nil
}

// begin lets messages flow.
func (e *publishing) begin() {
	o := e.o
	o.mu.Lock()
	o.epoch, o.refuses, o.blocked = e, nil, false
	o.pump()
	changed := o.levelled()
	o.mu.Unlock()
	o.site.State.Enter(stream.Running)
	e.link.join(o)
	if changed {
		o.show()
	}
}

// write publishes what is queued, until the window is full or nothing is left. Those that are
// ready to queue more do so first: then one system call serves all.
func (e *publishing) write() {
	runtime.Gosched()
	for letters, tag := e.next(); len(letters) > 0; letters, tag = e.next() {
		e.link.wire.cork()
		for i, l := range letters {
			if err := e.send(l, tag+uint64(i)); err != nil {
				e.link.shut(e.ch) // what was not sent is in flight, and is sent in the next epoch
				break
			}
		}
		e.link.wire.uncork()
	}
}

// next puts messages in flight and returns them with the tag of the first.
func (e *publishing) next() ([]*letter, uint64) {
	o := e.o
	o.mu.Lock()
	defer o.mu.Unlock()
	room := min(batch, o.config.MaxInFlight-e.flight.len())
	if o.epoch != e || o.blocked || o.queue.len() == 0 || room <= 0 {
		e.writing = false
		return nil, 0
	}
	letters, tag, now := o.queue.take(room), e.first+uint64(e.flight.len()), time.Now()
	for _, l := range letters {
		l.sent = now
		l.times++
		l.returned = nil
		if l.times > 1 {
			o.site.State.Again.Add(1)
		}
		e.flight.push(l)
	}
	return letters, tag
}

func (e *publishing) send(l *letter, tag uint64) error {
	mandatory := !e.o.config.DropUnroutable
	clear(e.headers)
	if l.meta != "" {
		e.headers[metaHeader] = l.meta
	}
	if l.key != nil {
		e.headers[keyHeader] = l.key
	}
	if mandatory {
		e.headers[tagHeader] = int64(tag)
	}
	_, err := e.ch.PublishWithDeferredConfirm(e.o.config.Exchange, l.topic, mandatory, false, amqp.Publishing{
		Headers: e.headers, DeliveryMode: amqp.Persistent, MessageId: l.id, Timestamp: l.m.At,
		AppId: e.o.config.ClientID, Body: l.m.Body,
	})
	return err
}

// confirmed is the confirm loop. It returns when the channel is closed.
func (e *publishing) confirmed() error {
	t := &e.o.group.pool.timing
	tick := time.NewTicker(t.check)
	defer tick.Stop()
	closing := e.o.ctx.Done()
	for {
		select {
		case r, ok := <-e.returns:
			if !ok {
				e.returns = nil
				continue
			}
			e.heard = time.Now()
			e.returned(&r)
		case c, ok := <-e.confirms:
			if !ok {
				return e.why()
			}
			e.confirm(c)
		case <-tick.C:
			e.overdue(t.confirm)
		case <-closing:
			closing = nil
			e.link.shut(e.ch)
		}
	}
}

// why returns why the channel was closed.
func (e *publishing) why() error {
	err, ok := <-e.closes
	switch {
	case e.late:
		return fmt.Errorf("a message was not confirmed within %s", e.o.group.pool.timing.confirm)
	case !ok || err == nil:
		return errors.New("the channel was closed")
	}
	return err
}

// returned notes that the broker had no queue for a message. Its confirmation follows.
func (e *publishing) returned(r *amqp.Return) {
	tag, ok := r.Headers[tagHeader].(int64)
	e.o.mu.Lock()
	defer e.o.mu.Unlock()
	if i := uint64(tag) - e.first; ok && i < uint64(e.flight.len()) {
		e.flight.at(int(i)).returned = stream.Failf(stream.Transient, "no group listens to topic %q (%d %s)", r.RoutingKey, r.ReplyCode, r.ReplyText)
	}
}

// confirm settles the first message in flight: the library hands out confirmations in order.
func (e *publishing) confirm(c amqp.Confirmation) {
	o := e.o
	now := time.Now()
	silence := now.Sub(e.heard)
	e.heard = now
	o.mu.Lock()
	if c.DeliveryTag != e.first || e.flight.len() == 0 {
		o.mu.Unlock()
		e.link.kill() // the library gave up to report one
		return
	}
	l := e.flight.pop()
	e.first++
	o.pump()
	changed := o.levelled()
	o.mu.Unlock()
	if changed {
		o.show()
	}
	switch {
	case l.returned != nil:
		l.settle(l.returned)
	case !c.Ack:
		l.settle(stream.Failf(stream.Transient, "the broker could not store the message"))
	case !o.config.DropUnroutable && silence > abandoned && now.Sub(l.sent) > abandoned:
		l.settle(stream.Failf(stream.Unknown, "the gateway stood still when the message was confirmed"))
	default:
		o.site.State.Messages.Add(1)
		o.site.State.Bytes.Add(uint64(len(l.m.Body)))
		l.settle(nil)
	}
}

// overdue ends the epoch when a message was not confirmed in time. A broker that takes no
// messages does not confirm any either.
func (e *publishing) overdue(limit time.Duration) {
	e.o.mu.Lock()
	late := e.flight.len() > 0 && !e.o.blocked && time.Since(e.flight.at(0).sent) > limit
	e.o.mu.Unlock()
	if late && !e.late {
		e.late = true
		e.link.shut(e.ch)
	}
}

// rest gives what is in flight the whole time for its confirmation again. It is called with
// Output.mu.
func (e *publishing) rest() {
	now := time.Now()
	for i := range e.flight.len() {
		e.flight.at(i).sent = now
	}
}

// end takes back what was not confirmed. It is published first in the next epoch, unless
// the message itself may be the reason that this one has ended.
func (e *publishing) end(why error) {
	e.link.leave(e.o)
	e.link.shut(e.ch)
	o := e.o
	o.mu.Lock()
	o.epoch, o.blocked = nil, false
	o.mu.Unlock()
	answered := e.link.within(closeWithin)
	e.writers.Wait()
	answered()
	o.mu.Lock()
	letters := e.flight.take(e.flight.len())
	again := letters[:0:0]
	var settled []*letter
	limit := o.group.pool.timing.confirm
	for _, l := range letters {
		if o.ctx.Err() != nil || l.returned != nil || refusal(why) || e.late && time.Since(l.sent) > limit {
			settled = append(settled, l)
		} else {
			again = append(again, l)
		}
	}
	o.queue.unshift(again)
	changed := o.levelled()
	o.mu.Unlock()
	if changed {
		o.show()
	}
	for _, l := range settled {
		switch {
		case l.returned != nil:
			l.settle(l.returned)
		case o.ctx.Err() != nil:
			l.settle(stream.ErrClosed)
		default:
			l.settle(unconfirmed(why, len(l.m.Body)))
		}
	}
}
