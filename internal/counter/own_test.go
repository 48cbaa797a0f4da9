package counter_test

import (
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/testenv"
)

var connection = regexp.MustCompile(`id=(\d+) .*name=sluice-counter .*cmd=(\S+)`)

// connections are the numbers of a gateway's connections, and what each did last.
func connections(s *testenv.Store) map[string]string {
	last := make(map[string]string)
	for _, found := range connection.FindAllStringSubmatch(s.Do("CLIENT", "LIST"), -1) {
		last[found[1]] = found[2]
	}
	return last
}

// Flights have a connection of their own. When that alone is lost while nobody uses
// it, no call notices, and there is soon another one.
func TestTheConnectionOfFlightsIsLostUnnoticed(t *testing.T) {
	store := testenv.Valkey(t)
	g := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed, Timeout: 20 * time.Second})
	q := g.quota("k", 1<<40, time.Minute)
	calls := int64(0)
	admit := func() {
		calls++
		want(t, "admitted", g.admitted(t, 1, q), int64(1))
	}
	admit() // which sends the script
	admit()
	var others, own string // the connection of all others, and that of flights
	for id, last := range connections(store) {
		if last == "evalsha" {
			own = id
		} else {
			others = id
		}
	}
	if own == "" || others == "" {
		t.Fatalf("connections %v, want one that calls scripts and one that does not", connections(store))
	}
	for range 3 {
		store.Do("CLIENT", "KILL", "ID", own)
		until(t, "it ended", 10*time.Second, func() bool { return len(connections(store)) == 1 })
		admit()
		until(t, "another one is used", 10*time.Second, func() bool {
			admit()
			now := connections(store)
			delete(now, others)
			for id, last := range now {
				own = id
				return last == "evalsha" && len(now) == 1
			}
			return false
		})
	}
	want(t, "counted", used(t, store, q), calls)
	want(t, "outages told", g.changes.all(), "[]")
}

// One that is lost in the middle of a call may have counted it: the policy decides,
// and those after it are counted.
func TestTheConnectionOfFlightsIsLostInACall(t *testing.T) {
	store := testenv.Valkey(t)
	g := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed, Timeout: 50 * time.Millisecond})
	q := g.quota("k", 1000, time.Minute)
	want(t, "admitted before", g.admitted(t, 5, q), int64(5))
	store.Stop()
	if _, err := g.Take(t.Context(), []counter.Limit{q}, 1, make([]counter.Count, 1)); !errors.Is(err, counter.ErrUnavailable) {
		t.Errorf("while the store stands still: %v", err)
	}
	store.Cont()
	g.awaitCounting(t)
	want(t, "admitted after", g.admitted(t, 5, q), int64(5))
	if n := used(t, store, q); n < 10 || n > 11 {
		t.Errorf("counted %d, want 10, or 11 with the one of which nobody knew", n)
	}
}
