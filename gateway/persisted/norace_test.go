//go:build !race

package persisted

const raceEnabled = false
