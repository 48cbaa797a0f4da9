//go:build !linux

package garbage

import "time"

// setTurns does nothing: threads have the turns that the system gives them.
func setTurns(time.Duration) {}
