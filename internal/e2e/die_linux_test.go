package e2e

import "syscall"

// child is how a program is started that gets a signal when this process ends,
// whatever ends that, and none from the terminal.
func child(end syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: end, Setpgid: true}
}
