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

// A probe measures how long a request waits before it is handled. It is a byte sent
// through a pipe: like a client's connection, the pipe's end becomes ready in the
// poller after all that were ready before, and its reader runs after all goroutines
// that were woken before.
//
// Timers do not measure that delay: a timer that fires runs ahead of the queue. When
// one fires late, the whole process did not run; shedding load would not reduce that
// delay, so that it is subtracted.
type probe struct {
	in, out *os.File
	epoch   time.Time
	sent    atomic.Int64 // when the byte in the pipe was sent, in nanoseconds since epoch; 0: the pipe is empty
	failed  atomic.Pointer[error]
	ended   chan struct{}

	mu    sync.Mutex
	seen  bool // since the last reading
	least time.Duration

	// Used by the sending goroutine only.
	pause, before time.Duration // the longest pause since the last reading, and of the interval before
	last          time.Duration // delay at the last reading
}

// probeByte is the content of the pipe.
var probeByte = []byte{'.'}

func newProbe(epoch time.Time) (*probe, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe to measure the delay with: %w", err)
	}
	p := &probe{in: in, out: out, epoch: epoch, ended: make(chan struct{})}
	go p.listen()
	return p, nil
}

// close stops the probe and waits for its goroutine.
func (p *probe) close() {
	_ = p.out.Close() // wakes listen
	_ = p.in.Close()
	<-p.ended
}

// send sends a byte unless the pipe holds one. late is how much later than planned it
// is called.
func (p *probe) send(now time.Time, late time.Duration) error {
	p.pause = max(p.pause, late)
	if failed := p.failed.Load(); failed != nil {
		return *failed
	}
	if !p.sent.CompareAndSwap(0, int64(now.Sub(p.epoch))) {
		return nil
	}
	if _, err := p.in.Write(probeByte); err != nil {
		return fmt.Errorf("measuring the delay: %w", err)
	}
	return nil
}

// listen records the delays of bytes.
func (p *probe) listen() {
	defer close(p.ended)
	one := make([]byte, 1)
	for {
		if _, err := p.out.Read(one); err != nil {
			if !errors.Is(err, fs.ErrClosed) {
				err = fmt.Errorf("measuring the delay: %w", err)
				p.failed.Store(&err)
			}
			return
		}
		took := time.Since(p.epoch) - time.Duration(p.sent.Load())
		p.mu.Lock()
		if !p.seen || took < p.least {
			p.seen, p.least = true, took
		}
		p.mu.Unlock()
		p.sent.Store(0)
	}
}

// reading returns the shortest delay since the last reading, less the longest pause
// of the process. If no byte arrived, the delay is at least that of the last reading,
// and the time that the byte in the pipe has waited.
func (p *probe) reading(now time.Time) time.Duration {
	paused := max(p.pause, p.before) // a byte that arrived now may have been sent before
	p.pause, p.before = 0, p.pause
	p.mu.Lock()
	if p.seen {
		p.seen, p.last = false, p.least
	} else if sent := p.sent.Load(); sent != 0 {
		p.last = max(p.last, now.Sub(p.epoch)-time.Duration(sent))
	}
	p.mu.Unlock()
	return max(p.last-paused, 0)
}
