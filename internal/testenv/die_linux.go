package testenv

import "syscall"

// dieWithUs makes the kernel end a child process when this one does.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
