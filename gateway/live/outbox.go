package live

import (
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/internal/rawio"
)

// An outbox is a connection whose writes never block: what the peer does not take at once
// waits in memory, and a goroutine writes it that ends with it.
type outbox struct {
	net.Conn
	raw    syscall.RawConn // nil: all writes are left to the goroutine
	within time.Duration   // for one write of the goroutine

	mu      sync.Mutex
	step    func(fd uintptr) bool
	now     []byte // what step writes; it leaves the rest
	waiting []byte
	flushes bool  // the goroutine runs
	err     error // of a write: none follows
	last    time.Duration
	idle    sync.Cond // flushes is false again
}

func newOutbox(conn net.Conn, within time.Duration) *outbox {
	o := &outbox{Conn: conn, within: within}
	o.idle.L = &o.mu
	if rawio.Supported {
		o.raw, o.step = rawio.Conn(conn), o.tryWrite
	}
	return o
}

// Write writes p, or has it written later. Its error is that of an earlier write.
func (o *outbox) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	rest := p
	if o.raw != nil && !o.flushes {
		if rest = o.writeNow(p); o.err != nil {
			return 0, o.err
		}
	}
	if len(rest) > 0 {
		o.waiting = append(o.waiting, rest...)
		if !o.flushes {
			o.flushes = true
			go o.flush()
		}
	}
	return len(p), nil
}

// writeNow writes what the peer takes at once and returns the rest. It needs mu.
func (o *outbox) writeNow(p []byte) (rest []byte) {
	o.now = p
	err := o.raw.Write(o.step)
	rest, o.now = o.now, nil
	if o.err == nil {
		o.err = err
	}
	return rest
}

// tryWrite is what raw runs. It does not wait.
func (o *outbox) tryWrite(fd uintptr) bool {
	for len(o.now) > 0 {
		n, err := rawio.Write(fd, o.now)
		if err != nil {
			if err != rawio.ErrAgain {
				o.err = err
			}
			break
		}
		o.now = o.now[n:]
	}
	return true
}

// flush writes what waits until nothing does.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.waiting) > 0 && o.err == nil {
		batch := o.waiting
		o.mu.Unlock()
		_ = o.Conn.SetWriteDeadline(time.Now().Add(o.within)) // a connection without one fails to be written to
		n, err := o.Conn.Write(batch)
		o.mu.Lock()
		o.waiting = o.waiting[n:]
		if err != nil {
			o.fail(err)
		}
	}
	if len(o.waiting) == 0 {
		o.waiting = nil
	}
	o.flushes = false
	_ = o.Conn.SetWriteDeadline(time.Time{}) // see above
	if o.last > 0 && o.err == nil {
		_ = o.SetReadDeadline(time.Now().Add(o.last)) // likewise for reading
	}
	o.idle.Broadcast()
}

// fail ends the connection, which ends its reader. It needs mu.
func (o *outbox) fail(err error) {
	o.err, o.waiting = err, nil
	_ = o.Close() // it has failed
}

// Waiting returns how many bytes wait.
func (o *outbox) Waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting)
}

// Last gives the peer some time to answer what was written last, once it has taken that.
func (o *outbox) Last(within time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch o.last = within; {
	case o.err != nil:
		_ = o.Close() // ends the reader
	case !o.flushes:
		_ = o.SetReadDeadline(time.Now().Add(within)) // see flush
	}
}

// Flushed returns when nothing is written any more.
func (o *outbox) Flushed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.flushes {
		o.idle.Wait()
	}
}

// SetWriteDeadline does nothing: writes do not wait.
func (o *outbox) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline sets the deadline of reading.
func (o *outbox) SetDeadline(t time.Time) error { return o.SetReadDeadline(t) }
