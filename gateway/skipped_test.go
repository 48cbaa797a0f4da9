package gateway_test

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
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
