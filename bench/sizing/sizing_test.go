package sizing

import (
	"flag"
	"math"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of ../SIZING.md")

const page = "../SIZING.md"

func TestThePageHoldsTheTablesOfTheModel(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Fill(string(text), Tables(Measured()))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Error("bench/SIZING.md is not what the model says: run make sizing")
	}
}

// plan is what a load of a million governed requests needs, changed somehow.
func plan(t *testing.T, change func(*Load, *Plant)) Plan {
	t.Helper()
	l, on := Load{Requests: 1e6, Governed: 1, Shared: true, AnswerKiB: 1, Keys: 1e6, Connections: 1e6, APIs: 1000}, box
	change(&l, &on)
	p, err := simple().Plan(l, on)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// simple are costs that can be reckoned with in the head.
func simple() Costs {
	return Costs{
		Bare: 10, Keyless: 10, Governed: 14, Shared: 20, GraphQL: 2, Unseen: 10, At16: 10, At64: 34, Lookup: 10, Scaling: 1,
		StoreCount: 5, StoreFull: 4, StoreCluster: 2, StoreLookup: 5,
		GatewayMiB: 32, ConnKiB: 4, APIKiB: 2, SessionKiB: 0.5, LimitsKiB: 0.5, HeapGrowth: 2, StoreMiB: 8, KeyKiB: 1,
		HeadKiB: 0.25, StoreBytes: 200, DefinitionKiB: 0.5, WritesPerFetch: 1, KeyWriteMs: 2,
	}
}

func TestGatewaysFollowFromWhatARequestCosts(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Load, *Plant)
		want   int
	}{
		// 1e6 × 10 µs are 10 cores, of which 8 × 0.7 = 5.6 in each gateway.
		{"keyless", func(l *Load, _ *Plant) { l.Governed, l.Shared = 0, false }, 2},
		{"counted in each gateway", func(l *Load, _ *Plant) { l.Shared = false }, 3},
		{"in a shared store, few keys", func(l *Load, _ *Plant) { l.Keys = 1 }, 4},
		{"half of it GraphQL", func(l *Load, _ *Plant) { l.Keys, l.GraphQL = 1, 0.5 }, 4},
		{"none of it seen before", func(l *Load, _ *Plant) { l.Keys, l.GraphQL, l.Unseen = 1, 1, 1 }, 6},
		{"64 KiB answers", func(l *Load, _ *Plant) { l.Keys, l.AnswerKiB, l.Requests = 1, 65, 1e5 }, 4}, // of its network
		{"machines half as busy", func(l *Load, on *Plant) { l.Keys, on.Utilisation = 1, 0.35 }, 8},
		{"one request", func(l *Load, _ *Plant) { l.Requests = 1 }, 1},
		{"none", func(l *Load, _ *Plant) { l.Requests = 0 }, 1},
	} {
		if p := plan(t, c.change); p.Gateways != c.want {
			t.Errorf("%s: %d gateways, want %d: %+v", c.name, p.Gateways, c.want, p)
		}
	}
}

func TestBodiesCostWhatWasMeasuredAndLinesBetween(t *testing.T) {
	c := simple()
	for kib, want := range map[float64]float64{0: 0, 1: 0, 8.5: 5, 16: 10, 40: 22, 64: 34, 112: 58} {
		if got := c.body(kib); got != want {
			t.Errorf("%v KiB: %v µs, want %v", kib, got, want)
		}
	}
}

func TestTheStoreFollowsFromCountsAndSessions(t *testing.T) {
	few := plan(t, func(l *Load, _ *Plant) { l.Requests, l.Keys = 1e5, 1 })
	if few.Stores != 1 || math.Abs(few.StoreCPU-0.5) > 0.001 {
		t.Errorf("100,000 requests of 5 µs: %+v, want half a core of one store", few)
	}
	many := plan(t, func(l *Load, _ *Plant) { l.Keys = 1 })
	if many.Stores != 15 { // 1e6 × 5 µs × 2 in a cluster / 0.7
		t.Errorf("a million: %d stores, want 15", many.Stores)
	}
	// Each of a million keys is asked for once a minute by each gateway at most.
	all := plan(t, func(*Load, *Plant) {})
	most := float64(all.Gateways) * 1e6 / sessionSeconds
	if all.Lookups <= many.Lookups || all.Lookups > most {
		t.Errorf("%v sessions a second of a million keys, at most %v; %v of one key", all.Lookups, most, many.Lookups)
	}
	if all.StoreCPU <= many.StoreCPU || all.Gateways < many.Gateways {
		t.Errorf("sessions cost nothing: %+v, %+v", all, many)
	}
	if none := plan(t, func(l *Load, _ *Plant) { l.Shared = false }); none.Stores != 0 || none.Lookups != 0 {
		t.Errorf("counted in each gateway: %+v", none)
	}
}

