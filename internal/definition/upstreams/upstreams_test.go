package upstreams

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition/object"
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestTargetsHaveWeightsInEitherForm(t *testing.T) {
	for _, c := range []struct {
		list string
		want []Target
	}{
		{`["http://a", "http://b"]`, []Target{{"http://a", 1, "proxy.target_list[0]"}, {"http://b", 1, "proxy.target_list[1]"}}},
		{`["http://a", "http://b", "http://a"]`, []Target{{"http://a", 2, "proxy.target_list[0]"}, {"http://b", 1, "proxy.target_list[1]"}}},
		{
			`[{"url": "http://a", "weight": 3}, {"url": "http://b"}, "http://a"]`,
			[]Target{{"http://a", 4, "proxy.target_list[0].url"}, {"http://b", 1, "proxy.target_list[1].url"}},
		},
	} {
		rules, faults := Read(Source{Balance: true, Targets: raw(c.list)})
		if len(faults) > 0 || !reflect.DeepEqual(rules.Targets, c.want) {
			t.Errorf("%s\n got %+v %v\nwant %+v", c.list, rules.Targets, faults, c.want)
		}
	}
	if rules, faults := Read(Source{Targets: raw(`["http://a"]`)}); len(faults) > 0 || rules.Targets != nil || rules.Ejection != nil {
		t.Errorf("targets count although balancing is off: %+v %v", rules, faults)
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	rules, faults := Read(Source{
		Balance: true, Targets: raw(`["http://a"]`), HealthCheck: raw(`{"path": "/health"}`),
		Breaker: raw(`{"threshold_percent": 0.5, "samples": 10}`),
		Uptime:  raw(`{"check_list": ["http://c/up", {"url": "http://d", "timeout": 500000000}, {"url": "http://e", "timeout": "3s", "body": "aGk=", "method": "POST"}]}`),
	})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if want := (Ejection{Failures: 5, For: 10 * time.Second, Longest: 5 * time.Minute}); *rules.Ejection != want {
		t.Errorf("ejection %+v", *rules.Ejection)
	}
	if want := (Check{Path: "/health", Method: "GET", Interval: 10 * time.Second, Timeout: 2 * time.Second, Healthy: 2, Unhealthy: 3}); !reflect.DeepEqual(*rules.Check, want) {
		t.Errorf("check %+v", *rules.Check)
	}
	if want := (Breaker{Share: 0.5, Samples: 10, Return: time.Minute, HalfOpen: true}); *rules.Breaker != want {
		t.Errorf("breaker %+v", *rules.Breaker)
	}
	if len(rules.Uptime) != 3 || rules.Uptime[0].URL != "http://c/up" || rules.Uptime[0].At != "uptime_tests.check_list[0]" ||
		rules.Uptime[1].Timeout != 500*time.Millisecond || rules.Uptime[2].Timeout != 3*time.Second || string(rules.Uptime[2].Body) != "hi" {
		t.Errorf("uptime %+v", rules.Uptime)
	}
}

func TestWhatIsOffIsNotThere(t *testing.T) {
	rules, faults := Read(Source{
		Balance: true, Targets: raw(`["http://a"]`), Ejection: raw(`{"disabled": true}`), HealthCheck: raw(`{"disabled": true}`),
		Breaker: raw(`{"disabled": true}`), Uptime: raw(`{"disabled": true, "check_list": [{"url": 5}]}`),
	})
	if len(faults) > 0 || rules.Ejection != nil || rules.Check != nil || rules.Breaker != nil {
		t.Errorf("%+v %v", rules, faults)
	}
	calls, faults := ReadCalls(raw(`{"circuit_breakers": [{"path": "(", "disabled": true}], "hard_timeouts": [{"path": "", "disabled": true}], "other": 1}`))
	if len(faults) > 0 || len(calls.Breakers) > 0 || len(calls.Limits) > 0 {
		t.Errorf("%+v %v", calls, faults)
	}
}

func TestCallsAreReadFromExtendedPaths(t *testing.T) {
	calls, faults := ReadCalls(raw(`{
		"circuit_breakers": [{"path": "/a/{id}", "method": "GET", "threshold_percent": 0.25, "samples": 8, "return_to_service_after": 30, "disable_half_open_state": true}],
		"hard_timeouts": [{"path": "/slow", "method": "POST", "timeout": 3, "ignore_case": true}]}`))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	wantBreaker := CallBreaker{Call{Path: "/a/{id}", Method: "GET"}, Breaker{Share: 0.25, Samples: 8, Return: 30 * time.Second}}
	wantLimit := TimeLimit{Call{Path: "/slow", Method: "POST", IgnoreCase: true}, 3 * time.Second}
	if len(calls.Breakers) != 1 || calls.Breakers[0] != wantBreaker || len(calls.Limits) != 1 || calls.Limits[0] != wantLimit {
		t.Errorf("%+v", calls)
	}
}

func TestWhatIsWrongIsToldWithItsPath(t *testing.T) {
	on := func(s Source) Source { s.Balance = true; return s }
	list := raw(`["http://a"]`)
	for _, c := range []struct {
		source Source
		path   string
	}{
		{on(Source{}), "proxy.target_list"},
		{on(Source{Targets: raw(`[]`)}), "proxy.target_list"},
		{on(Source{Targets: raw(`{}`)}), "proxy.target_list"},
		{on(Source{Targets: raw(`["http://a", 5]`)}), "proxy.target_list[1]"},
		{on(Source{Targets: raw(`[{"url": "http://a", "weight": -1}]`)}), "proxy.target_list[0].weight"},
		{on(Source{Targets: raw(`[{"url": "http://a", "weight": "1"}]`)}), "proxy.target_list[0].weight"},
		{on(Source{Targets: list, Ejection: raw(`{"failures": -1}`)}), "proxy.ejection.failures"},
		{on(Source{Targets: list, Ejection: raw(`{"seconds": 20, "longest": 10}`)}), "proxy.ejection.longest"},
		{on(Source{Targets: list, Ejection: raw(`5`)}), "proxy.ejection"},
		{Source{HealthCheck: raw(`{}`)}, "proxy.health_check.path"},
		{Source{HealthCheck: raw(`{"path": "http://a/b"}`)}, "proxy.health_check.path"},
		{Source{HealthCheck: raw(`{"path": "/", "interval": 1, "timeout": 2}`)}, "proxy.health_check.timeout"},
		{Source{HealthCheck: raw(`{"path": "/", "expected": [20]}`)}, "proxy.health_check.expected[0]"},
		{Source{HealthCheck: raw(`{"path": "/", "headers": {"A": "b\r\nc"}}`)}, `proxy.health_check.headers["A"]`},
		{Source{HealthCheck: raw(`{"path": "/", "method": "get"}`)}, "proxy.health_check.method"},
		{Source{Breaker: raw(`{"samples": 5}`)}, "proxy.circuit_breaker.threshold_percent"},
		{Source{Breaker: raw(`{"threshold_percent": 50, "samples": 5}`)}, "proxy.circuit_breaker.threshold_percent"},
		{Source{Breaker: raw(`{"threshold_percent": 0.5}`)}, "proxy.circuit_breaker.samples"},
		{Source{Uptime: raw(`{"check_list": [{"url": "http://a", "protocol": "tcp"}]}`)}, "uptime_tests.check_list[0].protocol"},
		{Source{Uptime: raw(`{"check_list": [{"url": "http://a", "commands": [{}]}]}`)}, "uptime_tests.check_list[0]"},
		{Source{Uptime: raw(`{"check_list": [{"url": "http://a", "body": "?"}]}`)}, "uptime_tests.check_list[0].body"},
		{Source{Uptime: raw(`{"check_list": [{"url": "http://a", "timeout": "x"}]}`)}, "uptime_tests.check_list[0].timeout"},
		{Source{Uptime: raw(`{"config": {"service_discovery": {"use_discovery_service": true}}}`)}, "uptime_tests.config.service_discovery.use_discovery_service"},
	} {
		if _, faults := Read(c.source); len(faults) != 1 || faults[0].Path != c.path || faults[0].Message == "" {
			t.Errorf("%+v: %v, want one at %s", c.source, faults, c.path)
		}
	}
	for _, c := range []struct{ extended, path string }{
		{`{"circuit_breakers": [{"path": "/a", "threshold_percent": 2, "samples": 1}]}`, "circuit_breakers[0].threshold_percent"},
		{`{"circuit_breakers": [{"path": "(", "threshold_percent": 1, "samples": 1}]}`, "circuit_breakers[0].path"},
		{`{"circuit_breakers": {}}`, "circuit_breakers"},
		{`{"hard_timeouts": [{"path": "/a"}]}`, "hard_timeouts[0].timeout"},
		{`{"hard_timeouts": [{"path": "/a", "timeout": 1, "method": "get"}]}`, "hard_timeouts[0].method"},
	} {
		if _, faults := ReadCalls(raw(c.extended)); len(faults) != 1 || faults[0].Path != c.path {
			t.Errorf("%s: %v, want one at %s", c.extended, faults, c.path)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`["http://a", {"url": "http://b", "weight": 2}]`))
	f.Add([]byte(`{"path": "/", "interval": 1e300, "check_list": [5], "threshold_percent": 1}`))
	f.Add([]byte(`{"circuit_breakers": [{"path": "/"}], "hard_timeouts": [null]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if object.Check(b, 1<<20) != nil {
			return
		}
		var compact json.RawMessage // as definitions hand it on
		if json.Unmarshal(b, &compact) != nil {
			return
		}
		rules, faults := Read(Source{Balance: true, Targets: compact, Ejection: compact, HealthCheck: compact, Breaker: compact, Uptime: compact})
		ReadCalls(compact)
		for _, target := range rules.Targets {
			if target.Weight < 1 && len(faults) == 0 {
				t.Errorf("weight %d", target.Weight)
			}
		}
	})
}
