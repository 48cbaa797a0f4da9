package live

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
)

// Options say how a connection is served. All are required but Ended.
type Options struct {
	Limits
	Protocol Protocol

	// Run carries out an operation. It returns when the operation has ended, and soon
	// after ctx has.
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
	o    *Options
	init *time.Timer // for connection_init, and then for operations
	beat *time.Timer

	tally tally

	mu       sync.Mutex
	machine  Machine
	active   map[string]*Operation
	idleFrom time.Time // when the last operation ended
	queue    [][]byte
	queued   int    // bytes that wait to be written
	last     []byte // the payload of the close frame behind the queue; nil: none, or written
	closing  bool   // nothing is queued any more
	writing  bool   // a goroutine writes
	written  sync.Cond
	running  sync.WaitGroup
	ending   Ending // how the connection ends; the zero Ending: it has not, or without a close frame
}

// Take takes over a client's connection whose handshake has been answered. received was
// read from it already. The caller calls Serve, and then closes the connection.
func Take(client net.Conn, received []byte, o *Options) (*Conn, error) {
	ws, err := frames(client, received)
	if err != nil {
		return nil, err
	}
	c := &Conn{ws: ws, o: o, machine: Machine{Protocol: o.Protocol, Most: o.Operations}}
	c.written.L = &c.mu
	ws.SetReadLimit(o.MaxMessage)
	ws.SetPongHandler(func(string) error { return c.heard() })
	ws.SetPingHandler(func(data string) error {
		_ = ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(o.WriteWithin)) // a lost connection shows when it is read
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
	c.cancelAll()
	c.closing = true
	for c.writing {
		c.written.Wait()
	}
	c.mu.Unlock()
	c.running.Wait()
}

// Close ends the connection with a close frame behind what is queued. It does not wait.
func (c *Conn) Close(code int, reason string) { c.close(Ending{Code: code, Reason: cut(reason)}) }

func (c *Conn) close(e Ending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		c.end(e.Code, e.Reason)
		c.ending = e
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
		kind, message, err := c.ws.ReadMessage()
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
		c.mu.Unlock()
	}
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
		c.init.Stop()
		c.follow(c.machine.Accept())
		c.idleFrom = time.Now()
		c.watchIdle()
	case Start:
		c.start(s)
	case Stop:
		if op := c.active[string(s.ID)]; op != nil {
			delete(c.active, string(s.ID))
			c.idleFrom = time.Now()
			op.cancel()
			c.over(op, EndClient)
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
		op.Complete() // unless it has ended
	})
}

// cancelAll cancels all operations. It needs mu.
func (c *Conn) cancelAll() {
	for id, op := range c.active {
		delete(c.active, id)
		op.cancel()
		c.over(op, EndClosed)
	}
}

func (c *Conn) initTimeout() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.machine.init {
		c.watchIdle()
		return
	}
	c.follow(c.machine.InitTimeout())
}

func (c *Conn) heartbeat() {
	c.mu.Lock()
	over := c.closing
	c.send(c.machine.Heartbeat())
	c.mu.Unlock()
	if over {
		return
	}
	// The library allows control messages beside others.
	if c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(c.o.WriteWithin)) == nil {
		c.beat.Reset(c.o.Heartbeat)
	}
}

// send queues a message. It needs mu.
func (c *Conn) send(message []byte) {
	if len(message) == 0 || c.closing {
		return
	}
	if c.queued+len(message) > c.o.MaxQueued {
		c.end(CloseSlowConsumer, "Messages are not read fast enough")
		return
	}
	c.tally.went()
	c.queue = append(c.queue, message)
	c.queued += len(message)
	c.wakeWriter()
}

// end queues a close frame. It needs mu.
func (c *Conn) end(code int, reason string) {
	if c.closing {
		return
	}
	c.ending = Ending{Code: code, Reason: reason}
	c.closing, c.last = true, websocket.FormatCloseMessage(code, reason)
	c.cancelAll()
	c.wakeWriter()
}

// wakeWriter starts a writer: an idle connection has none. It needs mu.
func (c *Conn) wakeWriter() {
	if !c.writing {
		c.writing = true
		go c.write()
	}
}

// write writes what is queued.
func (c *Conn) write() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) > 0 || c.last != nil {
		batch, last := c.queue, c.last
		c.queue, c.last = nil, nil
		c.mu.Unlock()
		n, err := c.writeAll(batch, last)
		c.mu.Lock()
		c.queued -= n
		if err != nil {
			c.queue, c.last, c.closing = nil, nil, true
			_ = c.ws.Close() // ends read
		}
	}
	c.writing = false
	c.written.Broadcast()
}

// writeAll writes messages and, unless last is nil, a close frame. It returns how many
// bytes of messages it has written.
func (c *Conn) writeAll(batch [][]byte, last []byte) (n int, err error) {
	for _, message := range batch {
		if err = c.ws.SetWriteDeadline(time.Now().Add(c.o.WriteWithin)); err == nil {
			err = c.ws.WriteMessage(websocket.TextMessage, message)
		}
		if err != nil {
			return n, err
		}
		n += len(message)
	}
	if last == nil {
		return n, nil
	}
	if err = c.ws.WriteControl(websocket.CloseMessage, last, time.Now().Add(c.o.WriteWithin)); err != nil {
		return n, err
	}
	return n, c.ws.SetReadDeadline(time.Now().Add(closeWithin)) // the client answers with a close frame
}
