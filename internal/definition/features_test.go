package definition

import (
	"fmt"
	"os"
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
		{"api", graph(`"proxyOnly"`, `, "engine": {"data_sources": [{"kind": "REST"}]}`), "graphql.engine.data_sources", "GraphQL data sources beside proxyOnly"},
		{"api", `"cache_options": {"enable_cache": true}, ` + graph(`"proxyOnly"`, ``), "cache_options.enable_cache", "response cache of GraphQL APIs"},
		{"api", `"cache_options": {"enable_cache": true}, "x-svc-streaming": {"streams": {"a": {"input": {"http_server": {}}, "output": {"http_server": {}}}}}`, "cache_options.enable_cache", "response cache of event streams"},
		{"api", `"auth": {"validate_signature": true}`, "auth.validate_signature", "request signatures"},
		{"api", version(`"extended_paths": {"virtual": [{"path": "/a"}]}`), at + "extended_paths.virtual", "path rules (virtual)"},
		{"api", version(`"extended_paths": {"new": {"a": 1}}`), at + "extended_paths.new", "path rules (new)"},

		{"policy", `"hmac_enabled": true`, "hmac_enabled", "HMAC request signatures"},
		{"policy", `"enable_http_signature_validation": true`, "enable_http_signature_validation", "HTTP message signatures"},
		{"policy", `"smoothing": {"enabled": true}`, "smoothing.enabled", "rate limit smoothing"},
		{"policy", `"post_expiry_action": "delete"`, "post_expiry_action", "deletion of expired keys"},
		{"policy", `"meta_data": {"rate_limit_pattern": "a"}`, "meta_data.rate_limit_pattern", "custom counters"},

		{"policy", `"access_rights": {"a": {"limit": {"smoothing": {"enabled": true}}}}`, `access_rights["a"].limit.smoothing.enabled`, "rate limit smoothing"},

		{"session", `"enable_http_signature_validation": true`, "enable_http_signature_validation", "HTTP message signatures"},
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
	names = appendNames(names, missingLimits)
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

// Members without a field ask for features too: each is refused with its path, the reason
// and the remedy, and accepted when it is off.
func TestMembersOfMissingFeaturesAreRefused(t *testing.T) {
	cases := map[string]struct{ on, off []string }{
		"use_openid":                 {on: []string{`"use_openid": true`}},
		"enable_coprocess_auth":      {on: []string{`"enable_coprocess_auth": true`}},
		"use_go_plugin_auth":         {on: []string{`"use_go_plugin_auth": true`, `"use_keyless": true, "use_go_plugin_auth": true`}},
		"custom_plugin_auth_enabled": {on: []string{`"custom_plugin_auth_enabled": true`}},
		"external_oauth.enabled":     {on: []string{`"external_oauth": {"enabled": true, "providers": []}`}, off: []string{`"external_oauth": {"enabled": false, "providers": [{"jwt": {"enabled": true}}]}`}},
		"custom_middleware.auth_check": {
			on:  []string{`"custom_middleware": {"auth_check": {"name": "check", "path": "", "require_session": false}}`, `"use_keyless": true, "custom_middleware": {"auth_check": {"path": "a.js"}, "driver": "otto"}`},
			off: []string{`"custom_middleware": {"auth_check": {"name": "", "path": "", "require_session": false, "raw_body_only": false}, "driver": "grpc"}`, `"custom_middleware": {"auth_check": {"disabled": true, "name": "check"}}`},
		},
		"custom_middleware.pre":           {on: []string{`"custom_middleware": {"pre": [{"name": "a"}]}`}, off: []string{`"custom_middleware": {"pre": [{"disabled": true, "name": "a"}]}`, `"custom_middleware": {"pre": null, "driver": "otto"}`}},
		"custom_middleware.post":          {on: []string{`"custom_middleware": {"post": [{"name": "a"}]}`}},
		"custom_middleware.post_key_auth": {on: []string{`"custom_middleware": {"post_key_auth": [{"name": "a"}]}`}},
		"custom_middleware.response":      {on: []string{`"custom_middleware": {"response": [{"name": "a"}]}`}},
		"custom_middleware_bundle":        {on: []string{`"custom_middleware_bundle": "b.zip"`}, off: []string{`"custom_middleware_bundle": "b.zip", "custom_middleware_bundle_disabled": true`}},
		"auth_provider.storage_engine":    {on: []string{`"auth_provider": {"storage_engine": "ldap"}`}, off: []string{`"auth_provider": {"name": "default", "storage_engine": "redis", "meta": {}}`}},
		"scopes.jwt":                      {on: []string{`"scopes": {"jwt": {"scope_to_policy": {"a": "p"}}}`}, off: []string{`"scopes": {"jwt": {}, "oidc": {"scope_to_policy": {}}}`}},
		"scopes.oidc":                     {on: []string{`"scopes": {"oidc": {"scope_to_policy": {"a": "p"}}}`}},
		"security_requirements":           {on: []string{`"security_requirements": [["a"], ["b"]]`}},
		"session_lifetime":                {on: []string{`"session_lifetime": 60`}, off: []string{`"session_lifetime": 0.0`}},
		"expiration":                      {on: []string{`"expiration": "2030-01-01 00:00"`}},
		"is_oas":                          {on: []string{`"is_oas": true`}},
		"listen_port":                     {on: []string{`"listen_port": 9000`}},
		"protocol":                        {on: []string{`"protocol": "tcp"`}, off: []string{`"protocol": "http"`}},
		"enable_proxy_protocol":           {on: []string{`"enable_proxy_protocol": true`}},
		"domain_disabled":                 {on: []string{`"domain": "a.example", "domain_disabled": true`}, off: []string{`"domain_disabled": true`}},
		"ip_access_control_disabled": {
			on: []string{`"enable_ip_whitelisting": true, "allowed_ips": ["10.0.0.1"], "ip_access_control_disabled": true`}, off: []string{`"ip_access_control_disabled": true`},
		},
		"proxy.service_discovery.use_discovery_service": {on: []string{`"service_discovery": {"use_discovery_service": true}`}, off: []string{`"service_discovery": {"use_discovery_service": false, "query_endpoint": "http://c"}`}},
		"proxy.transport.proxy_url":                     {on: []string{`"transport": {"proxy_url": "http://p"}`}, off: []string{`"transport": {"proxy_url": ""}`}},
		"upstream_auth.enabled":                         {on: []string{`"upstream_auth": {"enabled": true, "basic_auth": {"enabled": true}}`}, off: []string{`"upstream_auth": {"enabled": false, "basic_auth": {"enabled": true}}`}},
		"pinned_public_keys":                            {on: []string{`"pinned_public_keys": {"*": "a"}`}, off: []string{`"pinned_public_keys": {"*": "a"}, "certificate_pinning_disabled": true`, `"pinned_public_keys": {"*": ""}`}},
		"request_signing.is_enabled":                    {on: []string{`"request_signing": {"is_enabled": true}`}, off: []string{`"request_signing": {"is_enabled": false, "secret": "s"}`}},
		"enable_batch_request_support":                  {on: []string{`"enable_batch_request_support": true`}},
		"upstream_certificates_disabled":                {on: []string{`"upstream_certificates": {"*": "c"}, "upstream_certificates_disabled": true`}, off: []string{`"upstream_certificates_disabled": true`}},
		"response_processors":                           {on: []string{`"response_processors": [{"name": "header_injector", "options": {}}]`}, off: []string{`"response_processors": []`, `"response_processors": null`}},
	}
	definition := func(path, body string) string {
		inProxy, more := "", ", "+body
		if strings.HasPrefix(path, "proxy.") {
			inProxy, more = more, ""
		}
		return `{"proxy": {"listen_path": "/a", "target_url": "http://b"` + inProxy + "}" + more + "}"
	}
	for i := range missingMembers {
		m := &missingMembers[i]
		c, known := cases[m.path]
		if !known {
			t.Errorf("no case asks for %s", m.path)
		}
		want := m.path + ": asks for a feature that this release does not have: " + m.name + "; " + m.remedy
		for _, on := range c.on {
			if got := problemsOf(t, "api", definition(m.path, on)); len(got) != 1 || got[0] != want {
				t.Errorf("%s\n got %q\nwant %q", on, got, want)
			}
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(m.path, "proxy."), "transport."), ".")
		off := append(c.off, `"`+name+`": null`, `"`+name+`": false`, `"`+name+`": {}`, `"`+name+`": []`, `"`+name+`": ""`, `"`+name+`": 0`)
		if strings.HasPrefix(m.path, "proxy.transport.") {
			off = c.off
		}
		for _, body := range off {
			if got := problemsOf(t, "api", definition(m.path, body)); got != nil {
				t.Errorf("%s: %q", body, got)
			}
		}
	}
}

// An export of a comparable gateway holds every member, with its default. It is accepted.
func TestDefaultsOfTheClassicFormatAreAccepted(t *testing.T) {
	data, err := os.ReadFile("testdata/classic.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := problemsOf(t, "api", string(data)); got != nil {
		t.Errorf("%q", got)
	}
}
