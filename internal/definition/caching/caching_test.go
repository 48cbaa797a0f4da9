package caching

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

func TestOptionsAreCompletedWithDefaults(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want *Options
	}{
		{``, nil},
		{`null`, nil},
		{`{"cache_timeout": 5}`, nil},
		{`{"enable_cache": false, "cache_timeout": -5}`, nil},
		{`{"enable_cache": true}`, &Options{Lifetime: time.Minute, TTLHeader: "X-Svc-Cache-Action-Set-Ttl"}},
		{
			`{"enable_cache": true, "cache_timeout": 5, "cache_all_safe_requests": true, "cache_response_codes": [200, 404], "enable_upstream_cache_control": true, "cache_control_ttl_header": "X-Ttl", "cache_by_headers": ["Accept"], "shared": true}`,
			&Options{Lifetime: 5 * time.Second, AllSafe: true, Codes: []int{200, 404}, Upstream: true, TTLHeader: "X-Ttl", ByHeaders: []string{"Accept"}, Shared: true},
		},
	} {
		got, faults := Parse(json.RawMessage(c.raw))
		if len(faults) > 0 || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s\n got %+v %v\nwant %+v", c.raw, got, faults, c.want)
		}
	}
}

func TestRulesComeFromBothLists(t *testing.T) {
	got, faults := ParseRules(json.RawMessage(`{"cache": ["/a"], "advance_cache_config": [
		{"path": "/b", "method": "GET", "timeout": 7, "cache_response_codes": [404]}, {"path": "(", "disabled": true}]}`))
	want := []Rule{{Path: "/b", Method: "GET", Lifetime: 7 * time.Second, Codes: []int{404}}, {Path: "/a"}}
	if len(faults) > 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v %v", got, faults)
	}
}

func TestWhatIsWrongIsToldWithItsPath(t *testing.T) {
	for _, c := range []struct{ raw, path string }{
		{`{"enable_cache": "yes"}`, "enable_cache"},
		{`{"enable_cache": true, "cache_timeout": -1}`, "cache_timeout"},
		{`{"enable_cache": true, "cache_response_codes": [206]}`, "cache_response_codes[0]"},
		{`{"enable_cache": true, "cache_response_codes": [200, 20]}`, "cache_response_codes[1]"},
		{`{"enable_cache": true, "cache_control_ttl_header": "a b"}`, "cache_control_ttl_header"},
		{`{"enable_cache": true, "cache_by_headers": [""]}`, "cache_by_headers[0]"},
	} {
		if _, faults := Parse(json.RawMessage(c.raw)); len(faults) != 1 || faults[0].Path != c.path {
			t.Errorf("%s: %v, want one at %s", c.raw, faults, c.path)
		}
	}
	for _, c := range []struct{ raw, path string }{
		{`{"cache": ["("]}`, "cache[0]"},
		{`{"cache": [5]}`, "cache[0]"},
		{`{"advance_cache_config": [{"path": "/a", "method": "POST"}]}`, "advance_cache_config[0].method"},
		{`{"advance_cache_config": [{"path": "/a", "cache_key_regex": "x"}]}`, "advance_cache_config[0].cache_key_regex"},
		{`{"advance_cache_config": [{"path": "/a", "timeout": -1}]}`, "advance_cache_config[0].timeout"},
	} {
		if _, faults := ParseRules(json.RawMessage(c.raw)); len(faults) != 1 || faults[0].Path != c.path {
			t.Errorf("%s: %v, want one at %s", c.raw, faults, c.path)
		}
	}
}
