// Package poll is the least that a program needs to serve very many connections
// on one thread: epoll, and reads and writes that never wait.
package poll

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"
)

// What a connection is ready for.
const (
	In   = syscall.EPOLLIN
	Out  = syscall.EPOLLOUT
	Gone = syscall.EPOLLRDHUP | syscall.EPOLLHUP | syscall.EPOLLERR // the other end has said its last
)

// ErrAgain says that a socket has no more, or takes no more, for now.
const ErrAgain = syscall.EAGAIN

// An Event is a connection that is ready. Slot and Turn are what Add was given.
type Event struct {
	What uint32
	Slot int32
	Turn int32
}

// Poller waits for connections. It is used by one goroutine.
type Poller struct {
	fd     int
	raw    []syscall.EpollEvent
	events []Event
}

// New returns a poller that tells of so many events at a time. Close ends it.
func New(atATime int) (*Poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a poller: %w", err)
	}
	return &Poller{fd: fd, raw: make([]syscall.EpollEvent, atATime), events: make([]Event, 0, atATime)}, nil
}

// Close ends the poller, not the connections.
func (p *Poller) Close() { _ = syscall.Close(p.fd) }

// Add watches a socket for every change, told once each: who is told must read or
// write until there is ErrAgain, or less than was asked for. Closing the socket
// ends it; what was told before may still come, which is what turn is for.
func (p *Poller) Add(fd int, slot, turn int32) error {
	const edge = 1 << 31 // EPOLLET; syscall's is negative
	e := syscall.EpollEvent{Events: In | Out | syscall.EPOLLRDHUP | edge, Fd: slot, Pad: turn}
	if err := syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("watching a connection: %w", err)
	}
	return nil
}

// Wait returns connections that are ready, none of them when there is none for so
// long. They are good until the next Wait.
func (p *Poller) Wait(long time.Duration) ([]Event, error) {
	const pwait2 = 441 // of all architectures: it takes nanoseconds, where epoll_wait takes milliseconds
	limit := syscall.NsecToTimespec(max(int64(long), 0))
	call := syscall.Syscall6
	if long <= 0 {
		call = syscall.RawSyscall6 // does not wait, so the scheduler need not know
	}
	n, _, errno := call(pwait2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.raw[0])), uintptr(len(p.raw)), uintptr(unsafe.Pointer(&limit)), 0, 0)
	switch {
	case errno == syscall.EINTR:
		n = 0
	case errno != 0:
		return nil, fmt.Errorf("epoll_pwait2: %w", errno)
	}
	p.events = p.events[:0]
	for _, e := range p.raw[:n] {
		p.events = append(p.events, Event{e.Events, e.Fd, e.Pad})
	}
	return p.events, nil
}

// Read reads what a socket has.
func Read(fd int, b []byte) (int, error) { return transfer(syscall.SYS_RECVFROM, fd, b, 0) }

// Write writes what a socket takes.
func Write(fd int, b []byte) (int, error) {
	return transfer(syscall.SYS_SENDTO, fd, b, syscall.MSG_NOSIGNAL)
}

// transfer does not wait, so the scheduler need not know of it.
func transfer(number uintptr, fd int, b []byte, flags uintptr) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(number, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
		if errno == 0 {
			return int(n), nil
		}
		if errno != syscall.EINTR {
			return 0, errno
		}
	}
}
