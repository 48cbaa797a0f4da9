package bench

import (
	"context"
	"testing"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/testenv"
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

// A request whose rate and quota are counted in a shared store allocates nothing
// either. Requests that share a command allocate one or two things together, as what they wait on.
func TestSharedCountersAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector drops pooled objects at random: nothing to measure")
		return
	}
	w := sharedWorld(t)
	n := allocations(counted(t).warmed(t, w, shop(w)))
	t.Logf("%.2f allocations per request", n)
	if n > slack {
		t.Errorf("%.2f allocations per request, want none", n)
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
