// Package tunnel joins two connections that have left HTTP behind.
package tunnel

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is one end of a tunnel. Deadlines must wake reads and writes that wait. A
// Conn that has CloseWrite() error can tell its other end that no more will come.
type Conn interface {
	io.ReadWriter
	SetDeadline(t time.Time) error
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// Outcome is what became of a tunnel.
type Outcome struct {
	Sent, Received int64 // bytes from client to upstream, and back
	Idle           bool  // it was given up because nobody said anything
}

// Each direction reads into a small buffer while little is said, which is what
// most tunnels are most of the time, and into a large one from the pool once a
// read fills it. In bytes.
const (
	smallPiece = 4 << 10
	largePiece = 32 << 10
)

var largePieces = sync.Pool{New: func() any { b := make([]byte, largePiece); return &b }}

// tunnel is what both directions know.
type tunnel struct {
	idle  time.Duration
	began time.Time
	last  atomic.Int64 // nanoseconds after began when a byte was taken last, in either direction
	over  atomic.Bool  // one direction has broken, and with it the other
	quiet atomic.Bool  // it is given up for silence
}

// Run passes bytes on between client and upstream until both have ended their
// side, one of them breaks off, or neither has said anything for idle. first are
// bytes of the upstream's, and then of the client's, that were received before.
// The ends are the caller's to close afterwards.
//
// A direction is read only as fast as its receiver takes what was read.
func Run(client, upstream Conn, first [2][]byte, idle time.Duration) Outcome {
	t := tunnel{idle: idle, began: time.Now()}
	var sent int64
	up := make(chan struct{})
	go func() {
		defer close(up)
		sent = t.pass(upstream, client, first[1])
	}()
	received := t.pass(client, upstream, first[0])
	<-up
	return Outcome{Sent: sent, Received: received, Idle: t.quiet.Load()}
}

func (t *tunnel) touch() { t.last.Store(int64(time.Since(t.began))) }

// expiry is when the tunnel has been silent for too long, if nothing comes.
func (t *tunnel) expiry() time.Time { return t.began.Add(time.Duration(t.last.Load()) + t.idle) }

// pass copies from one end to the other, and tells that one where it ends. When
// something breaks it wakes the other direction, which can do no more either.
func (t *tunnel) pass(to, from Conn, first []byte) (n int64) {
	err := t.write(to, first, &n)
	if err == nil {
		err = t.copy(to, from, &n)
	}
	if err == nil {
		err = closeWrite(to)
	}
	if err != nil {
		// In this order: whoever sets a deadline behind these looks at over then.
		t.over.Store(true)
		_ = to.SetDeadline(time.Unix(1, 0))
		_ = from.SetDeadline(time.Unix(1, 0))
	}
	return n
}

// copy returns nil at the end of from.
func (t *tunnel) copy(to, from Conn, n *int64) error {
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
	errIdle = errors.New("nothing was said for too long")
	errOver = errors.New("the other direction has broken")
)

// read waits for as long as the tunnel as a whole is not silent: one side may
// have nothing to say while it listens to the other.
func (t *tunnel) read(from Conn, p []byte) (int, error) {
	for {
		until := t.expiry()
		if err := from.SetReadDeadline(until); err != nil {
			return 0, err
		}
		if t.over.Load() {
			return 0, errOver
		}
		n, err := from.Read(p)
		switch {
		case n > 0:
			t.touch()
			return n, err
		case err == nil:
			continue
		case !errors.Is(err, os.ErrDeadlineExceeded) || t.over.Load():
			return 0, err
		case !t.expiry().After(until):
			t.quiet.Store(true)
			return 0, errIdle
		}
	}
}

// write gives the receiver as long for each piece as silence may last.
func (t *tunnel) write(to Conn, p []byte, n *int64) error {
	if len(p) == 0 {
		return nil
	}
	if err := to.SetWriteDeadline(time.Now().Add(t.idle)); err != nil {
		return err
	}
	if t.over.Load() {
		return errOver
	}
	m, err := to.Write(p)
	*n += int64(m)
	return err
}

// closeWrite tells an end that no more will come. One that cannot be told stays
// as it is until the other direction ends too.
func closeWrite(c Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
