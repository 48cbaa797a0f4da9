package tempo

import (
	"testing"
	"time"
)

// A store that is further away gets more flights at a time; one that is near and
// mostly slow does not.
func TestFlightsUnderWayGoByTheShortestRoundTrip(t *testing.T) {
	var p Tempo
	for _, c := range []struct {
		took, once time.Duration
		most       int
	}{
		{50 * time.Microsecond, 50 * time.Microsecond, 1},
		{5 * time.Millisecond, 60 * time.Microsecond, 1},
		{5 * time.Millisecond, 200 * time.Microsecond, 2},
		{5 * time.Millisecond, time.Millisecond, 4},
		{2 * time.Millisecond, 2 * time.Millisecond, 4},
		{2 * time.Millisecond, 999 * time.Microsecond, 2},
	} {
		for i := range over {
			if took := c.took; i == 17 {
				p.Note(c.once)
			} else {
				p.Note(took)
			}
		}
		if p.Flights() != c.most {
			t.Errorf("round trips of %s, once %s: %d under way, want %d", c.took, c.once, p.Flights(), c.most)
		}
	}
}
