package main

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/loadtest/poll"
)

// lean answers on one thread. What an upstream costs is taken from the proxy on a
// machine that they share.
type lean struct {
	poll    *poll.Poller
	ln      int
	conns   []conn
	free    []int32
	in      []byte // what is read, before it is anybody's
	answers answers
}

// conn is a client's connection.
type conn struct {
	fd   int
	turn int32
	in   []byte // of a request that is not there whole
	out  []byte // what the socket did not take yet
	last bool   // it is closed when all of out is sent
}

// listening is the slot of the listener.
const listening = -1

func serveLean(ln net.Listener) error {
	tcp, ok := ln.(*net.TCPListener)
	if !ok {
		return errors.New("no TCP listener")
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	l := &lean{in: make([]byte, 256<<10), answers: newAnswers()}
	if l.poll, err = poll.New(64); err != nil {
		return err
	}
	defer l.poll.Close()
	if err := raw.Control(func(fd uintptr) { l.ln = int(fd) }); err != nil {
		return err
	}
	if err := l.poll.Add(l.ln, listening, 0); err != nil {
		return err
	}
	err = l.run()
	runtime.KeepAlive(tcp) // its descriptor was in use until now
	return err
}

func (l *lean) run() error {
	for {
		ready, err := l.poll.Wait(time.Hour)
		if err != nil {
			return err
		}
		for _, e := range ready {
			if e.Slot == listening {
				if err := l.accept(); err != nil {
					return err
				}
				continue
			}
			if c := &l.conns[e.Slot]; c.turn == e.Turn && !l.attend(c, e.What) {
				l.drop(e.Slot)
			}
		}
	}
}

// accept takes all clients that wait.
func (l *lean) accept() error {
	for {
		fd, _, err := syscall.Accept4(l.ln, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
		switch err {
		case nil:
		case syscall.EAGAIN:
			return nil
		case syscall.ECONNABORTED, syscall.EINTR:
			continue
		default:
			return fmt.Errorf("accepting a connection: %w", err)
		}
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1) // slower without it, not wrong
		if len(l.free) == 0 {
			l.free = append(l.free, int32(len(l.conns)))
			l.conns = append(l.conns, conn{})
		}
		i := l.free[len(l.free)-1]
		l.free = l.free[:len(l.free)-1]
		l.conns[i].fd = fd
		if err := l.poll.Add(fd, i, l.conns[i].turn); err != nil {
			return err
		}
	}
}

func (l *lean) drop(i int32) {
	c := &l.conns[i]
	_ = syscall.Close(c.fd) // nothing is left to be said on it
	*c = conn{turn: c.turn + 1, in: c.in[:0], out: c.out[:0]}
	l.free = append(l.free, i)
}

// attend does what a connection is ready for; false closes it.
func (l *lean) attend(c *conn, what uint32) bool {
	if len(c.out) > 0 && what&poll.Out != 0 {
		rest := c.out
		c.out = c.out[:0]
		if !c.send(rest) || len(c.out) == 0 && (c.last || !l.digest(c, nil)) {
			return false
		}
	}
	if what&(poll.In|poll.Gone) == 0 {
		return true
	}
	for {
		n, err := poll.Read(c.fd, l.in)
		if err == poll.ErrAgain {
			return true
		}
		if err != nil || n == 0 || !l.digest(c, l.in[:n]) {
			return false
		}
		if n < len(l.in) && what&poll.Gone == 0 { // the socket is empty: the poller tells of more
			return true
		}
	}
}

// digest answers the requests that are there; false closes the connection. While
// an answer is not sent whole, what follows waits.
func (l *lean) digest(c *conn, got []byte) bool {
	if len(c.in) > 0 || len(c.out) > 0 {
		c.in = append(c.in, got...)
		got = c.in
	}
	used := 0
	for len(c.out) == 0 && !c.last && used < len(got) {
		r, err := parse(got[used:])
		if err != nil {
			return false
		}
		if r.size == 0 {
			break
		}
		used += r.size
		c.last = r.last
		if !c.send(l.answers.to(r)) {
			return false
		}
	}
	if len(c.in) > 0 {
		c.in = c.in[:copy(c.in, c.in[used:])]
	} else {
		c.in = append(c.in, got[used:]...)
	}
	return !c.last || len(c.out) > 0
}

// send writes b, and keeps what the socket does not take; false: it takes nothing
// any more.
func (c *conn) send(b []byte) bool {
	n, err := poll.Write(c.fd, b)
	if err != nil && err != poll.ErrAgain {
		return false
	}
	if n < len(b) {
		c.out = append(c.out, b[max(n, 0):]...)
	}
	return true
}
