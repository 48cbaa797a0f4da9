//go:build !linux

package e2e

import "syscall"

// child is how a program is started that gets no signal from the terminal; only
// Linux signals the death of a parent.
func child(syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
