//go:build !linux

package testenv

import "syscall"

// ChildAttr returns how to start a process that gets no signal from the terminal.
// Only Linux signals the death of a parent.
func ChildAttr(syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
