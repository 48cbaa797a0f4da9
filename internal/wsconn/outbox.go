package wsconn

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/internal/rawio"
)

// An Outbox is a connection whose writes never block: what the peer does not take at once
// waits in memory, and a goroutine writes it that ends with it.
type Outbox struct {
	net.Conn
	raw    syscall.RawConn // nil: all writes are left to the goroutine
	within time.Duration   // for one write of the goroutine

	mu      sync.Mutex
	step    func(fd uintptr) bool
	now     []byte // what step writes; it leaves the rest
	waiting []byte
	sent    int64  // bytes that have been written since something began to wait
	marks   []mark // in the order of their places
	flushes bool   // the goroutine runs
	err     error  // of a write: none follows
	last    time.Duration
	idle    sync.Cond // flushes is false again
}

// A mark is called once the bytes before its place have been written, or cannot be.
type mark struct {
	at   int64 // counted as Outbox.sent is
	done func(error)
}

// New returns an outbox of a connection. within bounds each write that waits for the peer; the
// connection is closed when one fails.
func New(conn net.Conn, within time.Duration) *Outbox {
	o := &Outbox{Conn: conn, within: within}
	o.idle.L = &o.mu
	if rawio.Supported {
		o.raw, o.step = rawio.Conn(conn), o.tryWrite
	}
	return o
}

// Write writes p, or has it written later. Its error is that of an earlier write.
func (o *Outbox) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Send is Write with a call of done, with nil when the connection has taken all of p. done
// is called by any goroutine, also by this one before Send returns, without a lock of the
// outbox. It must not wait.
func (o *Outbox) Send(p []byte, done func(error)) {
	o.mu.Lock()
	waits, err := o.write(p)
	if waits {
		o.marks = append(o.marks, mark{o.sent + int64(len(o.waiting)), done})
	}
	o.mu.Unlock()
	if !waits {
		done(err)
	}
}

// write needs mu. waits reports that p, or a part of it, has not been written.
func (o *Outbox) write(p []byte) (waits bool, err error) {
	if o.err != nil {
		return false, o.err
	}
	rest := p
	if o.raw != nil && !o.flushes {
		if rest = o.writeNow(p); o.err != nil {
			return false, o.err
		}
	}
	if len(rest) == 0 {
		return false, nil
	}
	o.waiting = append(o.waiting, rest...)
	if !o.flushes {
		o.flushes = true
		go o.flush()
	}
	return true, nil
}

// writeNow writes what the peer takes at once and returns the rest. It needs mu.
func (o *Outbox) writeNow(p []byte) (rest []byte) {
	o.now = p
	err := o.raw.Write(o.step)
	rest, o.now = o.now, nil
	if o.err == nil {
		o.err = err
	}
	return rest
}

// tryWrite is what raw runs. It does not wait.
func (o *Outbox) tryWrite(fd uintptr) bool {
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

// maxPiece is the most that one write of the goroutine has, in bytes: a peer may be slow, as
// long as it takes each piece in time.
const maxPiece = 64 << 10

// flush writes what waits until nothing does.
func (o *Outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.waiting) > 0 && o.err == nil {
		piece := o.waiting[:min(len(o.waiting), maxPiece)]
		o.mu.Unlock()
		_ = o.Conn.SetWriteDeadline(time.Now().Add(o.within)) // a connection without one fails to be written to
		n, err := o.Conn.Write(piece)
		o.mu.Lock()
		if o.sent += int64(n); o.err == nil {
			o.waiting = o.waiting[n:]
		}
		if err != nil {
			o.fail(err)
		}
		o.callMarks()
	}
	o.waiting, o.marks, o.sent = nil, nil, 0
	o.flushes = false
	_ = o.Conn.SetWriteDeadline(time.Time{}) // see above
	if o.last > 0 && o.err == nil {
		_ = o.SetReadDeadline(time.Now().Add(o.last)) // likewise for reading
	}
	o.idle.Broadcast()
}

// callMarks calls the marks of what has been written, and all after a failure. It needs mu,
// and gives it up meanwhile.
func (o *Outbox) callMarks() {
	for len(o.marks) > 0 {
		first, err := o.marks[0], o.err
		written := first.at <= o.sent
		if !written && err == nil {
			return
		}
		if written {
			err = nil
		}
		o.marks = o.marks[1:]
		o.mu.Unlock()
		first.done(err)
		o.mu.Lock()
	}
}

// fail ends the connection, which ends its reader. It needs mu.
func (o *Outbox) fail(err error) {
	if o.waiting = nil; o.err == nil {
		o.err = err
	}
	_ = o.Close() // it has failed
}

// ErrAbandoned is the error of writes behind Abandon.
var ErrAbandoned = errors.New("the connection was abandoned")

// Abandon closes the connection at once. What waits is not written.
func (o *Outbox) Abandon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = ErrAbandoned
	}
	below := o.Conn
	if secure, ok := below.(interface{ NetConn() net.Conn }); ok {
		below = secure.NetConn() // the goodbye of TLS could wait for the peer
	}
	_ = below.Close() // ends the goroutine as well
}

// Waiting returns how many bytes wait.
func (o *Outbox) Waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting)
}

// Last gives the peer some time to answer what was written last, once it has taken that.
func (o *Outbox) Last(within time.Duration) {
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
func (o *Outbox) Flushed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.flushes {
		o.idle.Wait()
	}
}

// Slow reports whether a write has failed because the peer did not take it in time.
func (o *Outbox) Slow() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	timeout, ok := errors.AsType[net.Error](o.err)
	return ok && timeout.Timeout()
}

// SetWriteDeadline does nothing: writes do not wait.
func (o *Outbox) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline sets the deadline of reading.
func (o *Outbox) SetDeadline(t time.Time) error { return o.SetReadDeadline(t) }
