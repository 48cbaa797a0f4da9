package bench

import (
	"testing"

	"github.com/sluicegate/sluice/internal/testenv/race"
)

// slack is what the gateway's background work may allocate per request: the access log is
// written, counters are swept.
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
	if race.Enabled {
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
