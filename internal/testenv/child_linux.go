package testenv

import "syscall"

// ChildAttr returns how to start a process that gets a signal when this one ends,
// for whatever reason, and none from the terminal.
func ChildAttr(end syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: end, Setpgid: true}
}
