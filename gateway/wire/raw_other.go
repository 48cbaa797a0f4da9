//go:build !linux

package wire

import (
	"errors"
	"net"
	"syscall"
)

var errAgain = errors.New("would wait")

// rawConn returns nil: connections take the ordinary route on this system.
func rawConn(net.Conn) syscall.RawConn { return nil }

func rawRead(uintptr, []byte) (int, error)  { return 0, errAgain }
func rawWrite(uintptr, []byte) (int, error) { return 0, errAgain }
