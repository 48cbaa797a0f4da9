// Package exchange calls scripts of a store on a connection of its own, one call at
// a time, whose caller sends and reads himself. A client that lets many share a
// connection hands each call to a goroutine that writes, and each answer to
// another one that reads: two more to wake, on whatever processor they were.
//
// It speaks RESP2 (https://redis.io/docs/latest/develop/reference/protocol-spec/)
// over plain TCP, and no more of it than that takes.
package exchange

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/internal/rawio"
)

var (
	// ErrStale says that nothing was sent: the connection had ended while nobody
	// used it, or held bytes that nobody asked for.
	ErrStale = errors.New("connection to the store is no longer good")

	// ErrNone says that nothing was sent: there is no connection, or somebody else
	// uses it.
	ErrNone = errors.New("no connection to the store that is free")

	errSurplus = errors.New("the store answered more than it was asked")
)

// A Refusal is an error that the store answered: it did not do what it was asked,
// and the connection is as good as before.
type Refusal string

// Error is what the store said, which begins with a word in capitals.
func (r Refusal) Error() string { return string(r) }

// A Greeting says who calls.
type Greeting struct {
	Username string // "": the default user
	Password string // "": nobody in particular
	Name     string // of the connection, in the store's lists
}

// A Conn is one connection. It is used by one caller at a time.
type Conn struct {
	sock net.Conn
	raw  syscall.RawConn
	step func(fd uintptr) bool // bound once, so that no call allocates

	phase phase
	out   []byte // the call
	rest  []byte // what of it is still to be sent
	in    []byte // in[:got] is what was answered so far
	got   int
	err   error
}

// phase is how far a call has got.
type phase uint8

const (
	probing phase = iota // nothing is sent before it is known that nothing is there to read
	sending
	receiving
)

// Open dials a store and says who calls. On a system that cannot wait in the
// poller while it sends it fails.
func Open(ctx context.Context, address string, g Greeting) (*Conn, error) {
	var dialer net.Dialer
	sock, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &Conn{sock: sock, raw: rawio.Conn(sock), in: make([]byte, firstRoom)}
	c.step = c.exchange
	if !rawio.Supported || c.raw == nil {
		err = errors.ErrUnsupported
	} else {
		err = c.greet(ctx, g)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) greet(ctx context.Context, g Greeting) error {
	until, _ := ctx.Deadline() // none: wait for as long as it takes
	auth := []string{"AUTH", g.Username, g.Password}
	if g.Username == "" {
		auth = []string{"AUTH", g.Password}
	}
	if g.Password != "" {
		if err := c.call(until, auth...); err != nil {
			return fmt.Errorf("logging in to the store: %w", err)
		}
	}
	err := c.call(until, "CLIENT", "SETNAME", g.Name)
	if _, refused := errors.AsType[Refusal](err); refused { // the name is for people; the user may not set it
		return nil
	}
	return err
}

// Close ends the connection. It may be nil.
func (c *Conn) Close() {
	if c != nil {
		_ = c.sock.Close() // it is given up, whatever that says
	}
}

// run calls the script that a store knows by its hash and appends what it
// answers, which is a text, to b. The error is ErrStale, a Refusal, or of the
// connection: then nobody knows what became of the call, and the connection must
// be closed.
func (c *Conn) run(b []byte, until time.Time, sha string, keys []string, argument []byte) ([]byte, error) {
	c.out = appendScript(c.out[:0], sha, keys, argument)
	reply, err := c.roundTrip(until)
	return append(b, reply...), err
}

// call runs a command of which only matters whether it is done.
func (c *Conn) call(until time.Time, command ...string) error {
	c.out = appendCommand(c.out[:0], command...)
	_, err := c.roundTrip(until)
	return err
}

// roundTrip sends what is in out, and reads the answer to it, which stays until
// the next.
func (c *Conn) roundTrip(until time.Time) ([]byte, error) {
	if err := c.sock.SetDeadline(until); err != nil {
		return nil, ErrStale // it was closed
	}
	c.phase, c.rest, c.got = probing, c.out, 0
	for {
		err := c.raw.Read(c.step)
		if err == nil {
			err = c.err
		}
		if err == rawio.ErrAgain { // the socket takes no more for now
			_, err = c.sock.Write(c.rest)
			c.phase = receiving
		}
		if err != nil {
			return nil, err
		}
		reply, size, err := parse(c.in[:c.got])
		switch {
		case size > 0 && size < c.got:
			return nil, errSurplus
		case size > 0 || err != nil:
			return reply, err
		case c.got == len(c.in):
			c.in = append(c.in, make([]byte, len(c.in))...) // parse bounds what it may become
		}
	}
}

// exchange runs inside RawConn.Read, which forgets what it knows of readiness
// before its first call. It may therefore ask to wait after sending, without a
// read: whatever comes from then on is remembered. To wait without having sent
// or having found nothing to read would miss what came before.
func (c *Conn) exchange(fd uintptr) bool {
	if c.phase == probing {
		if _, err := rawio.Read(fd, c.in[:1]); err != rawio.ErrAgain {
			c.err = ErrStale
			return true
		}
		c.phase = sending
	}
	if c.phase == sending {
		c.err = c.send(fd)
		switch {
		case c.err == nil:
			c.phase = receiving
		case c.err != rawio.ErrAgain && len(c.rest) == len(c.out):
			c.err = ErrStale
		}
		return c.err != nil
	}
	var n int
	n, c.err = rawio.Read(fd, c.in[c.got:])
	c.got += n
	return c.err != rawio.ErrAgain
}

func (c *Conn) send(fd uintptr) error {
	for len(c.rest) > 0 {
		n, err := rawio.Write(fd, c.rest)
		if err != nil {
			return err
		}
		c.rest = c.rest[n:]
	}
	return nil
}
