package definition

import (
	"fmt"
	"strings"
	"testing"
)

func TestMissingFeaturesAreRefusedByName(t *testing.T) {
	version := func(body string) string {
		return `"version_data": {"not_versioned": true, "versions": {"v": {` + body + `}}}`
	}
	const at = `version_data.versions["v"].`
	graph := func(mode, more string) string {
		return `"graphql": {"enabled": true, "schema": "type Query { a: Int }", "execution_mode": ` + mode + more + `}`
	}
	asked := make(map[string]bool)
	for _, c := range []struct{ kind, body, path, name string }{
		{"api", `"use_basic_auth": true, "auth_configs": {"basic": {"use_cookie": true}}`, "auth_configs.basic", "basic authentication elsewhere than in a header"},
		{"api", `"enable_signature_checking": true`, "enable_signature_checking", "HMAC request signatures"},
		{"api", graph(`"executionEngine"`, ``), "graphql.execution_mode", "GraphQL data graphs"},
		{"api", graph(`"subgraph"`, ``), "graphql.execution_mode", "GraphQL subgraphs"},
		{"api", graph(`"supergraph"`, ``), "graphql.execution_mode", "GraphQL supergraphs"},
		{"api", graph(`"proxyOnly"`, `, "playground": {"enabled": true, "path": "/play"}`), "graphql.playground.enabled", "GraphQL playground"},
		{"api", `"cache_options": {"enable_cache": true}, ` + graph(`"proxyOnly"`, ``), "cache_options.enable_cache", "response cache of GraphQL APIs"},
		{"api", `"x-svc-streaming": {"streams": {"a": {}}}`, "x-svc-streaming.streams", "event streams"},
		{"api", `"auth": {"validate_signature": true}`, "auth.validate_signature", "request signatures"},
		{"api", version(`"extended_paths": {"track_endpoints": [{"path": "/a"}]}`), at + "extended_paths.track_endpoints", "path rules (track_endpoints)"},
		{"api", version(`"extended_paths": {"new": {"a": 1}}`), at + "extended_paths.new", "path rules (new)"},

		{"policy", `"hmac_enabled": true`, "hmac_enabled", "HMAC request signatures"},
		{"policy", `"enable_http_signature_validation": true`, "enable_http_signature_validation", "HTTP message signatures"},
		{"policy", `"smoothing": {"enabled": true}`, "smoothing.enabled", "rate limit smoothing"},
		{"policy", `"post_expiry_action": "delete"`, "post_expiry_action", "deletion of expired keys"},
		{"policy", `"meta_data": {"rate_limit_pattern": "a"}`, "meta_data.rate_limit_pattern", "custom counters"},

		{"session", `"hmac_enabled": true`, "hmac_enabled", "HMAC request signatures"},
		{"session", `"oauth_keys": {"a": "b"}`, "oauth_keys", "tokens of OAuth clients in a key"},
		{"session", `"smoothing": {"enabled": true}`, "smoothing.enabled", "rate limit smoothing"},
		{"session", `"session_lifetime": 5`, "session_lifetime", "removal of keys after a time; use expires"},
		{"session", `"post_expiry_action": "delete"`, "post_expiry_action", "deletion of expired keys"},
		{"session", `"meta_data": {"rate_limit_pattern": "a"}`, "meta_data.rate_limit_pattern", "custom counters"},
	} {
		data := "{" + c.body + "}"
		if c.kind == "api" && !strings.Contains(c.body, `"proxy"`) {
			data = `{"proxy": {"listen_path": "/a", "target_url": "http://b"}, ` + c.body + "}"
		}
		want := fmt.Sprintf("%s: asks for a feature that this release does not have: %s; leave it out or turn it off", c.path, c.name)
		if got := problemsOf(t, c.kind, data); len(got) != 1 || got[0] != want {
			t.Errorf("%s\n got %q\nwant %q", data, got, want)
		}
		asked[c.name] = true
	}
	for _, name := range featureNames() {
		if !asked[name] {
			t.Errorf("no case asks for %q", name)
		}
	}
}

func featureNames() []string {
	var names []string
	names = appendNames(names, missing)
	names = appendNames(names, missingTokens)
	names = appendNames(names, missingPolicies)
	names = appendNames(names, missingSessions)
	return appendNames(names, missingExtras)
}

func appendNames[T any](names []string, features []feature[T]) []string {
	for _, f := range features {
		names = append(names, f.name)
	}
	return names
}

func TestFeaturesThatAreOffAreAccepted(t *testing.T) {
	for _, body := range []string{
		`"graphql": {"enabled": false, "schema": "type Query {a: Int}", "execution_mode": "proxyOnly"}`,
		`"graphql": null`,
		`"graphql": {"enabled": false, "execution_mode": "executionEngine", "playground": {"enabled": true}}`,
		`"graphql": {"enabled": true, "schema": "type Query {a: Int}", "execution_mode": "proxyOnly", "playground": {"enabled": false, "path": "/p"}}`,
		`"x-svc-streaming": {}`,
		`"CORS": {"enable": false, "allowed_origins": ["*"]}`,
		`"global_rate_limit": {"rate": 5, "per": 1, "disabled": true}`,
		`"global_rate_limit": {"rate": 0, "per": 0}`,
		`"allowed_ips": ["10.0.0.1"]`,
		`"client_certificates": ["a.pem"]`,
		`"enable_context_vars": true`,
		`"use_standard_auth": true`,
		`"auth_configs": {"basic": {"disable_header": true, "use_cookie": true}}`,
		`"use_keyless": true, "auth": {"use_param": true, "disable_header": true}`,
		`"version_data": {"not_versioned": false, "versions": {}}`,
		`"version_data": {"not_versioned": true, "versions": {"v": {"expires": "-1", "global_headers": {"a": "b"}, "global_headers_disabled": true}}}`,
		`"version_data": {"not_versioned": true, "versions": {"v": {"extended_paths": {"white_list": [], "new": {}, "ignored": [{"path": "/a", "disabled": true}]}}}}`,
		`"enable_new_thing": true, "new_thing": {"enabled": true}`,
	} {
		data := `{"proxy": {"listen_path": "/a", "target_url": "http://b", "target_list": ["http://c"]}, ` + body + "}"
		if got := problemsOf(t, "api", data); got != nil {
			t.Errorf("%s: %q", body, got)
		}
	}
}
