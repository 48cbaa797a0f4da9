//go:build unix && !linux

package embedded

import (
	"errors"
	"syscall"
)

// dieWithParent has nothing to ask for: only Linux signals the death of a
// parent. The next start takes over a server that outlived this process.
func dieWithParent(*syscall.SysProcAttr) {}

// running reports whether there is a process pid.
func running(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// serves cannot be told without /proc; whether the socket answers for our data
// directory decides.
func (s *Server) serves(pid int) bool { return running(pid) }

// serverProcesses is unknown without /proc: leftovers are for PostgreSQL's own
// checks to find.
func (s *Server) serverProcesses() ([]int, error) { return nil, errors.ErrUnsupported }
