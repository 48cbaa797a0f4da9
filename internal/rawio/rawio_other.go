//go:build !linux || 386

package rawio

import (
	"errors"
	"syscall"
)

// Supported reports that Read and Write do not work on this platform.
const Supported = false

var errUnsupported = errors.New("raw system calls are only made on Linux")

// Read always fails.
func Read(uintptr, []byte) (int, error) { return 0, errUnsupported }

// Write always fails.
func Write(uintptr, []byte) (int, error) { return 0, errUnsupported }

// Ended reports whether the other end has closed the connection or its sending
// side, and left nothing to read. It reads nothing.
func Ended(fd uintptr) bool {
	n, err := peek(fd)
	return n <= 0 && err != ErrAgain
}

func peek(fd uintptr) (int, error) {
	var one [1]byte
	for {
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		if err != syscall.EINTR {
			return n, err
		}
	}
}
