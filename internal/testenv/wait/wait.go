// Package wait waits for conditions in tests.
package wait

import (
	"testing"
	"time"
)

const (
	patience = 60 * time.Second // enough for a loaded machine
	interval = 5 * time.Millisecond
)

// Until polls a condition and fails t if it does not hold within a minute. Tests
// wait with it for other processes and for the kernel; within a process they use
// testing/synctest or a channel.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for end := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
