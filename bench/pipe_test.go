package bench

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A pipe is one direction of a connection in memory: writes never wait, and
// nothing allocates once the buffer has grown.
type pipe struct {
	mu      sync.Mutex
	ready   sync.Cond
	buf     []byte
	read    int // bytes of buf that were taken
	closed  bool
	expired bool // the read deadline has passed
}

func newPipe() *pipe {
	p := &pipe{buf: make([]byte, 0, 8<<10)}
	p.ready.L = &p.mu
	return p
}

func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.read == len(p.buf) && !p.closed && !p.expired {
		p.ready.Wait()
	}
	switch {
	case p.read < len(p.buf):
		n := copy(b, p.buf[p.read:])
		p.read += n
		return n, nil
	case p.expired:
		return 0, os.ErrDeadlineExceeded
	}
	return 0, io.EOF
}

func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, net.ErrClosed
	}
	if p.read == len(p.buf) {
		p.buf, p.read = p.buf[:0], 0
	}
	p.buf = append(p.buf, b...)
	p.ready.Signal()
	return len(b), nil
}

func (p *pipe) end(expired bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if expired {
		p.expired = true
	} else {
		p.closed = true
	}
	p.ready.Broadcast()
}

// conn is one end of a connection in memory. Of deadlines it knows those alone
// that have passed when they are set, by which a server interrupts a read.
type conn struct{ in, out *pipe }

var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40000}

func (c *conn) Read(b []byte) (int, error)       { return c.in.Read(b) }
func (c *conn) Write(b []byte) (int, error)      { return c.out.Write(b) }
func (c *conn) LocalAddr() net.Addr              { return loopback }
func (c *conn) RemoteAddr() net.Addr             { return loopback }
func (c *conn) SetDeadline(t time.Time) error    { return c.SetReadDeadline(t) }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

func (c *conn) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && time.Until(t) <= 0 {
		c.in.end(true)
	}
	return nil
}

func (c *conn) Close() error {
	c.in.end(false)
	c.out.end(false)
	return nil
}

// listener accepts connections in memory.
type listener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newListener() *listener {
	return &listener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *listener) Addr() net.Addr { return loopback }

// dial returns the client's end of a new connection.
func (l *listener) dial() net.Conn {
	up, down := newPipe(), newPipe()
	l.conns <- &conn{in: up, out: down}
	return &conn{in: down, out: up}
}
