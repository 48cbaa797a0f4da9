// Package rawio reads and writes sockets past the runtime's own calls: on a
// descriptor that never blocks the scheduler need not be told of a system call,
// and that is a tenth of what a proxied request costs.
//
// Its calls are made inside the function that a syscall.RawConn runs, which
// waits for the descriptor when that function says so.
package rawio

import (
	"net"
	"syscall"
)

// ErrAgain says that a call would have waited.
var ErrAgain error = syscall.EAGAIN

// Conn returns the raw form of a plain TCP connection, or nil.
func Conn(c net.Conn) syscall.RawConn {
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

// Quiet tells whether a socket has neither bytes to read nor an end. It takes
// none of them.
func Quiet(fd uintptr) bool {
	_, err := peek(fd)
	return err == ErrAgain
}

// Ended tells whether a socket has nothing to read any more, and never will.
func Ended(fd uintptr) bool {
	n, err := peek(fd)
	return n <= 0 && err != ErrAgain
}
