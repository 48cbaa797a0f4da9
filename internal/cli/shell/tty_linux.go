package shell

import (
	"os"
	"syscall"
	"unsafe"
)

// hideInput turns off the echo of a terminal and returns a function that restores it.
func hideInput(tty *os.File) (undo func(), err error) {
	var was syscall.Termios
	if err := terminal(tty, syscall.TCGETS, &was); err != nil {
		return nil, err
	}
	hidden := was
	hidden.Lflag &^= syscall.ECHO
	if err := terminal(tty, syscall.TCSETS, &hidden); err != nil {
		return nil, err
	}
	return func() { _ = terminal(tty, syscall.TCSETS, &was) }, nil // the terminal may be gone
}

func terminal(tty *os.File, request uintptr, state *syscall.Termios) error {
	raw, err := tty.SyscallConn()
	if err != nil {
		return err
	}
	var failed syscall.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, failed = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(state)))
	})
	if err == nil && failed != 0 {
		err = failed
	}
	return err
}
