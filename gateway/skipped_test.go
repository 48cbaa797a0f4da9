package gateway_test

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/observe"
	"github.com/sluicegate/sluice/gateway/usage"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/gatewaytest"
	"github.com/sluicegate/sluice/internal/testenv/wait"
	contract "github.com/sluicegate/sluice/internal/usage"
)

// A definition that cannot be used still owns its listen path: its callers must
// not reach an API that asks less of them.
func TestWhatIsSkippedIsServedByNobodyElse(t *testing.T) {
	g, addr := serve(t)
	all := named(t, "all")
	skipped := func(ids ...string) *definition.Bundle {
		b := bundle(strings.Join(ids, ""), keyless("all", "/", all))
		for _, id := range ids {
			b.Skipped = append(b.Skipped, definition.Skipped{Source: id + ".json", APIID: id, ListenPath: "/" + id + "/", Reason: "enable_jwt: not there yet"})
		}
		return b
	}
	failed := g.Apply(skipped("secure"))
	if err := failed["secure"]; err == nil || !strings.Contains(err.Error(), "enable_jwt") {
		t.Errorf("failed: %v", failed)
	}
	for path, want := range map[string]int{"/secure/x": 503, "/secure": 503, "/secured": 200, "/x": 200} {
		if code, body := get(t, addr, path); code != want {
			t.Errorf("%s: %d %s, want %d", path, code, body, want)
		}
	}
	// One that was in service stays so.
	good := bundle("good", keyless("all", "/", all), keyless("secure", "/secure/", named(t, "secure")))
	if failed := g.Apply(good); len(failed) > 0 {
		t.Fatal(failed)
	}
	g.Apply(skipped("secure"))
	if code, body := get(t, addr, "/secure/x"); code != 200 || body != "secure GET /x" {
		t.Errorf("the last good form: %d %s", code, body)
	}
	// A path that somebody else has is theirs, and the reason is the first one.
	taken := skipped("other")
	taken.Skipped[0].ListenPath = "/"
	failed = g.Apply(taken)
	if err := failed["other"]; err == nil || !strings.Contains(err.Error(), "enable_jwt") || failed["all"] != nil {
		t.Errorf("failed: %v", failed)
	}
	if code, body := get(t, addr, "/x"); code != 200 {
		t.Errorf("%d %s", code, body)
	}
}

// TestCallsOfWhatIsNotServedAreCountedUnderItsID counts calls that reach a definition
// which cannot be compiled or read, or no API at all: all rows can be counted by the
// admin.
func TestCallsOfWhatIsNotServedAreCountedUnderItsID(t *testing.T) {
	counts := usage.NewCalls()
	g := gatewaytest.Start(t, gatewaytest.Options{Observe: func(o *observe.Options) { o.Calls = counts }})
	broken := keyless("broken", "/broken/", "no address")
	broken.OrgID = "one"
	b := bundle("1", keyless("good", "/good/", named(t, "good")), broken)
	b.Skipped = []definition.Skipped{{Source: "row 7", APIID: "skipped", OrgID: "one", ListenPath: "/skipped/", Reason: "not there yet"}}
	got := make(map[contract.Row]int64)
	for revision := 1; revision <= 2; revision++ { // the counts go on when the next bundle does not serve them either
		b.Revision = strings.Repeat("1", revision)
		if failed := g.Apply(b); len(failed) != 2 {
			t.Fatalf("failed: %v", failed)
		}
		for path, want := range map[string]int{"/broken/x": 503, "/skipped/x": 503, "/good/x": 200, "/nowhere": 404} {
			if code, body := get(t, g.Addr, path); code != want {
				t.Errorf("%s: %d %s, want %d", path, code, body, want)
			}
		}
		wait.Until(t, "the calls are counted", func() bool {
			var hits int64
			counts.Take(func(r contract.Row) {
				hits, r.Minute, r.Hits, r.Total, r.Upstream = r.Hits, 0, 0, 0, 0
				got[r] += hits
			}, func(contract.Latency) {})
			return total(got) == int64(3*revision)
		})
	}
	for _, row := range []contract.Row{
		{Org: "one", API: "broken", Status: 503, Reason: "not_served"},
		{Org: "one", API: "skipped", Status: 503, Reason: "not_served"},
		{API: "good", Status: 200},
	} {
		if got[row] != 2 {
			t.Errorf("%+v: %d in %v", row, got[row], got)
		}
	}
}

func total(hits map[contract.Row]int64) (all int64) {
	for _, n := range hits {
		all += n
	}
	return all
}
