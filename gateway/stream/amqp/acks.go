package amqp

import (
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// ackBatch is how many settled messages are acknowledged without waiting for more.
const ackBatch = 64

// The states of a delivery.
const (
	open    uint8 = iota // not settled
	settled              // to be acknowledged
	leaving              // being handed back
	gone                 // acknowledged, or handed back
)

// A delivery is one that the broker waits for an acknowledgement of.
type delivery struct {
	state  uint8
	queue  int
	offset int64 // in a queue that keeps messages
}

// acks acknowledges the deliveries of a channel in batches: by one frame up to where all
// are settled, and one by one beyond.
type acks struct {
	ch   *amqp.Channel
	wire *wire
	wait time.Duration

	mu       sync.Mutex
	closed   bool
	first    uint64 // tag of the first delivery
	all      fifo[delivery]
	waiting  int // settled
	timer    *time.Timer
	flushing bool
	handed   sync.WaitGroup // flushes that are under way
}

func newAcks(ch *amqp.Channel, w *wire, wait time.Duration) *acks {
	return &acks{ch: ch, wire: w, wait: wait, first: 1}
}

// received notes a delivery. Tags of a channel are consecutive, but those of two queues may
// come out of order.
func (a *acks) received(tag uint64, d delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for tag >= a.first+uint64(a.all.len()) {
		a.all.push(delivery{queue: -1})
	}
	*a.at(tag) = d
}

// at is called with mu.
func (a *acks) at(tag uint64) *delivery { return &a.all.items[a.all.head+int(tag-a.first)] }

// settle has a delivery acknowledged soon.
func (a *acks) settle(tag uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || !a.set(tag, settled) {
		return
	}
	a.waiting++
	switch {
	case a.flushing:
	case a.timer == nil:
		a.timer = time.AfterFunc(a.wait, a.flush)
	case a.waiting == 1:
		a.timer.Reset(a.wait)
	case a.waiting == ackBatch:
		a.timer.Reset(0)
	}
}

// giveBack hands a delivery back: to be delivered again, or as a dead letter.
func (a *acks) giveBack(tag uint64, again bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || !a.set(tag, leaving) {
		return
	}
	a.handed.Add(1)
	defer a.handed.Done()
	a.mu.Unlock()
	_ = a.ch.Nack(tag, false, again) // with the channel gone, the broker delivers again
	a.mu.Lock()
	a.at(tag).state = gone // only now: until then, nothing beyond it is acknowledged as a batch
	a.trim()
}

// set is called with mu.
func (a *acks) set(tag uint64, state uint8) bool {
	i := tag - a.first
	if tag < a.first || i >= uint64(a.all.len()) || a.all.at(int(i)).state != open {
		return false
	}
	a.at(tag).state = state
	return true
}

// trim forgets deliveries that are done with. It is called with mu.
func (a *acks) trim() {
	for a.all.len() > 0 && a.all.at(0).state == gone {
		a.all.pop()
		a.first++
	}
}

// flush acknowledges what is settled.
func (a *acks) flush() {
	a.mu.Lock()
	if a.flushing || a.closed {
		a.mu.Unlock()
		return
	}
	a.flushing = true
	a.handed.Add(1)
	defer a.handed.Done()
	for a.waiting > 0 {
		upTo, single := a.collect()
		a.mu.Unlock()
		a.send(upTo, single)
		a.mu.Lock()
		if a.waiting < ackBatch {
			break
		}
	}
	a.flushing = false
	if a.waiting > 0 && !a.closed {
		a.timer.Reset(a.wait)
	}
	a.mu.Unlock()
}

// collect returns what is to be acknowledged: the last tag below which everything is
// settled, 0 for none, and the tags beyond. It is called with mu. The tag of an
// acknowledgement must not have been handed back: the broker closes the channel over a tag
// that it does not know.
func (a *acks) collect() (upTo uint64, single []uint64) {
	whole := true
	for i := range a.all.len() {
		d := &a.all.items[a.all.head+i]
		switch {
		case d.state == open || d.state == leaving:
			whole = false
		case d.state == settled && whole:
			upTo = a.first + uint64(i)
			d.state = gone
		case d.state == settled:
			single = append(single, a.first+uint64(i))
			d.state = gone
		}
	}
	a.waiting = 0
	a.trim()
	return upTo, single
}

// send acknowledges. Its errors are that the channel is gone: the broker delivers again.
func (a *acks) send(upTo uint64, single []uint64) {
	a.wire.cork()
	defer a.wire.uncork()
	if upTo > 0 {
		_ = a.ch.Ack(upTo, true)
	}
	for _, tag := range single {
		_ = a.ch.Ack(tag, false)
	}
}

// ended reports whether close was called.
func (a *acks) ended() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed
}

// close acknowledges what is settled, and ends: what is settled later is for the next
// epoch, which numbers its deliveries anew. It returns the deliveries that are left.
func (a *acks) close() []delivery {
	a.mu.Lock()
	a.closed = true
	if a.timer != nil {
		a.timer.Stop()
	}
	a.mu.Unlock()
	a.handed.Wait()
	a.mu.Lock()
	upTo, single := a.collect()
	left := a.all.take(a.all.len())
	a.mu.Unlock()
	a.send(upTo, single)
	return left
}
