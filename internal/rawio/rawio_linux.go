// On 386 one call stands for all that sockets do.

//go:build !386

package rawio

import (
	"io"
	"syscall"
	"unsafe"
)

// Supported says that Read and Write work here.
const Supported = true

// Read reads once from a socket that does not block: io.EOF at the end, ErrAgain
// where it would wait. p must not be empty.
//
// recvfrom and sendto go past what read and write do for files of all kinds.
func Read(fd uintptr, p []byte) (int, error) {
	n, err := call(syscall.SYS_RECVFROM, fd, p, 0)
	if err == nil && n == 0 {
		return 0, io.EOF
	}
	return n, err
}

// Write writes once to a socket that does not block; ErrAgain where it would
// wait. p must not be empty.
func Write(fd uintptr, p []byte) (int, error) {
	return call(syscall.SYS_SENDTO, fd, p, syscall.MSG_NOSIGNAL)
}

// peek looks at the next byte. It is asked for many a request: a call that the
// scheduler is told of would wake its monitor each time that all was idle.
func peek(fd uintptr) (int, error) {
	var one [1]byte
	return call(syscall.SYS_RECVFROM, fd, one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
}

// call makes one system call. RawSyscall6 leaves the scheduler alone, which is
// right only because the call returns at once.
func call(trap, fd uintptr, p []byte, flags uintptr) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), flags, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, ErrAgain // made once: an errno in an interface allocates
		default:
			return 0, errno
		}
	}
}
