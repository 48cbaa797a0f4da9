package bench

import (
	"context"
	"testing"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/testenv"
)

// sharedCeiling is what a request may allocate whose rate and quota are counted
// in a shared store: the two allocations that the store's client makes for one
// command, when no other request shares it, and what its background work adds.
const sharedCeiling = 2.25

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

// counted is the case that asks for a rate and a quota.
func counted(tb testing.TB) request {
	for _, r := range requests {
		if r.key == "both" {
			return r
		}
	}
	tb.Fatal("no case has a rate and a quota")
	return request{}
}

func TestSharedCountersAllocateLittle(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector drops pooled objects at random: nothing to measure")
		return
	}
	w := sharedWorld(t)
	n := allocations(counted(t).warmed(t, w, shop(w)))
	t.Logf("%.2f allocations per request", n)
	if n > sharedCeiling {
		t.Errorf("%.2f allocations per request, at most %v", n, sharedCeiling)
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
