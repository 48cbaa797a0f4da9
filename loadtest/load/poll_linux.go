package load

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"
)

// gone is what the poller says of a connection whose other end is.
const gone = syscall.EPOLLRDHUP | syscall.EPOLLHUP | syscall.EPOLLERR

// event is a connection that is ready. The kernel hands back slot and turn as
// they were given to add.
type event struct {
	what uint32
	slot int32
	turn int32
}

// poller waits for connections.
type poller struct {
	fd     int
	raw    []syscall.EpollEvent
	events []event
}

func newPoller() (poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return poller{}, fmt.Errorf("making a poller: %w", err)
	}
	return poller{fd: fd, raw: make([]syscall.EpollEvent, batch), events: make([]event, 0, batch)}, nil
}

func (p *poller) close() { _ = syscall.Close(p.fd) }

// add watches a connection for every change, told once each: who is told must
// read or write until the socket has no more.
func (p *poller) add(fd int, slot, turn int32) error {
	const edge = 1 << 31 // EPOLLET; syscall's is negative
	e := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLOUT | syscall.EPOLLRDHUP | edge, Fd: slot, Pad: turn}
	return syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_ADD, fd, &e)
}

// wait returns connections that are ready, none of them when there is none for so
// long. They are good until the next wait.
func (p *poller) wait(long time.Duration) ([]event, error) {
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
		p.events = append(p.events, event{e.Events, e.Fd, e.Pad})
	}
	return p.events, nil
}

// read and write do not wait, so the scheduler need not know of them either.

func read(fd int, b []byte) (int, error) { return transfer(syscall.SYS_RECVFROM, fd, b, 0) }

func write(fd int, b []byte) (int, error) {
	return transfer(syscall.SYS_SENDTO, fd, b, syscall.MSG_NOSIGNAL)
}

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

// punctual has the kernel wake this thread when it asked to be woken, not up to
// 50 µs later, until the function that it returns is called.
func punctual() (restore func()) {
	const setTimerSlack = 29
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0) // refused: latencies are as much longer, for all alike
	return func() { _, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 0, 0) }
}

// threadCPU is how long this thread has been on a processor.
func threadCPU() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var used syscall.Rusage
	if err := syscall.Getrusage(thread, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
