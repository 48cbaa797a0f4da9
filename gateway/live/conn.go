package live

import (
	"compress/flate"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/internal/wsconn"
)

// Options say how a connection is served. All are required but Init and Ended.
type Options struct {
	Limits
	Protocol Protocol
	Deflated bool // messages are compressed: the handshake has agreed on wsconn.Deflate

	// Init decides on the payload of connection_init; nil: every connection is
	// acknowledged. It is called once, and may wait.
	Init func(payload []byte) *Refusal

	// Run carries out an operation. It returns soon after ctx has ended, and otherwise when
	// the operation has ended or is kept.
	Run func(ctx context.Context, op *Operation)

	// Ended is called when an operation has ended. It must neither wait nor call methods
	// of the connection. It may be nil.
	Ended func(OperationEnd)
}

// closeWithin is how long a client may take to answer a close frame.
const closeWithin = time.Second

// A Conn is a client's connection.
type Conn struct {
	ws   *websocket.Conn
	out  *wsconn.Outbox
	o    *Options
	init *time.Timer // for connection_init, and then for operations
	beat *time.Timer

	tally tally

	mu       sync.Mutex
	machine  Machine
	active   map[string]*Operation
	idleFrom time.Time // when the last operation ended
	ended    []Source  // of operations that have ended; they are left when mu is given up
	closing  bool      // nothing is sent any more
	running  sync.WaitGroup
	ending   Ending // how the connection ends; the zero Ending: it has not, or without a close frame
}

// Take takes over a client's connection whose handshake has been answered. received was
// read from it already. The caller calls Serve, and then closes the connection.
func Take(client net.Conn, received []byte, o *Options) (*Conn, error) {
	out := wsconn.New(client, o.WriteWithin)
	frames := wsconn.Frames
	if o.Deflated {
		frames = wsconn.DeflatedFrames
	}
	ws, err := frames(out, received)
	if err != nil {
		return nil, err
	}
	c := &Conn{ws: ws, out: out, o: o, machine: Machine{Protocol: o.Protocol, Most: o.Operations}}
	ws.SetReadLimit(o.MaxMessage)
	ws.SetPongHandler(func(string) error { return c.heard() })
	ws.SetPingHandler(func(data string) error {
		c.pong(data)
		return c.heard()
	})
	ws.SetCloseHandler(func(int, string) error { return nil }) // answered by lost
	c.init = time.AfterFunc(o.InitTimeout, c.initTimeout)
	c.beat = time.AfterFunc(o.Heartbeat, c.heartbeat)
	return c, nil
}

// Serve serves the connection until it ends. All operations have ended when it returns.
func (c *Conn) Serve() {
	c.read()
	c.init.Stop()
	c.beat.Stop()
	c.mu.Lock()
	c.endAll()
	c.closing = true
	c.unlock()
	c.out.Flushed()
	c.running.Wait()
}

// Close ends the connection with a close frame behind what was sent. It does not wait.
func (c *Conn) Close(code int, reason string) { c.close(Ending{Code: code, Reason: cut(reason)}) }

func (c *Conn) close(e Ending) {
	c.mu.Lock()
	defer c.unlock()
	if !c.closing {
		c.end(e.Code, e.Reason)
		c.ending = e
	}
}

// Sources returns those of the operations that are kept.
func (c *Conn) Sources() []Source {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Source
	for _, op := range c.active {
		if op.source != nil {
			all = append(all, op.source)
		}
	}
	return all
}

// unlock gives up mu and leaves the sources of operations that have ended. A source that
// is passing on a result holds none of its locks.
func (c *Conn) unlock() {
	ended := c.ended
	c.ended = nil
	c.mu.Unlock()
	for _, source := range ended {
		source.Leave()
	}
}

// heard puts off the end of a connection whose client is silent.
func (c *Conn) heard() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil // write has set the time
	}
	return c.ws.SetReadDeadline(time.Now().Add(5 * c.o.Heartbeat / 2))
}

// read handles the client's messages until the connection ends.
func (c *Conn) read() {
	for c.heard() == nil {
		kind, message, err := c.next()
		if err != nil {
			c.lost(err)
			return
		}
		c.tally.came()
		c.mu.Lock()
		if !c.closing { // what comes behind the last message is not for us
			step := c.machine.Binary()
			if kind == websocket.TextMessage {
				step = c.machine.Text(message)
			}
			c.follow(step)
		}
		c.unlock()
	}
}

