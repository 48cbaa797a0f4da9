package bench

import (
	"context"
	"testing"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

func sharedWorld(tb testing.TB) *world {
	store := testenv.Valkey(tb)
	counts, err := counter.OpenValkey(context.Background(), counter.ValkeyOptions{Addresses: []string{store.Addr}})
	if err != nil {
		tb.Fatal(err)
	}
	w := newWorld(tb, settings{counter: counts})
	tb.Cleanup(counts.Close)
	return w
}

// counted is the case with a rate and a quota.
func counted(tb testing.TB) request {
	for _, r := range requests {
		if r.key == "both" {
			return r
		}
	}
	tb.Fatal("no case has a rate and a quota")
	return request{}
}

// sharedBudget is what one run of the counting script may allocate: four objects of
// the context that bounds it, the argument, the reply, and one of the client's.
// Requests that are counted by the same run share it.
const sharedBudget = 7

func TestSharedCountersAllocateForTheirCommandOnly(t *testing.T) {
	if race.Enabled {
		t.Log("the race detector drops pooled objects at random: nothing to measure")
		return
	}
	w := sharedWorld(t)
	if n := allocations(counted(t).warmed(t, w, shop(w))); n > sharedBudget+slack {
		t.Errorf("%.2f allocations per request, want at most %d", n, sharedBudget)
	}
}

// BenchmarkShared is the token, policy, rate and quota case with counters in a
// store that gateways share. With one request at a time each pays for a round
// trip of its own; under load, many share one.
func BenchmarkShared(b *testing.B) {
	w := sharedWorld(b)
	round := counted(b).warmed(b, w, shop(w))
	b.ReportAllocs()
	for b.Loop() {
		round()
	}
}
