package app

import (
	"math"
	"syscall"
)

// maxConnections returns the configured number, or by default four fifths of the open
// files that the process may have; the rest is for connections to upstreams and other
// files.
func maxConnections(configured int) int {
	if configured > 0 {
		return configured
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return 0 // no limit: accepting fails and is repeated when files run out
	}
	return int(min(files.Cur, math.MaxInt32) / 5 * 4)
}
