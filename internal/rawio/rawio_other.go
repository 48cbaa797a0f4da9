//go:build !linux || 386

package rawio

import (
	"errors"
	"syscall"
)

// Supported says that everything takes the ordinary route.
const Supported = false

var errAbsent = errors.New("raw system calls are for Linux")

// Read always fails.
func Read(uintptr, []byte) (int, error) { return 0, errAbsent }

// Write always fails.
func Write(uintptr, []byte) (int, error) { return 0, errAbsent }

func peek(fd uintptr) (int, error) {
	var one [1]byte
	for {
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		if err != syscall.EINTR {
			return n, err
		}
	}
}
