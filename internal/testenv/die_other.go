//go:build !linux

package testenv

import "syscall"

// dieWithUs asks for nothing: only Linux signals the death of a parent.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
