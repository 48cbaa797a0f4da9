package overload

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A canary measures how long a request waits until somebody gets to it. It is a
// byte that goes through a pipe: like a client's connection, the pipe's end is
// found ready by the poller after all that were ready before it, and who reads
// from it runs after all who were woken before. A timer would not do: those that
// fire run ahead of that queue.
type canary struct {
	in, out *os.File
	epoch   time.Time
	sent    atomic.Int64 // when the byte on its way was sent, in nanoseconds since epoch; 0: none is
	failed  atomic.Pointer[error]
	ended   chan struct{}

	mu    sync.Mutex
	seen  bool // since the last reading
	least time.Duration
}

func newCanary(epoch time.Time) (*canary, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe to measure the delay with: %w", err)
	}
	c := &canary{in: in, out: out, epoch: epoch, ended: make(chan struct{})}
	go c.listen()
	return c, nil
}

// close ends the canary and waits until it has.
func (c *canary) close() {
	_ = c.out.Close() // wakes listen
	_ = c.in.Close()
	<-c.ended
}

// send lets a byte go unless one is still on its way.
func (c *canary) send(now time.Time) error {
	if failed := c.failed.Load(); failed != nil {
		return *failed
	}
	if !c.sent.CompareAndSwap(0, int64(now.Sub(c.epoch))) {
		return nil
	}
	if _, err := c.in.Write([]byte{'.'}); err != nil {
		return fmt.Errorf("measuring the delay: %w", err)
	}
	return nil
}

// listen notes when bytes arrive.
func (c *canary) listen() {
	defer close(c.ended)
	one := make([]byte, 1)
	for {
		if _, err := c.out.Read(one); err != nil {
			if !errors.Is(err, fs.ErrClosed) {
				err = fmt.Errorf("measuring the delay: %w", err)
				c.failed.Store(&err)
			}
			return
		}
		took := time.Since(c.epoch) - time.Duration(c.sent.Load())
		c.mu.Lock()
		if !c.seen || took < c.least {
			c.seen, c.least = true, took
		}
		c.mu.Unlock()
		c.sent.Store(0)
	}
}

// reading returns the shortest delay since the last reading. When no byte
// arrived, it is how long the one on its way has been.
func (c *canary) reading(now time.Time) time.Duration {
	c.mu.Lock()
	seen, least := c.seen, c.least
	c.seen = false
	c.mu.Unlock()
	if seen {
		return least
	}
	if sent := c.sent.Load(); sent != 0 {
		return now.Sub(c.epoch) - time.Duration(sent)
	}
	return 0
}
