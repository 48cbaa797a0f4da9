//go:build !race

// Package race reports whether the race detector is on. Tests of allocations and
// of memory skip what the detector changes.
package race

// Enabled is true under the race detector, which allocates and drops pooled objects
// at random.
const Enabled = false
