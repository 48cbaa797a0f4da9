package rawio

import (
	"io"
	"syscall"
	"unsafe"
)

// Supported says that Read and Write work here.
const Supported = true

// Read reads once from a descriptor that does not block: io.EOF at the end,
// ErrAgain where it would wait. p must not be empty.
func Read(fd uintptr, p []byte) (int, error) {
	n, err := call(syscall.SYS_READ, fd, p)
	if err == nil && n == 0 {
		return 0, io.EOF
	}
	return n, err
}

// Write writes once to a descriptor that does not block; ErrAgain where it would
// wait. p must not be empty.
func Write(fd uintptr, p []byte) (int, error) { return call(syscall.SYS_WRITE, fd, p) }

// call makes one system call. RawSyscall leaves the scheduler alone, which is
// right only because the call returns at once.
func call(trap, fd uintptr, p []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
		switch errno {
		case syscall.EINTR:
		case 0:
			return int(n), nil
		case syscall.EAGAIN:
			return 0, ErrAgain // made once: an errno in an interface allocates
		default:
			return 0, errno
		}
	}
}
