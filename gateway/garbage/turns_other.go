//go:build !linux

package garbage

// shortTurns does nothing where a thread cannot ask for short turns.
func shortTurns(bool) {}
