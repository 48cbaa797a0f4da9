package bench

import (
	"testing"

	"github.com/sluicegate/sluice/loadtest/load"
)

// slack is what the gateway's background work may allocate beside a request:
// lines reach the disk, counters are swept.
const slack = 0.02

// many requests make one run, so that a part of an allocation shows too.
const many = 200

// allocations returns how much one round allocates, everything in this process
// counted: client, gateway, access log, upstream.
func allocations(round func()) float64 {
	return testing.AllocsPerRun(10, func() {
		for range many {
			round()
		}
	}) / many
}

func TestRequestsDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector drops pooled objects at random: nothing to measure")
		return
	}
	w := newWorld(t, settings{})
	keys := shop(w)
	for _, r := range requests {
		t.Run(r.name, func(t *testing.T) {
			if n := allocations(r.warmed(t, w, keys)); n > slack {
				t.Errorf("%.3f allocations per request, want none", n)
			}
		})
	}
}

// With more keys in use than are ready, most requests are of one that is not, and
// nothing of it is kept for the next.
func TestRequestsOfKeysThatAreNotReadyAllocateLittle(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector drops pooled objects at random: nothing to measure")
		return
	}
	w := newWorld(t, settings{cache: 20_000, ready: 512})
	shop(w)
	sent := keyed(w, 8000, "both")
	c, want, next := w.client(), &load.Want{Status: 200}, 0
	round := func() {
		c.round(sent.at(next%sent.len()), want)
		next += 7
	}
	for range 2 * sent.len() {
		round()
	}
	// A few are taken for keys that come often. What else there is are the names of
	// counters, a hundred at a time.
	if n := allocations(round); n > 0.1 {
		t.Errorf("%.3f allocations per request", n)
	}
}
