package wire

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/internal/rawio"
)

// sock reads and writes one client connection.
//
// On a plain TCP connection it makes raw system calls inside the poller's wait:
// the sockets never block, so the scheduler is not involved, and a deadline is
// armed only when a call is about to wait. Other connections (TLS, in memory)
// take the ordinary route with the same meaning.
type sock struct {
	net.Conn
	raw syscall.RawConn // nil: the ordinary route

	readStep, writeStep func(fd uintptr) bool // bound once, so that no call allocates
	in                  []byte                // what readStep fills
	out                 []byte                // what writeStep has left to send
	n                   int
	err                 error
	werr                error // of writeStep: a body may be read while an answer is written
	wait                bool  // the last write had to wait, or was timed: writeStep may ask to be called again
	broken              bool  // the last write failed: nothing can be said any more

	held bool    // a wait for reading is going on: the descriptor cannot go away
	fd   uintptr // while held

	halted atomic.Bool // reads are to fail at once

	readBy       time.Time     // deadline wanted for reads
	writeTimeout time.Duration // for each wait of a write
	readSlack    time.Duration // how much earlier than wanted a deadline of reads may fire, which is then set anew
	writeSlack   time.Duration // how much later than wanted a deadline of writes may fire
	readArmed    time.Time     // deadlines set on the connection; zero: none
	writeArmed   time.Time
}

// maxReadSlack and maxWriteSlack bound how far from the time wanted a deadline may fire,
// which saves arming one for every request. A read that fails early is repeated. A write
// with TLS cannot be, so that deadlines of writes are late: by a fiftieth of the time at
// most.
const (
	maxReadSlack  = 5 * time.Second
	maxWriteSlack = 500 * time.Millisecond
)

// chunkSize is what an idle connection of the ordinary route reads into, in
// bytes.
const chunkSize = 4 << 10

var chunks = sync.Pool{New: func() any { b := make([]byte, chunkSize); return &b }}

func (s *sock) init(c net.Conn, conf *Config) {
	s.Conn = c
	s.writeTimeout = conf.WriteTimeout
	s.readSlack = min(maxReadSlack, conf.ReadTimeout/4)
	s.writeSlack = min(maxWriteSlack, conf.WriteTimeout/50)
	if rawio.Supported {
		s.raw = rawio.Conn(c)
	}
	s.readStep, s.writeStep = s.stepRead, s.stepWrite
}

// armRead sets the read deadline unless the one that is set will do: it may pass
// shortly before its time, see tooEarly. It must precede every read.
func (s *sock) armRead() error {
	if early := s.readBy.Sub(s.readArmed); early >= 0 && early <= s.readSlack {
		return nil
	}
	s.readArmed = s.readBy
	return s.Conn.SetReadDeadline(s.readArmed)
}

// tooEarly reports whether a read failed because a deadline passed that was set for an
// earlier wait. The next armRead sets the one that is wanted.
func (s *sock) tooEarly(err error) bool {
	if !isTimeout(err) || s.halted.Load() || !time.Now().Before(s.readBy) {
		return false
	}
	s.readArmed = time.Time{}
	return true
}

// armWithin sets the read deadline to the end of a span unless the one that is
// set lies within it.
func (s *sock) armWithin(start time.Time, span time.Duration) error {
	if left := s.readArmed.Sub(start); left > 0 && left <= span {
		return nil
	}
	s.readArmed = start.Add(span)
	return s.Conn.SetReadDeadline(s.readArmed)
}

// armWrite sets the write deadline anew.
func (s *sock) armWrite() error {
	now := time.Now()
	if left := s.writeArmed.Sub(now); left >= s.writeTimeout && left <= s.writeTimeout+s.writeSlack {
		return nil
	}
	s.writeArmed = now.Add(s.writeTimeout + s.writeSlack)
	return s.Conn.SetWriteDeadline(s.writeArmed)
}

// interrupt makes a wait between two requests return at once. Another goroutine may call
// it.
func (s *sock) interrupt() { _ = s.Conn.SetReadDeadline(time.Unix(1, 0)) }

// halt makes a read that waits, or the next one that would, fail at once. Another
// goroutine may call it, and repeats it until the read has ended: a deadline that is
// being set may come after this one.
func (s *sock) halt() {
	s.halted.Store(true)
	s.interrupt()
}

