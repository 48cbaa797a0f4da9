// 386 has a single system call for all socket operations, with other arguments.

//go:build !386

package rawio

import (
	"io"
	"syscall"
	"unsafe"
)

// Supported reports that Read and Write work on this platform.
const Supported = true

// Read reads once from a socket that does not block. It returns io.EOF at the end,
// and ErrAgain if it would have to wait. p must not be empty.
//
// recvfrom and sendto skip what read and write do for other kinds of files.
func Read(fd uintptr, p []byte) (int, error) {
	n, err := call(syscall.SYS_RECVFROM, fd, p, 0)
	if err == nil && n == 0 {
		return 0, io.EOF
	}
	return n, err
}

// Write writes once to a socket that does not block. It returns ErrAgain if it
// would have to wait. p must not be empty.
func Write(fd uintptr, p []byte) (int, error) {
	return call(syscall.SYS_SENDTO, fd, p, syscall.MSG_NOSIGNAL)
}

// Ended reports whether the other end has closed the connection or its sending
// side, even if bytes from before that have not been read. It reads nothing.
func Ended(fd uintptr) bool {
	const hangup, broken, sendingClosed = 0x10, 0x8, 0x2000 // POLLHUP, POLLERR, POLLRDHUP
	p := struct {
		fd              int32
		events, revents int16
	}{fd: int32(fd), events: sendingClosed}
	var now syscall.Timespec
	n, _, errno := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return errno == 0 && n > 0 && p.revents&(hangup|broken|sendingClosed) != 0
}

// peek looks at the next byte. It runs for most requests: a system call that the
// scheduler knows of would wake its monitor whenever everything was idle.
func peek(fd uintptr) (int, error) {
	var one [1]byte
	return call(syscall.SYS_RECVFROM, fd, one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
}

// call makes one system call. RawSyscall6 does not inform the scheduler, which is
// right only because the call returns at once.
func call(trap, fd uintptr, p []byte, flags uintptr) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), flags, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, ErrAgain // a variable: an errno in an interface allocates
		default:
			return 0, errno
		}
	}
}
