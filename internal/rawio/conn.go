package rawio

import (
	"net"
	"sync"
	"syscall"
)

// Wrap returns c with its reads and writes made by raw calls, which wait in the
// poller and keep to c's deadlines as c's own do. Where there are none, and for
// connections other than plain TCP, it is c itself.
func Wrap(c net.Conn) net.Conn {
	if !Supported {
		return c
	}
	raw := Conn(c)
	if raw == nil {
		return c
	}
	w := &conn{Conn: c, raw: raw}
	w.readStep, w.writeStep = w.stepRead, w.stepWrite
	return w
}

// conn is a TCP connection past the runtime's own calls.
type conn struct {
	net.Conn
	raw syscall.RawConn

	reading  sync.Mutex // guards the five below
	readStep func(fd uintptr) bool
	in       []byte
	got      int
	readErr  error

	writing   sync.Mutex // guards the three below
	writeStep func(fd uintptr) bool
	out       []byte
	writeErr  error
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	c.in = p
	err := c.raw.Read(c.readStep)
	c.in = nil
	if err != nil {
		return 0, err
	}
	return c.got, c.readErr
}

func (c *conn) stepRead(fd uintptr) bool {
	c.got, c.readErr = Read(fd, c.in)
	return c.readErr != ErrAgain
}

// Write implements net.Conn: it sends all of p, or says why not.
func (c *conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.out, c.writeErr = p, nil
	err := c.raw.Write(c.writeStep)
	sent := len(p) - len(c.out)
	c.out = nil
	if err == nil {
		err = c.writeErr
	}
	return sent, err
}

func (c *conn) stepWrite(fd uintptr) bool {
	for len(c.out) > 0 {
		n, err := Write(fd, c.out)
		c.out = c.out[n:]
		if err != nil {
			c.writeErr = err
			return err != ErrAgain
		}
		c.writeErr = nil
	}
	return true
}
