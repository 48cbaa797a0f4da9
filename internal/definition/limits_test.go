package definition

import "testing"

func TestLimitsThatCannotBeKeptAreRefusedByTheirPath(t *testing.T) {
	const proxy = `"proxy": {"listen_path": "/a", "target_url": "http://b"}, `
	version := func(body string) string {
		return `{` + proxy + `"version_data": {"not_versioned": true, "versions": {"v": {` + body + `}}}}`
	}
	for _, c := range []struct{ kind, data, want string }{
		{"api", `{` + proxy + `"global_rate_limit": {"rate": 5, "per": 1}}`, ""},
		{"api", `{` + proxy + `"global_rate_limit": {"rate": 1.5, "per": 1}}`, "global_rate_limit.rate: must be a whole number of calls; half a call per second is a rate of 1 per 2 seconds"},
		{"api", `{` + proxy + `"global_rate_limit": {"rate": 1.5, "per": 1, "disabled": true}}`, ""},
		{"api", version(`"use_extended_paths": true, "extended_paths": {"rate_limit": [{"path": "/a", "method": "GET", "rate": 5, "per": 1}]}`), ""},
		{"api", version(`"use_extended_paths": true, "extended_paths": {"rate_limit": [{"path": "", "rate": 5, "per": 1}]}`), `version_data.versions["v"].extended_paths.rate_limit[0].path: is empty; "/" matches every path`},
		{"api", version(`"extended_paths": {"rate_limit": [{"path": "", "rate": 5, "per": 1}]}`), ""},

		{"policy", `{"quota_max": 5, "quota_renewal_calendar": "month", "quota_renewal_zone": "Europe/Vienna"}`, ""},
		{"policy", `{"quota_renewal_calendar": "fortnight"}`, `quota_renewal_calendar: must be "hour", "day", "week" or "month", or be left out`},
		{"policy", `{"quota_renewal_calendar": "day", "quota_renewal_zone": "Mars"}`, "quota_renewal_zone: must be the name of a time zone, such as Europe/Vienna or UTC"},
		{"policy", `{"enforcement": "measure"}`, ""},
		{"policy", `{"enforcement": "off"}`, `enforcement: must be "enforce" or "measure", or be left out`},
		{"policy", `{"throttle_interval": 0.5, "throttle_retry_limit": 3}`, ""},
		{"policy", `{"throttle_interval": 3601}`, "throttle_interval: must be at most 3600 seconds; the client waits for so long"},
		{"policy", `{"throttle_retry_limit": 1001}`, "throttle_retry_limit: must be at most 1000"},

		{"session", `{"monitor": {"trigger_limits": [50, 80.5, 100]}}`, ""},
		{"session", `{"monitor": {"trigger_limits": [50, 0]}}`, "monitor.trigger_limits[1]: must be a percentage of the quota, above 0 and at most 100"},
		{"session", `{"monitor": {"trigger_limits": [101]}}`, "monitor.trigger_limits[0]: must be a percentage of the quota, above 0 and at most 100"},
		{"session", `{"access_rights": {"a": {"limit": {"quota_renewal_calendar": "x"}}}}`, `access_rights["a"].limit.quota_renewal_calendar: must be "hour", "day", "week" or "month", or be left out`},
		{"session", `{"access_rights": {"a": {"endpoints": [{"path": "/b", "methods": [{"name": "GET", "limit": {"rate": 1, "per": 1}}]}]}}}`, ""},
		{"session", `{"access_rights": {"a": {"endpoints": [{"path": "", "methods": []}]}}}`, `access_rights["a"].endpoints[0].path: is empty; "/" matches every path`},
		{"session", `{"access_rights": {"a": {"endpoints": [{"path": "/b", "methods": [{"name": "get", "limit": {"rate": 1, "per": 1}}]}]}}}`, `access_rights["a"].endpoints[0].methods[0].name: must be GET: methods are compared as they are written`},
		{"session", `{"access_rights": {"a": {"endpoints": [{"path": "/b", "methods": [{"name": "GET", "limit": {"rate": 0.5, "per": 1}}]}]}}}`, `access_rights["a"].endpoints[0].methods[0].limit.rate: must be a whole number of calls; half a call per second is a rate of 1 per 2 seconds`},
	} {
		got := problemsOf(t, c.kind, c.data)
		if len(got) > 1 || len(got) == 1 && got[0] != c.want || len(got) == 0 && c.want != "" {
			t.Errorf("%s\n got %q\nwant %q", c.data, got, c.want)
		}
	}
}

// A policy that measures refuses nothing; one that says nothing enforces.
func TestPoliciesEnforceUnlessTheyMeasure(t *testing.T) {
	for enforcement, measures := range map[string]bool{"": false, "enforce": false, "measure": true} {
		p := Policy{Enforcement: enforcement}
		if p.ReportOnly() != measures {
			t.Errorf("%q measures: %v", enforcement, p.ReportOnly())
		}
	}
}
