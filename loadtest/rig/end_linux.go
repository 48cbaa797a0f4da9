package rig

import "syscall"

// ownGroup puts a child in a process group of its own, so that it can be ended
// with all of its children, and has the kernel end it when its parent was
// killed.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
