// Package load is a load generator for Linux that checks every response: a closed
// loop, and an open loop on one thread.
package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/bench/answer"
)

// Plan describes the requests to one server.
type Plan struct {
	Addr  string // host:port
	Conns int    // keep-alive connections, each with one request at a time

	// Request appends the n-th request to dst, whole. Each n is used once.
	Request func(dst []byte, n uint64) []byte
	Want    answer.Want

	// Anew makes every run begin with new connections, for servers that close idle ones.
	Anew bool

	TLS   *tls.Config // nil: plain connections
	Timed bool        // Latency returns the response times

	// Check is called for every wanted response, with its head and the value that Mark
	// returned before the request was sent. Both are called by several goroutines. Nil:
	// no check.
	Check func(mark uint64, head []byte) error
	Mark  func() uint64 // nil: marks are 0
}

// Stats is what came back so far.
type Stats struct {
	Good uint64 // answers that were as wanted
	Bad  uint64 // those that were not, and connections that broke
}

// A Client keeps a server's connections busy in a closed loop. The connections
// stay open between runs. It is used by one goroutine; Stats by any.
type Client struct {
	plan  Plan
	conns []*connection
	asked atomic.Uint64
	until time.Time // when the run under way gives up on answers
	mu    sync.Mutex
	first error
}

// connection is one of a client's, padded so that counting on one does not slow
// its neighbour.
type connection struct {
	net    net.Conn
	reader *answer.Reader
	out    []byte
	took   *Histogram // nil: not recorded
	good   atomic.Uint64
	bad    atomic.Uint64
	_      [64]byte
}

// New returns a client for a plan. Close ends it.
func New(plan Plan) *Client {
	c := &Client{plan: plan, conns: make([]*connection, plan.Conns)}
	for i := range c.conns {
		c.conns[i] = &connection{reader: answer.NewReader(nil)}
		if plan.Timed {
			c.conns[i].took = new(Histogram)
		}
	}
	return c
}

// patience is how long an answer may take once a run has ended.
const patience = 10 * time.Second

// Run keeps all connections busy for a while, and returns when the last answer
// is there.
func (c *Client) Run(ctx context.Context, long time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	c.until = time.Now().Add(long + patience)
	if c.plan.Anew {
		c.Close()
	}
	var running sync.WaitGroup
	for _, conn := range c.conns {
		running.Go(func() { c.loop(ctx, conn) })
	}
	running.Wait()
}

// Once sends one request on every connection, few at a time, and leaves them
// open.
func (c *Client) Once() {
	c.until = time.Now().Add(time.Minute)
	var running sync.WaitGroup
	turn := make(chan struct{}, 16)
	for _, conn := range c.conns {
		turn <- struct{}{}
		running.Go(func() {
			c.one(conn)
			<-turn
		})
	}
	running.Wait()
}

// retryAfter keeps a client from spinning on a server that is gone.
const retryAfter = 10 * time.Millisecond

func (c *Client) loop(ctx context.Context, conn *connection) {
	if conn.net != nil {
		_ = conn.net.SetDeadline(c.until) // a connection that is closed says so when it is used
	}
	for ctx.Err() == nil {
		if c.one(conn) {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryAfter):
		}
	}
}

// one makes one request, and reports whether it succeeded.
func (c *Client) one(conn *connection) bool {
	err := c.exchange(conn)
	if err == nil {
		conn.good.Add(1)
		return true
	}
	conn.bad.Add(1)
	c.note(err)
	if conn.net != nil {
		_ = conn.net.Close()
		conn.net = nil
	}
	return false
}

func (c *Client) exchange(conn *connection) error {
	if conn.net == nil {
		dialled, err := c.dial()
		if err != nil {
			return err
		}
		conn.net = dialled
		conn.reader.Reset(dialled)
		_ = dialled.SetDeadline(c.until)
	}
	mark := uint64(0)
	if c.plan.Mark != nil {
		mark = c.plan.Mark()
	}
	conn.out = c.plan.Request(conn.out[:0], c.asked.Add(1)-1)
	began := time.Now()
	if _, err := conn.net.Write(conn.out); err != nil {
		return fmt.Errorf("sending a request: %w", err)
	}
	if err := conn.reader.Next(&c.plan.Want); err != nil {
		return err
	}
	if conn.took != nil {
		conn.took.Record(time.Since(began))
	}
	if c.plan.Check != nil {
		return c.plan.Check(mark, conn.reader.Head())
	}
	return nil
}

// dial opens a connection; a handshake is part of that.
func (c *Client) dial() (net.Conn, error) {
	dialer := &net.Dialer{Timeout: patience}
	if c.plan.TLS == nil {
		return dialer.Dial("tcp", c.plan.Addr)
	}
	return tls.DialWithDialer(dialer, "tcp", c.plan.Addr, c.plan.TLS)
}

func (c *Client) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first == nil {
		c.first = err
	}
}

// Stats returns what came back so far.
func (c *Client) Stats() Stats {
	var s Stats
	for _, conn := range c.conns {
		s.Good += conn.good.Load()
		s.Bad += conn.bad.Load()
	}
	return s
}

// Latency returns the response times of wanted responses since the last call, each from
// sending the request. It is empty unless the plan is Timed. It is called between runs.
func (c *Client) Latency() *Histogram {
	all := new(Histogram)
	for _, conn := range c.conns {
		if conn.took != nil {
			all.Add(conn.took)
			*conn.took = Histogram{}
		}
	}
	return all
}

// FirstError returns the first thing that went wrong, or nil.
func (c *Client) FirstError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first
}

// Close closes all connections. A run that follows opens them again.
func (c *Client) Close() {
	for _, conn := range c.conns {
		if conn.net != nil {
			_ = conn.net.Close()
			conn.net = nil
		}
	}
}
