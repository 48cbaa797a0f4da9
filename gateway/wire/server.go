package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// ErrStopped is returned by Serve after Shutdown.
var ErrStopped = errors.New("server stopped")

// Server accepts connections and serves requests on them.
type Server struct {
	conf    Config
	handler Handler
	log     fasthttp.Logger

	admission                  *admission // a connection that holds buffers has entered
	buffers, writers, contexts sync.Pool

	leaving  atomic.Bool // answers end their connections
	stopping atomic.Bool // no more connections; leaving is set too
	refused  atomic.Uint64
	panics   atomic.Uint64

	unintroduced atomic.Uint64 // connections without the header of the PROXY protocol that they must begin with
	nextLine     atomic.Int64  // unix nanoseconds from which on logSometimes may log

	handshakes       handshakes
	failedHandshakes atomic.Uint64

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	perIP     map[netip.Addr]int
	gone      sync.WaitGroup
}

// New returns a server. log takes fasthttp's own rare messages.
func New(conf Config, handler Handler, log fasthttp.Logger) *Server {
	s := &Server{
		conf: conf, handler: handler, log: log, admission: processorAdmission(),
		listeners: make(map[net.Listener]struct{}),
		conns:     make(map[*conn]struct{}),
		perIP:     make(map[netip.Addr]int),
	}
	s.buffers.New = s.newBuffers
	s.writers.New = func() any { return bufio.NewWriterSize(nil, 4<<10) }
	s.contexts.New = func() any { return new(fasthttp.RequestCtx) }
	return s
}

// Serve accepts connections until the listener fails or Shutdown, which gives
// ErrStopped.
func (s *Server) Serve(ln net.Listener) error { return s.accept(ln, nil) }

// accept is Serve, with TLS unless secure is nil.
func (s *Server) accept(ln net.Listener, secure *Secure) error {
	s.mu.Lock()
	if s.stopping.Load() {
		s.mu.Unlock()
		_ = ln.Close()
		return ErrStopped
	}
	s.listeners[ln] = struct{}{}
	s.mu.Unlock()
	for wait := time.Duration(0); ; {
		c, err := ln.Accept()
		switch {
		case err == nil:
			wait = 0
			s.admit(c, secure)
		case s.stopping.Load():
			return ErrStopped
		case !isTemporary(err):
			return err
		default:
			// Most likely out of descriptors: let some connections end.
			if wait == 0 {
				s.log.Printf("accepting connections: %v", err)
			}
			wait = min(wait*2+5*time.Millisecond, time.Second)
			time.Sleep(wait)
		}
	}
}

func isTemporary(err error) bool {
	t, ok := errors.AsType[*net.OpError](err)
	return ok && !errors.Is(t, net.ErrClosed)
}

// admit starts serving c, or turns it away when a limit is reached.
func (s *Server) admit(c net.Conn, secure *Secure) {
	peer := peerOf(c)
	if secure != nil {
		c = tls.Server(c, secure.Config())
	}
	n := newConn(s, c, peer)
	n.proxied = s.isProxy(peer)
	s.mu.Lock()
	full := s.conf.MaxConns > 0 && len(s.conns) >= s.conf.MaxConns ||
		s.conf.MaxConnsPerIP > 0 && s.perIP[peer] >= s.conf.MaxConnsPerIP && !n.proxied
	if full || s.stopping.Load() {
		s.mu.Unlock()
		s.turnAway(n)
		return
	}
	s.conns[n] = struct{}{}
	s.perIP[peer]++
	s.gone.Add(1)
	s.mu.Unlock()
	if secure != nil {
		n.handshaking = &handshake{conn: n}
		s.handshakes.join(n.handshaking, secure.Pending)
	}
	go s.run(n, secure)
}

// turnAway answers 503 as far as that costs nothing, which with TLS it would.
func (s *Server) turnAway(n *conn) {
	s.refused.Add(1)
	if n.tls {
		_ = n.sock.below().Close()
		return
	}
	_ = n.sock.Conn.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	_, _ = n.sock.Conn.Write(fullAnswer)
	_ = n.sock.Conn.Close()
}