// first waits for the first bytes of a request on the ordinary route. They are
// in a chunk of the pool's, which goes back there.
func (s *sock) first() (*[]byte, int, error) {
	chunk := chunks.Get().(*[]byte)
	n, err := s.Conn.Read(*chunk)
	if n > 0 {
		return chunk, n, nil
	}
	chunks.Put(chunk)
	if err == nil {
		err = io.ErrNoProgress
	}
	return nil, 0, err
}

// Read reads once, and waits for that until readBy.
func (s *sock) Read(p []byte) (int, error) {
	for {
		if err := s.armRead(); err != nil {
			return 0, err
		}
		n, err := s.readOnce(p)
		if n > 0 || err == nil || !s.tooEarly(err) {
			return n, err
		}
	}
}

func (s *sock) readOnce(p []byte) (int, error) {
	if s.raw == nil {
		return s.Conn.Read(p)
	}
	if len(p) == 0 {
		return 0, nil
	}
	s.in = p
	err := s.raw.Read(s.readStep)
	s.in = nil
	if err != nil {
		return 0, err
	}
	return s.n, s.err
}

func (s *sock) stepRead(fd uintptr) bool {
	s.n, s.err = rawio.Read(fd, s.in)
	return s.err != rawio.ErrAgain
}

// Write sends all of p. Each wait for the client to take more may last
// writeTimeout.
func (s *sock) Write(p []byte) (int, error) {
	if s.raw == nil {
		sent, err := s.writeOrdinary(p)
		s.broken = err != nil
		return sent, err
	}
	s.out, s.wait = p, false
	if s.held {
		s.stepWrite(s.fd) // nearly always the socket takes all
	}
	var err error
	if len(s.out) > 0 {
		err = s.send()
	}
	sent := len(p) - len(s.out)
	s.out, s.broken = nil, err != nil
	return sent, err
}

// writeOrdinary sends a piece at a time: a client may be slow with the whole, as
// long as it takes each piece within writeTimeout.
func (s *sock) writeOrdinary(p []byte) (sent int, err error) {
	for sent < len(p) && err == nil {
		if err = s.armWrite(); err != nil {
			return sent, err
		}
		var n int
		n, err = s.Conn.Write(p[sent:min(sent+streamPiece, len(p))])
		sent += n
	}
	return sent, err
}

func (s *sock) send() error {
	for {
		// A deadline that was armed once must be kept in the future. Most
		// connections never wait, and never arm one.
		if s.wait || !s.writeArmed.IsZero() {
			s.wait = true
			if err := s.armWrite(); err != nil {
				return err
			}
		}
		left := len(s.out)
		if err := s.raw.Write(s.writeStep); err != nil {
			return err
		}
		switch {
		case len(s.out) == 0:
			return nil
		case s.werr != rawio.ErrAgain && len(s.out) == left:
			return s.werr
		}
		s.wait = true
	}
}

// stepWrite sends until everything is sent, or nothing more is taken. Having
// waited, it returns after each piece, so that the next wait is timed anew.
func (s *sock) stepWrite(fd uintptr) bool {
	for len(s.out) > 0 {
		n, err := rawio.Write(fd, s.out)
		if s.werr = err; err != nil {
			return err != rawio.ErrAgain || !s.wait
		}
		s.out = s.out[n:]
		if s.wait {
			return true
		}
	}
	return true
}

// ended reports whether the client has closed the connection or its sending side,
// even if bytes from before that have not been read. It reads nothing and does not
// wait.
func (s *sock) ended() bool {
	if s.held {
		return rawio.Ended(s.fd)
	}
	raw := rawio.Conn(s.below())
	if raw == nil || !rawio.Supported {
		return false
	}
	over := false
	err := raw.Control(func(fd uintptr) { over = rawio.Ended(fd) })
	return over && err == nil
}

// cut ends the connection while it is in use. Unlike Close it does not wait for
// reads and writes in progress.
func (s *sock) cut() {
	_ = s.Conn.SetDeadline(time.Unix(1, 0))
	tcp, ok := s.below().(*net.TCPConn)
	if !ok {
		_ = s.Conn.Close()
		return
	}
	_ = tcp.CloseRead()
	_ = tcp.CloseWrite()
}

// below returns the connection that lies below TLS.
func (s *sock) below() net.Conn {
	if secure, ok := s.Conn.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return s.Conn
}

// reset ends the connection so that the other end sees it broken off.
func (s *sock) reset() {
	c := s.below() // no goodbye from TLS either
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// isTimeout reports whether a deadline ended a read or write.
func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
