//go:build !race

package vars

const raceEnabled = false
