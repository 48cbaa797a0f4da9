package load

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"
)

// What a connection is ready for.
const (
	Readable = syscall.EPOLLIN
	Writable = syscall.EPOLLOUT
	Closed   = syscall.EPOLLRDHUP | syscall.EPOLLHUP | syscall.EPOLLERR // by the other end
)

// ErrAgain is returned when a socket has no more data, or accepts no more, for now.
const ErrAgain = syscall.EAGAIN

// An Event is a connection that is ready. Slot and Turn are what Add was given.
type Event struct {
	What uint32
	Slot int32
	Turn int32
}

// Poller waits for connections with epoll. It is used by one goroutine.
type Poller struct {
	fd     int
	raw    []syscall.EpollEvent
	events []Event
}

// NewPoller returns a poller that returns at most so many events at a time. The
// caller must Close it.
func NewPoller(atATime int) (*Poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a poller: %w", err)
	}
	return &Poller{fd: fd, raw: make([]syscall.EpollEvent, atATime), events: make([]Event, 0, atATime)}, nil
}

// Close closes the poller, not the connections.
func (p *Poller) Close() { _ = syscall.Close(p.fd) }

// Add watches a socket, edge-triggered: after an event the caller must read or write
// until ErrAgain, or until less than requested was transferred. Closing the socket
// removes it; an event from before may still arrive, which turn detects.
func (p *Poller) Add(fd int, slot, turn int32) error {
	const edge = 1 << 31 // EPOLLET; syscall's is negative
	e := syscall.EpollEvent{Events: Readable | Writable | syscall.EPOLLRDHUP | edge, Fd: slot, Pad: turn}
	if err := syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("watching a connection: %w", err)
	}
	return nil
}

// Wait returns the connections that are ready, none if the time passes without any.
// They are valid until the next Wait.
func (p *Poller) Wait(long time.Duration) ([]Event, error) {
	const pwait2 = 441 // the same on all architectures; its timeout is in nanoseconds, not milliseconds
	limit := syscall.NsecToTimespec(max(int64(long), 0))
	call := syscall.Syscall6
	if long <= 0 {
		call = syscall.RawSyscall6 // does not block
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

// Read reads what a socket has, without blocking.
func Read(fd int, b []byte) (int, error) { return transfer(syscall.SYS_RECVFROM, fd, b, 0) }

// Write writes what a socket accepts, without blocking.
func Write(fd int, b []byte) (int, error) {
	return transfer(syscall.SYS_SENDTO, fd, b, syscall.MSG_NOSIGNAL)
}

// transfer is a raw system call, because it never blocks.
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
