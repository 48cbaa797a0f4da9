package counter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/testenv"
)

// The end of a period is not asked for with every call. When another gateway
// resets a quota, it is told with the next call but one where the count shows
// it, and else within about a second.
func TestResetByAnotherGatewayShowsItsNewPeriod(t *testing.T) {
	store := testenv.Valkey(t)
	one := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed, Timeout: patience})
	other := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed, Timeout: patience})
	for _, c := range []struct {
		name          string
		before, after int // calls of either gateway
	}{{"fewer calls than before", 5, 1}, {"more calls than before", 1, 5}} {
		t.Run(c.name, func(t *testing.T) {
			q := one.quota(unique(t), 1000, time.Minute)
			one.takeCalls(t, c.before, q)
			if err := other.Reset(t.Context(), q.Key); err != nil {
				t.Fatal(err)
			}
			q.Period = time.Hour
			_, fresh := other.takeCalls(t, c.after, q)
			if c.after < c.before {
				one.take(t, q)
				_, counts := one.take(t, q)
				want(t, "reset of the new period", counts[0].ResetAt, fresh[0].ResetAt)
				return
			}
			until(t, "the new period is known", 5*time.Second, func() bool {
				return one.peek(t, q)[0].ResetAt == fresh[0].ResetAt
			})
		})
	}
}

// A gateway that opens a period knows its end, whatever it believed before.
func TestResetByAnotherGatewayAndOpenedHereShowsItsNewPeriodAtOnce(t *testing.T) {
	store := testenv.Valkey(t)
	o := counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed, Timeout: patience}
	one, other := gatewayAt(t, o), gatewayAt(t, o)
	q := one.quota(unique(t), 1000, time.Minute)
	one.take(t, q)
	if err := other.Reset(t.Context(), q.Key); err != nil {
		t.Fatal(err)
	}
	want(t, "reset while no period is open", one.peek(t, q)[0], counter.Count{Remaining: 1000})
	q.Period = time.Hour
	_, counts := one.take(t, q)
	want(t, "reset of the new period", fmt.Sprint(counts[0].ResetAt), store.Do("PEXPIRETIME", q.Key))
}

// What is told without asking is what the store would say.
func TestEndOfAPeriodIsTheStoresWithEveryCall(t *testing.T) {
	store := testenv.Valkey(t)
	g := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed, Timeout: patience})
	q, never := g.quota(unique(t), 1000, time.Minute), g.quota(unique(t), 1000, 0)
	for range 50 {
		_, counts := g.take(t, q, never)
		want(t, "reset", store.Do("PEXPIRETIME", q.Key), fmt.Sprint(counts[0].ResetAt))
		want(t, "reset of a quota that never renews", counts[1].ResetAt, int64(0))
		want(t, "reset by a look", g.peek(t, q)[0].ResetAt, counts[0].ResetAt)
	}
	if asked := commandCalls(t, store, "pexpiretime"); asked > 50+20 { // the test itself asks 50 times
		t.Errorf("the end of the period was asked for %d times", asked-50)
	}
}

// commandCalls is how often a store ran a command, in scripts too.
func commandCalls(t *testing.T, store *testenv.Store, command string) (n int) {
	t.Helper()
	_, rest, _ := strings.Cut(store.Do("INFO", "commandstats"), "cmdstat_"+command+":calls=")
	if _, err := fmt.Sscanf(rest, "%d", &n); err != nil {
		t.Fatalf("calls of %s: %v", command, err)
	}
	return n
}
