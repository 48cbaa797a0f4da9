//go:build race

package basic

// raceEnabled is true under the race detector, where memory is not as it is
// elsewhere.
const raceEnabled = true
