//go:build !race

package values

const raceEnabled = false
