package upstream

import (
	"net"
	"syscall"
)

// errAgain says that a call would have waited.
var errAgain error = syscall.EAGAIN

// rawConn returns the raw form of a TCP connection, or nil.
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

// rawQuiet tells whether a connection has neither bytes to read nor an end. It
// takes none of them.
func rawQuiet(fd uintptr) bool {
	var one [1]byte
	for {
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		if err != syscall.EINTR {
			return err == errAgain
		}
	}
}