func TestMemoryFollowsFromConnectionsKeysAndAPIs(t *testing.T) {
	empty := plan(t, func(l *Load, _ *Plant) { *l = Load{} })
	if empty.GatewayMiB != 32 {
		t.Errorf("empty: %v MiB", empty.GatewayMiB)
	}
	conns := plan(t, func(l *Load, _ *Plant) { *l = Load{Connections: 1024} })
	apis := plan(t, func(l *Load, _ *Plant) { *l = Load{APIs: 1024} })
	keys := plan(t, func(l *Load, _ *Plant) { *l = Load{Keys: 1024, Governed: 1, Requests: 1} })
	if conns.GatewayMiB != 36 || apis.GatewayMiB != 36 || keys.GatewayMiB != 34 {
		t.Errorf("connections %v, APIs %v, keys %v MiB; want 36, 36, 34", conns.GatewayMiB, apis.GatewayMiB, keys.GatewayMiB)
	}
}

func TestRequestsNeverReachTheDatabase(t *testing.T) {
	quiet, busy := plan(t, func(l *Load, _ *Plant) { l.Requests = 1 }), plan(t, func(*Load, *Plant) {})
	if quiet.DatabaseCPU != 0 || busy.DatabaseCPU != 0 {
		t.Errorf("Postgres: %v and %v cores", quiet.DatabaseCPU, busy.DatabaseCPU)
	}
	if keys := plan(t, func(l *Load, _ *Plant) { l.KeyWrites = 100 }); keys.DatabaseCPU != 0.2 {
		t.Errorf("100 keys a second: %v cores of Postgres", keys.DatabaseCPU)
	}
}

func TestLoadsThatMakeNoSenseAreRefusedByName(t *testing.T) {
	for name, change := range map[string]func(*Load, *Plant){
		"Requests":    func(l *Load, _ *Plant) { l.Requests = -1 },
		"Governed":    func(l *Load, _ *Plant) { l.Governed = 1.5 },
		"AnswerKiB":   func(l *Load, _ *Plant) { l.AnswerKiB = math.NaN() },
		"Unseen":      func(l *Load, _ *Plant) { l.Unseen = 0.5 },
		"Cores":       func(_ *Load, on *Plant) { on.Cores = 0 },
		"Gbit":        func(_ *Load, on *Plant) { on.Gbit = -1 },
		"Utilisation": func(_ *Load, on *Plant) { on.Utilisation = 1.1 },
	} {
		l, on := Load{Requests: 1}, box
		change(&l, &on)
		if _, err := simple().Plan(l, on); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnotherMachineIsAsMuchSlowerAsItsBareProxy(t *testing.T) {
	here, there := simple(), simple().On(20)
	if there.Keyless != 20 || there.StoreCount != 10 || there.GatewayMiB != here.GatewayMiB || here.Keyless != 10 {
		t.Errorf("twice as slow: %+v", there)
	}
}

func TestTheLoadsOfThePageMakeSense(t *testing.T) {
	for _, m := range million {
		if _, err := Measured().Plan(m.load, box); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

func TestAPageWithoutAPlaceIsAnError(t *testing.T) {
	tables := map[string]string{"a": "A\n"}
	for _, page := range []string{"", "<!-- sizing: a -->\n", "<!-- sizing: a -->\n<!-- end -->\n<!-- sizing: b -->\n<!-- end -->\n"} {
		if got, err := Fill(page, tables); err == nil {
			t.Errorf("%q is filled: %q", page, got)
		}
	}
	got, err := Fill("x\n<!-- sizing: a -->\nold\n<!-- end -->\ny\n", tables)
	if want := "x\n<!-- sizing: a -->\n\nA\n\n<!-- end -->\ny\n"; err != nil || got != want {
		t.Errorf("%q %v, want %q", got, err, want)
	}
}
