package wire

import (
	"io"
	"net"
	"syscall"
	"unsafe"
)

// errAgain says that a call would have waited.
var errAgain error = syscall.EAGAIN

// rawConn returns the raw form of a plain TCP connection, or nil.
func rawConn(c net.Conn) syscall.RawConn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// rawRead reads once from a descriptor that does not block. RawSyscall leaves
// the scheduler alone, which is right only because the call returns at once.
func rawRead(fd uintptr, p []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
		switch {
		case errno == syscall.EINTR:
		case errno == syscall.EAGAIN:
			return 0, errAgain
		case errno != 0:
			return 0, errno
		case n == 0:
			return 0, io.EOF
		default:
			return int(n), nil
		}
	}
}

// rawWrite writes once to a descriptor that does not block.
func rawWrite(fd uintptr, p []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
		switch {
		case errno == syscall.EINTR:
		case errno == syscall.EAGAIN:
			return 0, errAgain
		case errno != 0:
			return 0, errno
		default:
			return int(n), nil
		}
	}
}
