package endpoint

import (
	"errors"
	"io"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

var noMessage = pipeline.NewRejection(pipeline.ReasonRequestTimeout, 408, "No message has come in time")

// A poller is a client that waits for one message.
type poller struct{ got chan item }

// poll answers with the next message for the client, or with 408 when none has come in time.
// That is no refusal: clients do so again and again.
func (o *Output) poll(ex *pipeline.Exchange) pipeline.Verdict {
	a := ex.Answer
	if ex.Call.IsHead() {
		a.Status, a.NoBody, a.Length = 200, true, -1
		return pipeline.Answered
	}
	p := &poller{make(chan item, 1)}
	timer := time.NewTimer(o.conf.Timeout)
	defer timer.Stop()
	m, refused := o.join(p, 1)
	if refused != nil {
		return again(ex, refused)
	}
	it, ok := o.await(p, timer.C)
	o.leave(m)
	if !ok { // one may have come at the last moment
		select {
		case it = <-p.got:
			ok = true
		default:
		}
	}
	switch {
	case ok && ex.Call.Gone():
		o.done(m, it, errGone)
		return ex.Reject(gone)
	case ok:
		deliver(ex, &delivery{out: o, member: m, item: it, rest: it.m.Body})
	case o.isClosed():
		return again(ex, draining)
	default:
		a.Status, a.Body, a.Close = noMessage.Status, noMessage.JSON(), true
		a.Append("Content-Type", []byte("application/json"))
	}
	return pipeline.Answered
}

var errGone = errors.New("the client has left")

// await returns the message that comes for a poller. It returns false when the time is over
// or the output is closed.
func (o *Output) await(p *poller, timeout <-chan time.Time) (item, bool) {
	select {
	case it := <-p.got:
		return it, true
	case <-timeout:
	case <-o.stopped:
	}
	return item{}, false
}

func (o *Output) isClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// send implements client.
func (p *poller) send(it item) { p.got <- it } // its only one

// end implements client: the poller sees that the output is closed.
func (*poller) end() {}

// abandon implements client.
func (*poller) abandon() {}

// deliver makes a message the answer. Its id is in a header.
func deliver(ex *pipeline.Exchange, d *delivery) {
	a := ex.Answer
	a.Status, a.Stream, a.Length = 200, d, int64(len(d.rest))
	a.Append("Content-Type", []byte(typeOf(d.rest)))
	a.Append("Cache-Control", []byte("no-store"))
	if id := d.item.m.ID; id != "" && isFieldValue(id) {
		a.Append("Message-Id", []byte(id))
	}
}

// A delivery is the body of an answer that is a message. The message is settled when it has
// been written.
type delivery struct {
	out    *Output
	member *member
	item   item
	rest   []byte
	over   bool
}

// Read implements io.Reader. It is called again when what it returned has been written.
func (d *delivery) Read(p []byte) (int, error) {
	if len(d.rest) == 0 {
		d.finish(nil)
		return 0, io.EOF
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (d *delivery) Close() error {
	d.finish(errGone)
	return nil
}

func (d *delivery) finish(err error) {
	if !d.over {
		d.over = true
		d.out.done(d.member, d.item, err)
	}
}
