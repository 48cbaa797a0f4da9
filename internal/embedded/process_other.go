//go:build unix && !linux

package embedded

import (
	"errors"
	"syscall"
)

// dieWithParent does nothing: only Linux signals the death of a parent. The next start
// adopts a server that outlived this process.
func dieWithParent(*syscall.SysProcAttr) {}

// running reports whether the process exists.
func running(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// serves cannot be determined without /proc; the check of the socket's data directory
// decides.
func (s *Server) serves(pid int) bool { return running(pid) }

// serverProcesses needs /proc: PostgreSQL's own checks find leftovers.
func (s *Server) serverProcesses() ([]int, error) { return nil, errors.ErrUnsupported }
