package definition

import (
	"slices"
	"strings"
	"testing"
)

func TestWhatIsWrongWithCallsIsToldWithItsPath(t *testing.T) {
	proxy := func(more string) string {
		return `"proxy": {"listen_path": "/a", "target_url": "http://b", ` + more + `}`
	}
	extended := func(on, lists string) string {
		return `"version_data": {"not_versioned": true, "versions": {"v": {"use_extended_paths": ` + on + `, "extended_paths": {` + lists + `}}}}`
	}
	const at = `version_data.versions["v"].extended_paths.`
	for _, c := range []struct {
		body  string
		paths []string
	}{
		{proxy(`"enable_load_balancing": true`), []string{"proxy.target_list"}},
		{proxy(`"enable_load_balancing": true, "target_list": ["http://a", {"url": "ftp://b", "weight": 2000}]`), []string{"proxy.target_list[1].weight", "proxy.target_list[1].url"}},
		{proxy(`"enable_load_balancing": true, "target_list": ["a:80"]`), []string{"proxy.target_list[0]"}},
		{proxy(`"target_list": ["not looked at"], "health_check": {"path": "health"}`), []string{"proxy.health_check.path"}},
		{proxy(`"circuit_breaker": {"threshold_percent": 50}`), []string{"proxy.circuit_breaker.threshold_percent", "proxy.circuit_breaker.samples"}},
		{`"uptime_tests": {"check_list": ["http://a", {"url": "b"}]}`, []string{"uptime_tests.check_list[1].url"}},
		{`"uptime_tests": []`, []string{"uptime_tests"}},
		{extended("true", `"hard_timeouts": [{"path": "/", "timeout": -1}], "cache": [""]`), []string{at + "hard_timeouts[0].timeout", at + "cache[0]"}},
		{extended("false", `"hard_timeouts": [{"path": "/", "timeout": -1}]`), nil},
		{`"cache_options": {"enable_cache": true, "cache_timeout": -1}`, []string{"cache_options.cache_timeout"}},
		{`"cache_options": 5`, []string{"cache_options"}},
		{
			`"cache_options": {"enable_cache": true}, "graphql": {"enabled": true, "schema": "type Query { a: Int }", "execution_mode": "proxyOnly"}`,
			[]string{"cache_options.enable_cache"},
		},
		{`"cache_options": {"enable_cache": false}, "graphql": {"enabled": true, "schema": "type Query { a: Int }", "execution_mode": "proxyOnly"}`, nil},
	} {
		data := "{" + c.body + "}"
		if !strings.Contains(c.body, `"proxy"`) {
			data = `{"proxy": {"listen_path": "/a", "target_url": "http://b"}, ` + c.body + "}"
		}
		var paths []string
		for _, problem := range problemsOf(t, "api", data) {
			path, _, _ := strings.Cut(problem, ": ")
			paths = append(paths, path)
		}
		if !slices.Equal(paths, c.paths) {
			t.Errorf("%s\n got %q\nwant %q", data, paths, c.paths)
		}
	}
}
