package app

import (
	"math"
	"syscall"
)

// maxConnections is the configured number, or what leaves room for the other
// files of a process: connections to upstreams above all.
func maxConnections(configured int) int {
	if configured > 0 {
		return configured
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return 0 // then accepting fails, and is tried again, when files run out
	}
	return int(min(files.Cur, math.MaxInt32) / 5 * 4)
}
