package load

import (
	"bytes"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/bench/answer"
)

// slot is the place of one connection.
type slot struct {
	fd    int // -1: none
	pool  int32
	turn  int32
	state state
	call  call

	out  []byte // the rest that the socket did not accept; mostly empty
	in   []byte // what is there of an answer that came in parts
	body int    // where the body begins in it, -1: the head is not complete
	size int    // of the body
	seen status
}

// state is what a connection does.
type state uint8

const (
	idle state = iota
	dialling
	asking
)

// status says how an answer is taken.
type status struct {
	refused bool // one of the kind's refusals
	last    bool // the server closes the connection after it
}

// connect opens a connection for a call.
func (o *Open) connect(i int32, c call) {
	s := &o.slots[i]
	s.turn++
	s.call, s.state = c, dialling
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		o.fail(i, fmt.Errorf("opening a socket: %w", err))
		return
	}
	s.fd = fd
	o.outcome.Opened++
	_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1) // slower without it, not wrong
	if err := syscall.Connect(fd, &o.to); err != nil && err != syscall.EINPROGRESS {
		o.fail(i, fmt.Errorf("connecting: %w", err))
		return
	}
	if err := o.poll.Add(fd, i, s.turn); err != nil {
		o.fail(i, err)
	}
}

// drop closes a connection and frees its slot.
func (o *Open) drop(i int32) {
	s := &o.slots[i]
	if s.fd >= 0 {
		_ = syscall.Close(s.fd) // nothing is left to be said on it
	}
	s.fd, s.state, s.out, s.in = -1, idle, s.out[:0], s.in[:0]
	s.turn++
	p := &o.pools[s.pool]
	p.empty = append(p.empty, i)
}

// fail ends a call for which there is no answer.
func (o *Open) fail(i int32, err error) {
	o.wrong(o.slots[i].call, err)
	o.busy--
	o.drop(i)
}

// send writes the request of a slot's call.
func (o *Open) send(i int32) {
	s := &o.slots[i]
	s.state, s.body, s.in = asking, -1, s.in[:0]
	k := s.call.kind
	o.out = o.plan.Kinds[k].Request(o.out[:0], o.asked[k])
	o.asked[k]++
	n, err := Write(s.fd, o.out)
	switch {
	case err == ErrAgain:
		s.out = append(s.out[:0], o.out...)
	case err != nil:
		o.fail(i, fmt.Errorf("sending a request: %w", err))
	case n < len(o.out):
		s.out = append(s.out[:0], o.out[n:]...)
	}
}

// attend does what a connection is ready for.
func (o *Open) attend(i int32, what uint32) {
	s := &o.slots[i]
	turn := s.turn
	switch s.state {
	case idle:
		p := &o.pools[s.pool]
		p.idle = slices.DeleteFunc(p.idle, func(j int32) bool { return i == j })
		o.drop(i) // closed by the server, or unsolicited data
		return
	case dialling:
		o.dialled(i, what)
		return
	}
	if len(s.out) > 0 && what&Writable != 0 {
		o.sendRest(i)
	}
	if s.turn == turn && what&(Readable|Closed) != 0 {
		o.receive(i, what&Closed != 0)
	}
}

// dialled has a connection that was made send its call.
func (o *Open) dialled(i int32, what uint32) {
	code, err := syscall.GetsockoptInt(o.slots[i].fd, syscall.SOL_SOCKET, syscall.SO_ERROR)
	if err == nil && code != 0 {
		err = syscall.Errno(code)
	}
	switch {
	case err != nil:
		o.fail(i, fmt.Errorf("connecting: %w", err))
	case what&Writable != 0:
		o.send(i)
	}
}

func (o *Open) sendRest(i int32) {
	s := &o.slots[i]
	n, err := Write(s.fd, s.out)
	if err != nil && err != ErrAgain {
		o.fail(i, fmt.Errorf("sending a request: %w", err))
		return
	}
	s.out = s.out[:copy(s.out, s.out[max(n, 0):])]
}

// receive reads what is there. An answer that comes whole is checked where it was
// read; one that comes in parts is put together in the slot.
func (o *Open) receive(i int32, ended bool) {
	s := &o.slots[i]
	for {
		n, err := Read(s.fd, o.in)
		switch {
		case err == ErrAgain:
			return
		case err != nil:
			o.fail(i, fmt.Errorf("reading an answer: %w", err))
			return
		case n == 0:
			o.fail(i, errClosed)
			return
		}
		got := o.in[:n]
		if len(s.in) > 0 {
			s.in = append(s.in, got...)
			got = s.in
		}
		done, err := o.digest(s, got)
		if err != nil {
			o.fail(i, err)
			return
		}
		if done {
			o.finish(i, ended)
			return
		}
		if len(s.in) == 0 {
			s.in = append(s.in, got...)
		}
		if n < len(o.in) && !ended { // the socket is empty: the next data is an event
			return
		}
	}
}

// digest checks the received part of a response, and reports whether it is complete.
func (o *Open) digest(s *slot, got []byte) (done bool, err error) {
	kind := &o.plan.Kinds[s.call.kind]
	if s.body < 0 {
		want := kind.Want
		s.seen = status{refused: slices.Contains(kind.Refusals, answer.Status(got))}
		if s.seen.refused {
			want = answer.Want{}
		}
		if s.body, s.size, err = want.CheckHead(got); err != nil || s.body < 0 {
			return false, err
		}
		s.seen.last = closes(got[:s.body])
	}
	if len(got) < s.body+s.size {
		return false, nil
	}
	if s.seen.refused {
		return true, (&answer.Want{}).CheckBody(got[s.body:], s.size)
	}
	return true, kind.Want.CheckBody(got[s.body:], s.size)
}

var closeLine = []byte("\r\nConnection: close\r\n")

// closes reports whether the connection ends with the response. Another spelling of the
// header makes later calls count as broken.
func closes(head []byte) bool { return bytes.Contains(head, closeLine) }

// finish counts a response, and frees the connection for the next call.
func (o *Open) finish(i int32, ended bool) {
	s := &o.slots[i]
	o.now = time.Since(o.began)
	t := o.tally(s.call)
	if s.seen.refused {
		t.Refused++
		t.Refusal.Record(o.now - s.call.due)
	} else {
		t.Good++
		t.Latency.Record(o.now - s.call.due)
		if o.now < o.pace.For {
			o.outcome.Slices[o.sliceAt(o.now)][s.call.kind].Served++
		}
	}
	o.busy--
	if ended || s.seen.last {
		o.drop(i)
		return
	}
	s.state = idle
	p := &o.pools[s.pool]
	p.idle = append(p.idle, i)
}
