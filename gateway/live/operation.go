package live

import (
	"context"
	"time"
)

// An Operation is one request of a connection. Its methods may be called by any
// goroutine, and after its end: they do nothing then.
type Operation struct {
	Request []byte // a JSON object, as the body of a request over HTTP

	conn   *Conn
	id     []byte
	cancel context.CancelFunc

	note   Note
	since  time.Time
	events uint64 // results that were queued
}

// Next sends a result, a JSON object. It is copied.
func (o *Operation) Next(result []byte) {
	c := o.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active[string(o.id)] == o {
		o.events++
		c.send(c.machine.AppendNext(make([]byte, 0, len(result)+len(o.id)+64), o.id, result))
	}
}

// Fail ends the operation with errors, a JSON array.
func (o *Operation) Fail(errors []byte) { o.finish(EndError, (*Machine).AppendError, errors) }

// Complete ends the operation.
func (o *Operation) Complete() {
	o.finish(EndComplete, func(m *Machine, b, id, _ []byte) []byte { return m.AppendComplete(b, id) }, nil)
}

func (o *Operation) finish(how string, appendLast func(m *Machine, b, id, payload []byte) []byte, payload []byte) {
	c := o.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active[string(o.id)] != o {
		return
	}
	delete(c.active, string(o.id))
	c.idleFrom = time.Now()
	c.machine.End(o.id)
	c.over(o, how)
	c.send(appendLast(&c.machine, nil, o.id, payload))
}
