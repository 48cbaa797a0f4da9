package http1

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// TunnelConn is one end of a tunnel. Its deadlines must interrupt reads and writes
// that are waiting. If it has a method CloseWrite() error, the end of the other
// side's data is passed on by it.
type TunnelConn interface {
	io.ReadWriter
	SetDeadline(t time.Time) error
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// TunnelResult is what a tunnel carried and why it ended.
type TunnelResult struct {
	Sent, Received int64 // bytes from client to upstream, and back
	Idle           bool  // neither side sent anything for the idle time
}

// Each direction reads into a small buffer, which suits most tunnels most of the
// time, and switches to a large one from the pool after a read that filled it. In
// bytes.
const (
	smallPiece = 4 << 10
	largePiece = 32 << 10
)

var largePieces = sync.Pool{New: func() any { b := make([]byte, largePiece); return &b }}

// tunnel is what its two directions share.
type tunnel struct {
	idle     time.Duration
	began    time.Time
	last     atomic.Int64 // nanoseconds after began of the last byte, in either direction
	broken   atomic.Bool  // one direction failed, which ends the other
	timedOut atomic.Bool  // it was idle for too long
}

// Tunnel copies bytes between client and upstream until both have closed their
// sending side, one of them fails, or neither has sent anything for idle. first
// holds bytes already received: the upstream's, then the client's. The caller
// closes the connections afterwards.
//
// A direction is read only as fast as its receiver accepts data.
func Tunnel(client, upstream TunnelConn, first [2][]byte, idle time.Duration) TunnelResult {
	t := tunnel{idle: idle, began: time.Now()}
	var sent int64
	up := make(chan struct{})
	go func() {
		defer close(up)
		sent = t.pass(upstream, client, first[1])
	}()
	received := t.pass(client, upstream, first[0])
	<-up
	return TunnelResult{Sent: sent, Received: received, Idle: t.timedOut.Load()}
}

// expiry is when the tunnel will have been idle for too long if nothing comes.
func (t *tunnel) expiry() time.Time { return t.began.Add(time.Duration(t.last.Load()) + t.idle) }

// pass copies one direction and passes its end on. If it fails it interrupts the
// other direction.
func (t *tunnel) pass(to, from TunnelConn, first []byte) (n int64) {
	err := t.write(to, first, &n)
	if err == nil {
		err = t.copy(to, from, &n)
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
	}
	if err != nil {
		// In this order: the other direction checks broken after it sets a deadline.
		t.broken.Store(true)
		_ = to.SetDeadline(time.Unix(1, 0))
		_ = from.SetDeadline(time.Unix(1, 0))
	}
	return n
}

// copy returns nil at the end of from.
func (t *tunnel) copy(to, from TunnelConn, n *int64) error {
	small := make([]byte, smallPiece)
	piece := small
	var large *[]byte
	defer func() {
		if large != nil {
			largePieces.Put(large)
		}
	}()
	for {
		m, err := t.read(from, piece)
		if werr := t.write(to, piece[:m], n); werr != nil {
			return werr
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case m == len(small) && large == nil:
			large = largePieces.Get().(*[]byte)
			piece = *large
		case m < len(small) && large != nil:
			largePieces.Put(large)
			large, piece = nil, small
		}
	}
}

var (
	errIdle   = errors.New("the tunnel was idle for too long")
	errBroken = errors.New("the other direction failed")
)

// read waits until the tunnel as a whole is idle for too long: one side may stay
// silent while the other sends.
func (t *tunnel) read(from TunnelConn, p []byte) (int, error) {
	for {
		until := t.expiry()
		if err := from.SetReadDeadline(until); err != nil {
			return 0, err
		}
		if t.broken.Load() {
			return 0, errBroken
		}
		n, err := from.Read(p)
		switch {
		case n > 0:
			t.last.Store(int64(time.Since(t.began)))
			return n, err
		case err == nil:
			continue
		case !errors.Is(err, os.ErrDeadlineExceeded) || t.broken.Load():
			return 0, err
		case !t.expiry().After(until):
			t.timedOut.Store(true)
			return 0, errIdle
		}
	}
}

// write gives the receiver the idle time for each piece.
func (t *tunnel) write(to TunnelConn, p []byte, n *int64) error {
	if len(p) == 0 {
		return nil
	}
	if err := to.SetWriteDeadline(time.Now().Add(t.idle)); err != nil {
		return err
	}
	if t.broken.Load() {
		return errBroken
	}
	m, err := to.Write(p)
	*n += int64(m)
	return err
}