// next returns the client's next message.
func (c *Conn) next() (kind int, message []byte, err error) {
	if !c.o.Deflated {
		return c.ws.ReadMessage()
	}
	kind, from, err := c.ws.NextReader()
	if err != nil {
		return 0, nil, err
	}
	message, err = io.ReadAll(io.LimitReader(from, c.o.MaxMessage+1))
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	switch {
	case int64(len(message)) > c.o.MaxMessage: // the library bounds what it was compressed to
		c.Close(CloseTooBig, reasonTooBig)
		err = websocket.ErrReadLimit
	case corrupt || errors.Is(err, io.ErrUnexpectedEOF):
		c.Close(CloseInvalidText, reasonCorrupt)
	}
	return kind, message, err
}

// lost answers the end of the connection: the close frame of a client, or what is wrong
// with its frames, to which the library has replied.
func (c *Conn) lost(err error) {
	if closed, ok := errors.AsType[*websocket.CloseError](err); ok && closed.Code != websocket.CloseAbnormalClosure {
		code := closed.Code
		if code == websocket.CloseNoStatusReceived {
			code = websocket.CloseNormalClosure
		}
		c.close(Ending{code, "", true})
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		c.ending = broken(err)
	}
}

// follow takes a step. It needs mu.
func (c *Conn) follow(s Step) {
	c.send(s.Send)
	switch s.Do {
	case Init:
		c.decide(s.Payload)
	case Start:
		c.start(s)
	case Stop:
		if op := c.active[string(s.ID)]; op != nil {
			c.forget(op, EndClient)
		}
	case Close:
		c.end(s.Code, s.Reason)
	}
}

// start runs an operation. It needs mu.
func (c *Conn) start(s Step) {
	ctx, cancel := context.WithCancel(context.Background())
	op := &Operation{Request: s.Payload, conn: c, id: s.ID, cancel: cancel}
	if c.active == nil {
		c.active = make(map[string]*Operation)
	}
	c.active[string(s.ID)] = op
	c.began(op)
	c.running.Go(func() {
		defer cancel()
		c.o.Run(ctx, op)
		op.ran()
	})
}

// forget ends an operation, of which the machine knows already. It needs mu.
func (c *Conn) forget(op *Operation, how string) {
	delete(c.active, string(op.id))
	c.idleFrom = time.Now()
	op.cancel()
	if op.source != nil {
		c.ended = append(c.ended, op.source)
	}
	c.over(op, how)
}

// endAll ends all operations. It needs mu.
func (c *Conn) endAll() {
	for _, op := range c.active {
		c.forget(op, EndClosed)
	}
}

func (c *Conn) initTimeout() {
	c.mu.Lock()
	defer c.unlock()
	if c.machine.acked {
		c.watchIdle()
		return
	}
	c.follow(c.machine.InitTimeout())
}

func (c *Conn) heartbeat() {
	c.mu.Lock()
	over := c.closing
	c.send(c.machine.Heartbeat())
	c.unlock()
	if over {
		return
	}
	if c.ws.WriteControl(websocket.PingMessage, nil, time.Time{}) == nil { // the library allows it beside others
		c.beat.Reset(c.o.Heartbeat)
	}
}

// pong answers a ping, unless much waits already.
func (c *Conn) pong(data string) {
	c.mu.Lock()
	defer c.unlock()
	if c.fits(len(data)) {
		_ = c.ws.WriteControl(websocket.PongMessage, []byte(data), time.Time{}) // a lost connection shows when it is read
	}
}

// fits reports whether a message may be sent, and ends a connection whose client has left
// too much unread. It needs mu.
func (c *Conn) fits(size int) bool {
	if c.closing {
		return false
	}
	if c.out.Waiting()+size > c.o.MaxQueued {
		c.end(CloseSlowConsumer, "Messages are not read fast enough")
		return false
	}
	return true
}

// send sends a message, which is not used any more when it returns. It needs mu.
func (c *Conn) send(message []byte) {
	if len(message) > 0 && c.fits(len(message)) {
		c.tally.went()
		_ = c.ws.WriteMessage(websocket.TextMessage, message) // see pong
	}
}

// end sends a close frame. It needs mu.
func (c *Conn) end(code int, reason string) {
	if c.closing {
		return
	}
	c.closing, c.ending = true, Ending{Code: code, Reason: reason}
	c.endAll()
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Time{}) // see pong
	c.out.Last(closeWithin)
}
