package endpoint

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/wsconn"
)

// serve returns what answers the requests of a route: with events where they are asked for,
// with lines, or else with one message.
func (o *Output) serve(of *streams.Route) serve {
	events, lines := of.Has(streams.WayEvents), of.Has(streams.WayLines)
	return func(ex *pipeline.Exchange, _ []stream.Meta) pipeline.Verdict {
		switch {
		case events && asksEvents(ex.Call):
			return o.follow(ex, eventFormat{o.event})
		case lines:
			return o.follow(ex, lineFormat{chunked: !ex.Call.HTTP10})
		}
		return o.poll(ex)
	}
}

// follow has the client's connection get all further messages.
func (o *Output) follow(ex *pipeline.Exchange, as format) pipeline.Verdict {
	var f *follower
	if !ex.Call.IsHead() {
		f = &follower{out: o, format: as}
		m, refused := o.join(f, 0)
		if refused != nil {
			return again(ex, refused)
		}
		f.member = m
	}
	a := ex.Answer
	a.Status, a.NoBody, a.Length = 200, true, -1
	a.Lines = append(a.Lines, as.head()...)
	if f == nil {
		return pipeline.Answered
	}
	a.Lines = append(a.Lines, "Connection: close\r\n"...)
	ex.Cut = func(error) { f.abandon() }
	a.Takeover = f.serve
	return pipeline.Answered
}

// A follower is a client that gets messages on its connection until that ends.
type follower struct {
	out    *Output
	member *member
	format format
	conn   atomic.Pointer[wsconn.Outbox] // nil: it is not served yet
	wrote  atomic.Int64                  // when something was sent last, in Unix milliseconds
	over   atomic.Bool                   // it is to end before it is served
}

// maxStray is how much a client may send that only listens, in bytes.
const maxStray = 4 << 10

// serve serves the connection until it ends. The goroutine waits for that in a read.
func (f *follower) serve(conn net.Conn, received []byte) {
	defer f.out.leave(f.member)
	if conn == nil {
		return
	}
	out := wsconn.New(conn, f.out.conf.WriteTimeout)
	f.conn.Store(out)
	if f.over.Load() {
		return
	}
	f.write(out, f.format.first(), func(error) {})
	f.out.begin(f.member)
	f.wait(out, len(received))
	f.out.leave(f.member)
	out.Abandon()
	out.Flushed()
	if out.Slow() {
		f.out.site.State.Dropped.Add(1)
	}
}

// wait returns when the connection has ended.
func (f *follower) wait(out *wsconn.Outbox, stray int) {
	if f.format.beats() {
		defer f.out.wheel.add(f)()
	}
	var sink [64]byte
	for stray <= maxStray {
		n, err := out.Read(sink[:])
		if err != nil {
			return
		}
		stray += n
	}
}

func (f *follower) write(out *wsconn.Outbox, p []byte, done func(error)) {
	f.wrote.Store(time.Now().UnixMilli())
	out.Send(p, done)
}

// buffers has those in which messages are framed.
type buffers struct{ pool sync.Pool }

// maxBuffer bounds what is kept of a buffer, in bytes.
const maxBuffer = 64 << 10

// framed calls do with an empty buffer, and keeps what it returns for later.
func (b *buffers) framed(do func(buf []byte) []byte) {
	buf, _ := b.pool.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	if *buf = do((*buf)[:0]); cap(*buf) <= maxBuffer {
		b.pool.Put(buf)
	}
}

// send implements client.
func (f *follower) send(it item) {
	out := f.conn.Load()
	f.out.framed(func(buf []byte) []byte {
		e, err := f.format.eventOf(it.m)
		if err != nil {
			f.out.refuse(f.member, it, err)
			return buf
		}
		framed := f.format.appendEvent(buf, &e, it.m.ID)
		f.write(out, framed, func(err error) {
			if err != nil {
				f.out.leave(f.member)
				out.Abandon()
			}
			f.out.done(f.member, it, err)
		})
		return framed
	})
}

// beat sends something to a connection that is idle.
func (f *follower) beat() {
	quiet := time.Since(time.UnixMilli(f.wrote.Load()))
	if out := f.conn.Load(); out.Waiting() == 0 && quiet > f.out.conf.Heartbeat/4 {
		f.write(out, f.format.beat(), func(error) {})
	}
}

// reconnectWithin is the longest time that clients are asked to wait before they connect
// again, so that not all do at once.
const reconnectWithin = 3 * time.Second

// end implements client.
func (f *follower) end() {
	f.over.Store(true)
	out := f.conn.Load()
	if out == nil {
		return
	}
	wait := time.Second + rand.N(reconnectWithin-time.Second)
	f.write(out, f.format.last(wait), func(error) {})
	out.Last(time.Nanosecond)
}

// abandon implements client.
func (f *follower) abandon() {
	f.over.Store(true)
	if out := f.conn.Load(); out != nil {
		out.Abandon()
	}
}
