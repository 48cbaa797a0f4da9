package definition

import (
	"reflect"
	"testing"
	"time"
)

func TestCacheOptionsHaveDefaults(t *testing.T) {
	for _, raw := range []string{``, `null`, `{"cache_timeout": 5}`, `{"enable_cache": false, "cache_timeout": -5}`} {
		if got, faults := checked(raw, (*CacheOptions).check); len(faults) > 0 || got.On() {
			t.Errorf("%s: %+v %v", raw, got, faults)
		}
	}
	got, faults := checked(`{"enable_cache": true}`, (*CacheOptions).check)
	if len(faults) > 0 || !got.On() || got.Lifetime() != time.Minute || got.LifetimeHeader() != "X-Svc-Cache-Action-Set-Ttl" {
		t.Errorf("%+v %v", got, faults)
	}
	got, faults = checked(`{"enable_cache": true, "cache_timeout": 5, "cache_control_ttl_header": "X-Ttl", "cache_by_headers": ["Accept"]}`, (*CacheOptions).check)
	if len(faults) > 0 || got.Lifetime() != 5*time.Second || got.LifetimeHeader() != "X-Ttl" {
		t.Errorf("%+v %v", got, faults)
	}
}

func TestCacheRulesComeFromBothLists(t *testing.T) {
	v, faults := readExtended(`{"cache": ["/a"], "advance_cache_config": [
		{"path": "/b", "method": "GET", "timeout": 7, "cache_response_codes": [404]}, {"path": "(", "disabled": true}]}`)
	got := v.CacheRules()
	want := []CacheRule{{Path: "/b", Method: "GET", Lifetime: 7 * time.Second, Codes: []int{404}}, {Path: "/a"}}
	if len(faults) > 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v %v", got, faults)
	}
}

func TestFaultsOfCachingHaveTheirPath(t *testing.T) {
	for _, c := range []struct{ raw, path string }{
		{`{"enable_cache": "yes"}`, "enable_cache"},
		{`{"enable_cache": true, "cache_timeout": -1}`, "cache_timeout"},
		{`{"enable_cache": true, "cache_response_codes": [206]}`, "cache_response_codes[0]"},
		{`{"enable_cache": true, "cache_response_codes": [200, 20]}`, "cache_response_codes[1]"},
		{`{"enable_cache": true, "cache_control_ttl_header": "a b"}`, "cache_control_ttl_header"},
		{`{"enable_cache": true, "cache_by_headers": [""]}`, "cache_by_headers[0]"},
	} {
		if _, faults := checked(c.raw, (*CacheOptions).check); len(faults) != 1 || faults[0].Path != c.path {
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
		if _, faults := readExtended(c.raw); len(faults) != 1 || faults[0].Path != c.path {
			t.Errorf("%s: %v, want one at %s", c.raw, faults, c.path)
		}
	}
}
