//go:build race

package version

const raceEnabled = true