const fullBody = "{\n    \"error\": \"too many connections\"\n}"

var fullAnswer = []byte("HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n" +
	"Retry-After: 1\r\nConnection: close\r\nContent-Length: " + strconv.Itoa(len(fullBody)) + "\r\n\r\n" + fullBody)

func (s *Server) run(n *conn, secure *Secure) {
	defer s.leave(n)
	defer s.survive()
	defer n.abandon()
	if n.introduced() && n.handshake(secure) {
		n.serve()
	}
}

// survive keeps a fault in one call from taking the others down with it. The
// connection that it happened on ends.
func (s *Server) survive() {
	if fault := recover(); fault != nil {
		s.Fault(fault)
	}
}

// Fault counts and logs what a call has panicked with. It is called by the deferred function
// that has recovered, also for connections that have left HTTP.
func (s *Server) Fault(fault any) {
	s.panics.Add(1)
	s.log.Printf("panic while serving a request: %v\n%s", fault, debug.Stack())
}

func (s *Server) leave(n *conn) {
	_ = n.sock.Conn.Close()
	if n.buffers != nil { // a fault: the buffers are in an unknown state and are not pooled
		s.admission.leave()
	}
	if n.handshaking != nil { // a fault in its handshake
		s.handshakes.leave(n.handshaking)
	}
	s.mu.Lock()
	delete(s.conns, n)
	if s.perIP[n.peer]--; s.perIP[n.peer] <= 0 {
		delete(s.perIP, n.peer)
	}
	s.mu.Unlock()
	s.gone.Done()
}

// Leave makes every further answer the last one of its connection, so that clients
// move elsewhere before Shutdown. New connections are still accepted.
func (s *Server) Leave() { s.leaving.Store(true) }

// Shutdown stops accepting, ends idle connections and lets calls in flight
// finish. When ctx ends first it cuts them off and returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.leaving.Store(true)
	s.stopping.Store(true)
	for ln := range s.listeners {
		_ = ln.Close()
	}
	for n := range s.conns {
		if n.idle.Load() {
			n.sock.interrupt()
		}
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.gone.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	cut := len(s.conns)
	for n := range s.conns {
		n.sock.cut()
	}
	s.mu.Unlock()
	select {
	case <-done:
	case <-time.After(time.Second): // a handler may wait for something else
	}
	if cut > 0 {
		return ctx.Err()
	}
	return nil
}

// letInterrupt returns once Shutdown has interrupted what it saw idle.
func (s *Server) letInterrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
}

// Stats is what a server is doing.
type Stats struct {
	Open    int    // connections
	Begun   int    // requests that are read, served or answered
	Waiting int    // requests that are not read yet, until others are done
	Refused uint64 // connections turned away by a limit
	Panics  uint64 // calls that ended in a fault of ours

	Unintroduced uint64 // connections closed for want of a header of the PROXY protocol

	Handshakes       int    // of TLS that are being made
	FailedHandshakes uint64 // that came to nothing
}

// Stats returns current numbers.
func (s *Server) Stats() Stats {
	s.handshakes.mu.Lock()
	pending := s.handshakes.n
	s.handshakes.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		Open: len(s.conns), Begun: int(s.admission.active.Load()), Waiting: int(s.admission.waiting.Load()), Refused: s.refused.Load(), Panics: s.panics.Load(),
		Unintroduced: s.unintroduced.Load(), Handshakes: pending, FailedHandshakes: s.failedHandshakes.Load(),
	}
}

// Waited returns the shortest time that a request waited until it was read, of
// those that were since Waited was last asked; 0 when none waits.
func (s *Server) Waited() time.Duration { return s.admission.shortestWait() }

// peerOf returns the address of the other end, or the zero Addr when it has none.
func peerOf(c net.Conn) netip.Addr {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
