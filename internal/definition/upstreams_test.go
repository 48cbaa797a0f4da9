package definition

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition/object"
)

func TestTargetsHaveWeightsInEitherForm(t *testing.T) {
	for _, c := range []struct {
		list string
		want []WeightedTarget
	}{
		{`["http://a", "http://b"]`, []WeightedTarget{{"http://a", 1, "proxy.target_list[0]"}, {"http://b", 1, "proxy.target_list[1]"}}},
		{`["http://a", "http://b", "http://a"]`, []WeightedTarget{{"http://a", 2, "proxy.target_list[0]"}, {"http://b", 1, "proxy.target_list[1]"}}},
		{
			`[{"url": "http://a", "weight": 3}, {"url": "http://b"}, "http://a"]`,
			[]WeightedTarget{{"http://a", 4, "proxy.target_list[0].url"}, {"http://b", 1, "proxy.target_list[1].url"}},
		},
	} {
		rules, faults := readUpstreams(t, `{"proxy": {"enable_load_balancing": true, "target_list": `+c.list+`}}`)
		if len(faults) > 0 || !reflect.DeepEqual(rules.Targets, c.want) {
			t.Errorf("%s\n got %+v %v\nwant %+v", c.list, rules.Targets, faults, c.want)
		}
	}
	if rules, faults := readUpstreams(t, `{"proxy": {"target_list": ["http://a"]}}`); len(faults) > 0 || rules.Targets != nil || rules.Ejection != nil {
		t.Errorf("targets count although balancing is off: %+v %v", rules, faults)
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	rules, faults := readUpstreams(t, `{"proxy": {"enable_load_balancing": true, "target_list": ["http://a"], "health_check": {"path": "/health"}, "circuit_breaker": {"threshold_percent": 0.5, "samples": 10}}, "uptime_tests": {"check_list": ["http://c/up", {"url": "http://d", "timeout": 500000000}, {"url": "http://e", "timeout": "3s", "body": "aGk=", "method": "POST"}]}}`)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if want := (EjectionRule{Failures: 5, For: 10 * time.Second, Longest: 5 * time.Minute}); *rules.Ejection != want {
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
	rules, faults := readUpstreams(t, `{"proxy": {"enable_load_balancing": true, "target_list": ["http://a"], "ejection": {"disabled": true}, "health_check": {"disabled": true}, "circuit_breaker": {"disabled": true}}, "uptime_tests": {"disabled": true, "check_list": [{"url": ""}]}}`)
	if len(faults) > 0 || rules.Ejection != nil || rules.Check != nil || rules.Breaker != nil {
		t.Errorf("%+v %v", rules, faults)
	}
	v, faults := readExtended(`{"circuit_breakers": [{"path": "(", "disabled": true}], "hard_timeouts": [{"path": "", "disabled": true}], "other": 1}`)
	if len(faults) > 0 || len(v.Breakers()) > 0 || len(v.Timeouts()) > 0 {
		t.Errorf("%+v %v", v, faults)
	}
}

func TestCallsAreReadFromExtendedPaths(t *testing.T) {
	v, faults := readExtended(`{
		"circuit_breakers": [{"path": "/a/{id}", "method": "GET", "threshold_percent": 0.25, "samples": 8, "return_to_service_after": 30, "disable_half_open_state": true}],
		"hard_timeouts": [{"path": "/slow", "method": "POST", "timeout": 3, "ignore_case": true}]}`)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	wantBreaker := BreakerRule{PathMatch{Path: "/a/{id}", Method: "GET"}, Breaker{Share: 0.25, Samples: 8, Return: 30 * time.Second}}
	wantLimit := TimeoutRule{PathMatch{Path: "/slow", Method: "POST", IgnoreCase: true}, 3 * time.Second}
	if !slices.Equal(v.Breakers(), []BreakerRule{wantBreaker}) || !slices.Equal(v.Timeouts(), []TimeoutRule{wantLimit}) {
		t.Errorf("%+v", v.ExtendedPaths)
	}
}

func TestFaultsOfUpstreamsHaveTheirPath(t *testing.T) {
	for _, c := range []struct {
		source string
		path   string
	}{
		{`{"proxy": {"enable_load_balancing": true}}`, "proxy.target_list"},
		{`{"proxy": {"enable_load_balancing": true, "target_list": []}}`, "proxy.target_list"},
		{`{"proxy": {"enable_load_balancing": true, "target_list": {}}}`, "proxy.target_list"},
		{`{"proxy": {"enable_load_balancing": true, "target_list": ["http://a", 5]}}`, "proxy.target_list[1]"},
		{`{"proxy": {"enable_load_balancing": true, "target_list": [{"url": "http://a", "weight": -1}]}}`, "proxy.target_list[0].weight"},
		{`{"proxy": {"enable_load_balancing": true, "target_list": [{"url": "http://a", "weight": "1"}]}}`, "proxy.target_list[0].weight"},
		{`{"proxy": {"enable_load_balancing": true, "target_list": ["http://a"], "ejection": {"failures": -1}}}`, "proxy.ejection.failures"},
		{`{"proxy": {"enable_load_balancing": true, "target_list": ["http://a"], "ejection": {"seconds": 20, "longest": 10}}}`, "proxy.ejection.longest"},
		{`{"proxy": {"enable_load_balancing": true, "target_list": ["http://a"], "ejection": 5}}`, "proxy.ejection"},
		{`{"proxy": {"health_check": {}}}`, "proxy.health_check.path"},
		{`{"proxy": {"health_check": {"path": "http://a/b"}}}`, "proxy.health_check.path"},
		{`{"proxy": {"health_check": {"path": "/", "interval": 1, "timeout": 2}}}`, "proxy.health_check.timeout"},
		{`{"proxy": {"health_check": {"path": "/", "expected": [20]}}}`, "proxy.health_check.expected[0]"},
		{`{"proxy": {"health_check": {"path": "/", "headers": {"A": "b\r\nc"}}}}`, `proxy.health_check.headers["A"]`},
		{`{"proxy": {"health_check": {"path": "/", "method": "get"}}}`, "proxy.health_check.method"},
		{`{"proxy": {"circuit_breaker": {"samples": 5}}}`, "proxy.circuit_breaker.threshold_percent"},
		{`{"proxy": {"circuit_breaker": {"threshold_percent": 50, "samples": 5}}}`, "proxy.circuit_breaker.threshold_percent"},
		{`{"proxy": {"circuit_breaker": {"threshold_percent": 0.5}}}`, "proxy.circuit_breaker.samples"},
		{`{"uptime_tests": {"check_list": [{"url": "http://a", "protocol": "tcp"}]}}`, "uptime_tests.check_list[0].protocol"},
		{`{"uptime_tests": {"check_list": [{"url": "http://a", "commands": [{}]}]}}`, "uptime_tests.check_list[0]"},
		{`{"uptime_tests": {"check_list": [{"url": "http://a", "body": "?"}]}}`, "uptime_tests.check_list[0].body"},
		{`{"uptime_tests": {"check_list": [{"url": "http://a", "timeout": "x"}]}}`, "uptime_tests.check_list[0].timeout"},
		{`{"uptime_tests": {"config": {"service_discovery": {"use_discovery_service": true}}}}`, "uptime_tests.config.service_discovery.use_discovery_service"},
	} {
		if _, faults := readUpstreams(t, c.source); len(faults) != 1 || faults[0].Path != c.path || faults[0].Message == "" {
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
		if _, faults := readExtended(c.extended); len(faults) != 1 || faults[0].Path != c.path {
			t.Errorf("%s: %v, want one at %s", c.extended, faults, c.path)
		}
	}
}

func FuzzUpstreams(f *testing.F) {
	f.Add([]byte(`{"proxy": {"enable_load_balancing": true, "target_list": ["http://a", {"url": "http://b", "weight": 2}]}}`))
	f.Add([]byte(`{"uptime_tests": {"check_list": [{"interval": 1e300, "timeout": 5}, "x"]}, "proxy": {"health_check": {"path": "/"}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if object.Check(b, 1<<20) != nil {
			return
		}
		rules, faults := readUpstreams(t, string(b))
		for _, target := range rules.Targets {
			if target.Weight < 1 && len(faults) == 0 {
				t.Errorf("weight %d", target.Weight)
			}
		}
	})
}
