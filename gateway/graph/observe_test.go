package graph_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

const traceID = "0af7651916cd43dd8448eb211c80319c"

func TestRequestsToSourcesArePartOfTheTrace(t *testing.T) {
	w := observed(t)
	for _, through := range []func(*definition.API){func(*definition.API) {}, through(w, "up")} {
		w.applyBeside("2", []*definition.API{parsed(t, "up", w.URL, `, "use_keyless": true`)}, through)
		w.asked()
		w.post(`{"query":"{ users { name todos { id } } strict { city } }"}`, http.Header{
			"Traceparent": {"00-" + traceID + "-b7ad6b7169203331-01"}, "Tracestate": {"a=b"},
		})
		got := <-w.done
		spans := make(map[string]*pipeline.Fetch)
		for i := range got.steps {
			if f := got.steps[i].Fetch; f != nil {
				spans[string(f.Span[:])] = f
			}
		}
		if len(spans) != 4 {
			t.Errorf("steps %+v", got.steps)
		}
		w.mu.Lock()
		for _, c := range w.calls {
			parts := strings.Split(c.header.Get("Traceparent"), "-")
			if len(parts) != 4 || parts[1] != traceID || spans[parts[2]] == nil || c.header.Get("Tracestate") != "a=b" {
				t.Fatalf("%s: traceparent %q, tracestate %q of %v", c.line, parts, c.header["Tracestate"], spans)
			}
			f := spans[parts[2]]
			status := 200
			if f.Source == "strict" {
				status = 404
			}
			if !strings.Contains(c.line, f.Source) || f.Status != status || "http://"+f.Address != w.URL {
				t.Errorf("%s: %+v", c.line, f)
			}
		}
		w.mu.Unlock()
		if "http://"+got.Address != w.URL || got.Status != 404 || got.Duration <= 0 {
			t.Errorf("upstream %+v", got.Upstream)
		}
	}
}

// The span of the client goes on where the gateway records nothing.
func TestTracesOfOthersGoOn(t *testing.T) {
	w := observed(t)
	const parent = "00-" + traceID + "-b7ad6b7169203331-00"
	w.post(`{"query":"{ me { name } }"}`, http.Header{"Traceparent": {parent}})
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.calls) != 1 || w.calls[0].header.Get("Traceparent") != parent {
		t.Errorf("%+v", w.calls)
	}
}

func TestRequestsToSourcesAreCounted(t *testing.T) {
	w := newWorld(t)
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.pools.Metrics())
	count := func() map[string]float64 {
		all, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		counts := make(map[string]float64)
		for _, family := range all {
			for _, m := range family.Metric {
				var labels []string
				for _, l := range m.Label {
					labels = append(labels, l.GetValue())
				}
				if name := family.GetName(); strings.HasPrefix(name, "sluice_source_") {
					counts[name+" "+strings.Join(labels, " ")] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
				}
			}
		}
		return counts
	}
	w.ask(`{ users { todos { id } } strict { city } }`)
	w.apply("2") // counts go on
	w.ask(`{ users { todos { id } } }`)
	want := map[string]float64{
		"sluice_source_requests_total graph 2xx users": 2, "sluice_source_requests_total graph 2xx todos": 4, "sluice_source_requests_total graph 4xx strict": 1,
		"sluice_source_seconds graph users": 2, "sluice_source_seconds graph todos": 4, "sluice_source_seconds graph strict": 1,
	}
	got := count()
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s is %v, want %v", name, got[name], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	w.Gateway.Apply(&definition.Bundle{Revision: "3", ConfirmedEmpty: true})
	if got := count(); len(got) != 0 {
		t.Errorf("sources that are gone: %v", got)
	}
}
