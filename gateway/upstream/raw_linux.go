package upstream

import (
	"io"
	"syscall"
	"unsafe"
)

// rawIO says that requests and answers can go past the runtime's own calls.
const rawIO = true

// rawRead reads once from a descriptor that does not block. RawSyscall leaves
// the scheduler alone, which is right only because the call returns at once.
// p must not be empty.
func rawRead(fd uintptr, p []byte) (int, error) {
	n, errno := rawCall(syscall.SYS_READ, fd, p)
	if errno == 0 && n == 0 {
		return 0, io.EOF
	}
	return n, rawError(errno)
}

// rawWrite writes once to a descriptor that does not block. p must not be empty.
func rawWrite(fd uintptr, p []byte) (int, error) {
	n, errno := rawCall(syscall.SYS_WRITE, fd, p)
	return n, rawError(errno)
}

func rawCall(trap, fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
		switch errno {
		case syscall.EINTR:
		case 0:
			return int(n), 0
		default:
			return 0, errno
		}
	}
}

func rawError(errno syscall.Errno) error {
	switch errno {
	case 0:
		return nil
	case syscall.EAGAIN:
		return errAgain
	}
	return errno
}
