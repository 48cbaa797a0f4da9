package live

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/fasthttp/websocket"
)

// A tally counts what passes on a connection. It may be read at any time.
type tally struct {
	in, out       atomic.Uint64 // text messages from and to the client
	moved         atomic.Int64  // when the last of them was read or queued, Unix milliseconds; 0: there was none
	started       atomic.Uint64 // operations
	operations    atomic.Int32  // active now
	subscriptions atomic.Int32  // of these
}

// came counts a message of the client.
func (t *tally) came() {
	t.in.Add(1)
	t.moved.Store(time.Now().UnixMilli())
}

// went counts a message that was queued for the client.
func (t *tally) went() {
	t.out.Add(1)
	t.moved.Store(time.Now().UnixMilli())
}

// An Ending is how a connection ended.
type Ending struct {
	Code     int // of the close frame; CloseAbnormal: there was none
	Reason   string
	ByClient bool // the client has ended it
}

// How operations end.
const (
	EndComplete = "complete"   // all results have been sent
	EndError    = "error"      // with errors
	EndClient   = "client"     // the client has ended it
	EndClosed   = "connection" // with its connection
)

// A Note describes an operation to operators. The zero Note is that of an operation
// that has not been read.
type Note struct {
	Kind    string // query, mutation or subscription
	Name    string // "": it has none
	Request string // request id
}

// KindSubscription is the kind of operations that have many results.
const KindSubscription = "subscription"

// Describe notes what the operation is, once it is known.
func (o *Operation) Describe(n Note) {
	c := o.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active[string(o.id)] != o {
		return
	}
	if n.Kind == KindSubscription && o.note.Kind != KindSubscription {
		c.tally.subscriptions.Add(1)
	}
	o.note = n
}

// began counts an operation. It needs mu.
func (c *Conn) began(o *Operation) {
	o.since = time.Now()
	c.tally.started.Add(1)
	c.tally.operations.Add(1)
}

// over counts the end of an operation. It needs mu.
func (c *Conn) over(o *Operation, how string) {
	c.tally.operations.Add(-1)
	if o.note.Kind == KindSubscription {
		c.tally.subscriptions.Add(-1)
	}
	if c.o.Ended != nil {
		c.o.Ended(OperationEnd{Note: o.note, Since: o.since, Events: o.events, How: how})
	}
}

// An OperationEnd is an operation that has ended.
type OperationEnd struct {
	Note
	Since  time.Time
	Events uint64 // results sent
	How    string
}

// Ending returns how the connection has ended, after Serve.
func (c *Conn) Ending() Ending {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending.Code == 0 {
		return Ending{Code: CloseAbnormal}
	}
	return c.ending
}

// broken returns the ending that a failed read means: the library has replied to frames
// that are wrong.
func broken(err error) Ending {
	if errors.Is(err, websocket.ErrReadLimit) {
		return Ending{Code: CloseTooBig, Reason: reasonTooBig}
	}
	_, isNet := errors.AsType[net.Error](err)
	_, isClose := errors.AsType[*websocket.CloseError](err)
	if isNet || isClose || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return Ending{Code: CloseAbnormal, ByClient: true}
	}
	return Ending{Code: CloseProtocol, Reason: "A frame is wrong"}
}
