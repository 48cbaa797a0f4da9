package bench

import (
	"testing"

	"github.com/sluicegate/sluice/gateway/explain"
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

// With recording on, a request that is not recorded costs no allocation either. Here none
// is once there is no more room.
func TestRequestsBesideRecordedOnesDoNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Log("the race detector drops pooled objects at random: nothing to measure")
		return
	}
	samples := explain.NewSamples(explain.SampleOptions{Rate: 1 << 15})
	w := newWorld(t, settings{samples: samples})
	keys := shop(w)
	for _, r := range requests {
		if r.name != "keyless" && r.name != "token" {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			round := r.warmed(t, w, keys)
			for n := 0; samples.Lost() == 0; n++ {
				if round(); n > 100_000 {
					t.Fatal("nothing is recorded")
				}
			}
			if n := allocations(round); n > slack {
				t.Errorf("%.3f allocations per request, want none", n)
			}
		})
	}
}
