package observe

import (
	"strings"
	"testing"
)

func TestALineNamesTheTrace(t *testing.T) {
	ex := exchange("GET", "/a", 200)
	if _, there := lineOf(t, ex, 200)["trace"]; there {
		t.Error("a request that is in no trace names one")
	}
	copy(ex.Trace.ID[:], strings.Repeat("0af7", 8))
	if got := lineOf(t, ex, 200); got["trace"] != strings.Repeat("0af7", 8) || got["id"] == nil || got["method"] != "GET" {
		t.Errorf("logged %v", got)
	}
}

func TestTunnelsAndTracesAreShown(t *testing.T) {
	o := New(Options{Log: quiet(), Sources: Sources{
		Tunnels: func() Tunnels { return Tunnels{Open: map[string]int{"a": 1, "b\xff": 2}, Cut: 3} },
		Traces:  func() Traces { return Traces{Sent: 4, Failed: 5, Dropped: 6} },
	}})
	expect(t, scrape(t, o),
		`sluice_tunnels{api="a"} 1`, "sluice_tunnels{api=\"b\uFFFD\"} 2", `sluice_tunnels_cut_total 3`,
		`sluice_trace_spans_total{outcome="sent"} 4`, `sluice_trace_spans_total{outcome="failed"} 5`, `sluice_trace_spans_total{outcome="dropped"} 6`)
	if text := scrape(t, New(Options{Log: quiet()})); strings.Contains(text, "sluice_trace_spans_total") {
		t.Error("traces are shown though none are recorded")
	}
}
