package exchange

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Holder keeps a connection for whoever calls next. The nil Holder never has one.
type Holder struct {
	address string
	timeout time.Duration
	who     Greeting

	mu     sync.Mutex
	conn   *Conn
	closed bool
}

// NewHolder returns a Holder without a connection yet. To open one, and for each
// answer on the way, may take for timeout in all.
func NewHolder(address string, timeout time.Duration, who Greeting) *Holder {
	return &Holder{address: address, timeout: timeout, who: who}
}

// Renew opens a connection if there is none that nobody uses. It returns nil if
// that fails: whoever needs to know why asks the store in another way.
func (h *Holder) Renew(ctx context.Context) *Conn {
	if h == nil || h.has() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	c, err := Open(ctx, h.address, h.who)
	if err != nil {
		return nil
	}
	return c
}

func (h *Holder) has() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.conn != nil
}

// Run calls the script that a store knows by its hash and appends what it answers,
// which is a text, to b. The error is ErrNone, ErrStale, a Refusal, or of the
// connection: then nobody knows what became of the call. A connection that is not
// good any more is closed.
func (h *Holder) Run(b []byte, until time.Time, sha string, keys []string, argument []byte) ([]byte, error) {
	c := h.take()
	if c == nil {
		return b, ErrNone
	}
	b, err := c.run(b, until, sha, keys, argument)
	if _, refused := errors.AsType[Refusal](err); err == nil || refused {
		h.Leave(c)
	} else {
		c.Close()
	}
	return b, err
}

// take returns the connection for its caller alone; nil when there is none, or
// somebody else has it.
func (h *Holder) take() *Conn {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.conn
	h.conn = nil
	return c
}

// Leave keeps a connection that is good, which may be nil. One too many is closed.
func (h *Holder) Leave(c *Conn) {
	if c == nil {
		return
	}
	h.mu.Lock()
	if h.conn == nil && !h.closed {
		h.conn, c = c, nil
	}
	h.mu.Unlock()
	c.Close()
}

// Close closes the connection, and each that is left from now on.
func (h *Holder) Close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.take().Close()
}
