package live

import (
	"context"
	"sync"
	"time"
)

// A Sink takes the results of a subscription. Its methods do not wait. A result is not used
// any more when Next returns.
type Sink interface {
	Next(result []byte) // a JSON object
	Fail(errors []byte) // a JSON array; the last call
	Complete()          // the last call
}

// A Source gives the results of an operation that is kept.
type Source interface {
	// Leave ends the results. It may be called while one is passed on, and more than once.
	Leave()
}

// An Operation is one request of a connection. Its methods may be called by any
// goroutine, and after its end: they do nothing then.
type Operation struct {
	Request []byte // a JSON object, as the body of a request over HTTP

	conn   *Conn
	id     []byte
	cancel context.CancelFunc
	source Source // nil: Run carries the operation out

	note   Note
	since  time.Time
	events uint64 // results that were sent
}

// Keep has the operation go on when Run has returned. source is left when it has ended.
func (o *Operation) Keep(source Source) {
	c := o.conn
	c.mu.Lock()
	if o.source = source; c.active[string(o.id)] != o {
		c.ended = append(c.ended, source)
	}
	c.unlock()
}

// ran completes an operation unless it has ended or is kept.
func (o *Operation) ran() {
	c := o.conn
	c.mu.Lock()
	kept := o.source != nil
	c.mu.Unlock()
	if !kept {
		o.Complete()
	}
}

// messages are buffers for messages that are sent.
var messages = sync.Pool{New: func() any { return new([]byte) }}

// maxPooled is the size up to which buffers are used again, in bytes.
const maxPooled = 64 << 10

// Next implements Sink.
func (o *Operation) Next(result []byte) {
	o.say("", func(m *Machine, b []byte) []byte { return m.AppendNext(b, o.id, result) })
}

// Fail implements Sink.
func (o *Operation) Fail(errors []byte) {
	o.say(EndError, func(m *Machine, b []byte) []byte { return m.AppendError(b, o.id, errors) })
}

// Complete implements Sink.
func (o *Operation) Complete() {
	o.say(EndComplete, func(m *Machine, b []byte) []byte { return m.AppendComplete(b, o.id) })
}

// say sends a message of the operation unless it has ended. how is "" but for the last one.
func (o *Operation) say(how string, write func(*Machine, []byte) []byte) {
	c := o.conn
	c.mu.Lock()
	defer c.unlock()
	if c.active[string(o.id)] != o {
		return
	}
	if how == "" {
		o.events++
	} else {
		c.machine.End(o.id)
		c.forget(o, how)
	}
	b := messages.Get().(*[]byte)
	*b = write(&c.machine, (*b)[:0])
	c.send(*b)
	if cap(*b) <= maxPooled {
		messages.Put(b)
	}
}
