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
// from it runs after all who were woken before.
//
// Timers are no measure of that, since those that fire run ahead of the queue.
// For the same reason they tell what is no queue: when one fires late, the whole
// process did not run, and the delay that comes from that is none that refusing
// calls would shorten.
type canary struct {
	in, out *os.File
	epoch   time.Time
	sent    atomic.Int64 // when the byte on its way was sent, in nanoseconds since epoch; 0: none is
	failed  atomic.Pointer[error]
	ended   chan struct{}

	mu    sync.Mutex
	seen  bool // since the last reading
	least time.Duration

	// Only the goroutine that sends uses these.
	pause, before time.Duration // the longest since the last reading, and between the two before
	last          time.Duration // delay at the last reading
}

// bird is what goes through the pipe.
var bird = []byte{'.'}

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

// send lets a byte go unless one is still on its way. late is how much later than
// meant it is called.
func (c *canary) send(now time.Time, late time.Duration) error {
	c.pause = max(c.pause, late)
	if failed := c.failed.Load(); failed != nil {
		return *failed
	}
	if !c.sent.CompareAndSwap(0, int64(now.Sub(c.epoch))) {
		return nil
	}
	if _, err := c.in.Write(bird); err != nil {
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

// reading returns the shortest delay since the last reading, less the longest
// time that the process did not run. When no byte arrived, the delay is at least
// what it was, and what the one on its way has had.
func (c *canary) reading(now time.Time) time.Duration {
	paused := max(c.pause, c.before) // a byte that arrived now may have been sent before
	c.pause, c.before = 0, c.pause
	c.mu.Lock()
	if c.seen {
		c.seen, c.last = false, c.least
	} else if sent := c.sent.Load(); sent != 0 {
		c.last = max(c.last, now.Sub(c.epoch)-time.Duration(sent))
	}
	c.mu.Unlock()
	return max(c.last-paused, 0)
}
