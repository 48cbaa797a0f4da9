//go:build race

package vars

const raceEnabled = true
