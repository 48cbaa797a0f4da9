package wire

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/internal/rawio"
)

// sock reads and writes one client connection.
//
// On a plain TCP connection it makes raw system calls inside the poller's wait:
// the sockets never block, so the scheduler need not be told, and a deadline is
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
	wait                bool  // writeStep may ask to be called again
	broken              bool  // the last write failed: nothing can be said any more

	chunk   *[]byte // holds pending; given back once that is empty
	pending []byte  // received, not yet read

	readBy       time.Time     // deadline wanted for reads
	writeTimeout time.Duration // for each wait of a write
	slack        time.Duration // how much later than wanted a deadline may fire
	readArmed    time.Time     // deadlines set on the connection; zero: none
	writeArmed   time.Time
}

// maxSlack bounds how much later than wanted a deadline may fire. That saves
// arming one for every request.
const maxSlack = 5 * time.Second

// chunkSize is what one idle connection reads into when it wakes, in bytes.
const chunkSize = 4 << 10

var chunks = sync.Pool{New: func() any { b := make([]byte, chunkSize); return &b }}

func (s *sock) init(c net.Conn, conf *Config) {
	s.Conn = c
	s.writeTimeout = conf.WriteTimeout
	s.slack = min(maxSlack, conf.ReadTimeout/4, conf.WriteTimeout/4)
	if rawio.Supported {
		s.raw = rawio.Conn(c)
	}
	s.readStep, s.writeStep = s.stepRead, s.stepWrite
}

// armRead sets the read deadline unless the one that is set will do. It must
// precede every read: one that has passed fails the reads behind it.
func (s *sock) armRead() error {
	if !s.readArmed.Before(s.readBy) && s.readArmed.Sub(s.readBy) <= s.slack {
		return nil
	}
	// Set late by half the slack, so that the next requests find it good.
	s.readArmed = s.readBy.Add(s.slack / 2)
	return s.Conn.SetReadDeadline(s.readArmed)
}

// armWrite sets the write deadline anew.
func (s *sock) armWrite() error {
	now := time.Now()
	if left := s.writeArmed.Sub(now); left >= s.writeTimeout && left <= s.writeTimeout+s.slack {
		return nil
	}
	s.writeArmed = now.Add(s.writeTimeout + s.slack/2)
	return s.Conn.SetWriteDeadline(s.writeArmed)
}

// interrupt makes a read that waits, or the next one that would, return at
// once. It is the one method that another goroutine may call.
func (s *sock) interrupt() { _ = s.Conn.SetReadDeadline(time.Unix(1, 0)) }

// fill waits for bytes without holding a buffer meanwhile, where the route
// allows that, and keeps them for Read.
func (s *sock) fill() error {
	if err := s.armRead(); err != nil {
		return err
	}
	if s.raw == nil {
		s.take()
		n, err := s.Conn.Read(*s.chunk)
		return s.keep(n, err)
	}
	s.in = nil
	if err := s.raw.Read(s.readStep); err != nil {
		return err
	}
	return s.keep(s.n, s.err)
}

func (s *sock) take() {
	s.chunk = chunks.Get().(*[]byte)
}

func (s *sock) keep(n int, err error) error {
	if n == 0 {
		s.drop()
		return err
	}
	s.pending = (*s.chunk)[:n]
	return nil
}

func (s *sock) drop() {
	if s.chunk != nil {
		chunks.Put(s.chunk)
		s.chunk, s.pending = nil, nil
	}
}

// stepRead tries one read. Without a buffer of the caller's it borrows a chunk
// for the length of the try.
func (s *sock) stepRead(fd uintptr) bool {
	into := s.in
	if into == nil {
		s.take()
		into = *s.chunk
	}
	s.n, s.err = rawio.Read(fd, into)
	if s.err != rawio.ErrAgain {
		return true
	}
	if s.in == nil {
		s.drop()
	}
	return false
}

// Read returns what fill kept, or reads on until readBy.
func (s *sock) Read(p []byte) (int, error) {
	if len(s.pending) > 0 {
		n := copy(p, s.pending)
		if s.pending = s.pending[n:]; len(s.pending) == 0 {
			s.drop()
		}
		return n, nil
	}
	if err := s.armRead(); err != nil {
		return 0, err
	}
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

// Write sends all of p. Each wait for the client to take more may last
// writeTimeout.
func (s *sock) Write(p []byte) (int, error) {
	if s.raw == nil {
		if err := s.armWrite(); err != nil {
			return 0, err
		}
		n, err := s.Conn.Write(p)
		s.broken = err != nil
		return n, err
	}
	s.out, s.wait = p, false
	err := s.send()
	sent := len(p) - len(s.out)
	s.out, s.broken = nil, err != nil
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

// reset ends the connection so that the other end sees it broken off.
func (s *sock) reset() {
	c := s.Conn
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn() // no goodbye from TLS either
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// isTimeout tells whether a deadline ended a read or write.
func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
