package classicimport

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/declarative"
	"github.com/sluicegate/sluice/internal/definition"
)

func theAPI(t *testing.T, text string, o Options) (*Report, *Entry) {
	t.Helper()
	report := Convert([]Source{{declarative.API, "a", "a.json", json.RawMessage(text)}}, o)
	return report, report.Entries[0]
}

// A whole export, with every member of the format.
func TestAnExportOfEveryMemberIsTakenOver(t *testing.T) {
	data, err := os.ReadFile("../definition/testdata/classic.json")
	if err != nil {
		t.Fatal(err)
	}
	report, e := theAPI(t, string(data), Options{Strict: true})
	if e.object == nil || len(report.Lost) > 0 {
		t.Fatalf("%s", report.Text())
	}
	if same, err := definition.ParseAPI(e.body()); err != nil || same.ID != "orders" {
		t.Errorf("%+v, %v", same, err)
	}
	text := strings.NewReplacer(
		`"ssl_ciphers": []`, `"ssl_ciphers": ["A"], "ssl_min_version": 771`,
		`"response_processors": []`, `"response_processors": [{"name": "header_injector", "options": {}}]`,
		`"scopes": {"jwt": {}, "oidc": {}}`, `"scopes": {"jwt": {"scope_claim_name": "scp", "scope_to_policy": {"read": "gold"}}}`,
		`"enable_ip_whitelisting": false`, `"enable_ip_whitelisting": true`,
		`{"events": {}}`, `{"events": {"QuotaExceeded": [
			{"handler_name": "eh_web_hook_handler", "handler_meta": {"method": "POST", "target_path": "http://h.example/", "template_path": "templates/default_webhook.json", "header_map": {}, "event_timeout": 10}},
			{"handler_name": "eh_web_hook_handler", "handler_meta": {"method": "POST", "target_path": "http://h.example/", "template_path": "/opt/gw/templates/own.json"}}]}}`,
	).Replace(string(data))
	report, e = theAPI(t, text, Options{})
	if e.object == nil {
		t.Fatalf("%s", report.Text())
	}
	api, err := definition.ParseAPI(e.body())
	if err != nil {
		t.Fatal(err)
	}
	hooks := api.EventHandlers.Events["QuotaExceeded"]
	if api.Proxy.Transport.MinVersion != "1.2" || api.JWT.ScopeField != "scp" || api.JWT.ScopePolicies["read"] != "gold" || api.EnableIPAllowList ||
		hooks[0].Meta.TemplateFile != "" || hooks[1].Meta.TemplateFile != "own.json" {
		t.Errorf("%s", e.body())
	}
	mapped := strings.Join(e.Mapped, "\n")
	for _, want := range []string{"proxy.transport.ssl_min_version 771", `events["QuotaExceeded"][0].handler_meta.template_path is left out`, `template_path is "own.json"`, "header_injector", "jwt_scope_to_policy_mapping"} {
		if !strings.Contains(mapped, want) {
			t.Errorf("lacks %q:\n%s", want, mapped)
		}
	}
	if len(report.Lost) != 2 || report.Lost[0].Weight != "who may call" || report.Lost[0].Path != "enable_ip_whitelisting" || report.Lost[1].Path != "proxy.transport.ssl_ciphers" {
		t.Errorf("%+v", report.Lost)
	}
}

// Whole policies and keys, with every member of the format.
func TestExportedPoliciesAndKeysAreTakenOver(t *testing.T) {
	const limit = `"limit":{"rate":5,"per":1,"throttle_interval":-1,"throttle_retry_limit":-1,"max_query_depth":-1,"quota_max":-1,"quota_renews":0,"quota_remaining":0,"quota_renewal_rate":-1,"set_by_policy":false,"smoothing":null}`
	const rights = `"access_rights":{"a":{"api_name":"A","api_id":"a","versions":["Default"],"allowed_urls":[],"restricted_types":[],"allowed_types":[],` + limit + `,"field_access_rights":[],"disable_introspection":false,"allowance_scope":"","endpoints":null}}`
	report := Convert([]Source{
		{declarative.API, "a", "a.json", json.RawMessage(plain)},
		{declarative.Policy, "gold", "p.json", json.RawMessage(`{"_id":"gold","id":"","name":"gold","org_id":"o","rate":5,"per":1,"quota_max":-1,"quota_renewal_rate":-1,"throttle_interval":-1,"throttle_retry_limit":-1,"max_query_depth":-1,
			` + rights + `,"hmac_enabled":false,"enable_http_signature_validation":false,"active":true,"is_inactive":false,"tags":[],"key_expires_in":0,"partitions":{"quota":false,"rate_limit":false,"complexity":false,"acl":false,"per_api":false},
			"post_expiry_action":"","post_expiry_grace_period":0,"last_updated":"1655970105","meta_data":{},"graphql_access_rights":null,"smoothing":{"enabled":false,"threshold":0,"trigger":0,"step":0,"delay":0}}`)},
		{declarative.Key, hash, "k.json", json.RawMessage(`{"last_check":0,"allowance":5,"rate":5,"per":1,"throttle_interval":0,"throttle_retry_limit":0,"max_query_depth":-1,"date_created":"2022-01-01T00:00:00Z","expires":0,
			"quota_max":-1,"quota_renews":1655970105,"quota_remaining":-1,"quota_renewal_rate":-1,` + rights + `,"org_id":"o","oauth_client_id":"","oauth_keys":{},"certificate":"","basic_auth_data":{"password":"","hash_type":""},"jwt_data":{"secret":""},
			"hmac_enabled":false,"enable_http_signature_validation":false,"hmac_string":"","rsa_certificate_id":"","is_inactive":false,"apply_policy_id":"","apply_policies":null,"data_expires":0,"monitor":{"trigger_limits":null},
			"enable_detail_recording":false,"enable_detailed_recording":true,"meta_data":{},"tags":[],"alias":"","last_updated":"1655970105","id_extractor_deadline":0,"session_lifetime":0,"mtls_static_certificate_bindings":null,
			"post_expiry_action":"","post_expiry_grace_period":0,"smoothing":null}`)},
	}, Options{Strict: true})
	if report.Refused() > 0 || len(report.Lost) > 0 {
		t.Errorf("%s", report.Text())
	}
}

func TestNumbersOfTLSVersionsAreConverted(t *testing.T) {
	for given, want := range map[string]string{`0`: "", `769`: "1.2", `770`: "1.2", `771`: "1.2", `772`: "1.3", `"1.3"`: "1.3"} {
		text := `{"proxy":{"listen_path":"/a/","target_url":"http://b","transport":{"ssl_min_version":` + given + `}}}`
		report, e := theAPI(t, text, Options{})
		api, err := definition.ParseAPI(e.body())
		if err != nil || api.Proxy.Transport.MinVersion != want {
			t.Errorf("%s: %+v, %v\n%s", given, api, err, report.Text())
		}
	}
	if _, e := theAPI(t, `{"proxy":{"listen_path":"/a/","target_url":"http://b","transport":{"ssl_min_version":5}}}`, Options{}); e.object != nil {
		t.Error("5 is no version")
	}
}

const plugged = `{"use_keyless":true,"custom_middleware":{"pre":[{"name":"a"}],"auth_check":{"name":"b"}},"own":1,
	"version_data":{"not_versioned":true,"versions":{"Default":{"use_extended_paths":true,"extended_paths":{"virtual":[{"path":"/a"}],"transform":[{"path":"/a"}]}}}},
	"event_handlers":{"events":{"QuotaExceeded":[{"handler_name":"eh_dynamic_handler"},{"handler_name":"eh_log_handler"},{"handler_name":"eh_dynamic_handler"}]}},
	"proxy":{"listen_path":"/a/","target_url":"http://b","transport":{"proxy_url":"http://p"}}}`

func TestWhatIsRefusedCanBeLeftOut(t *testing.T) {
	_, e := theAPI(t, plugged, Options{})
	if e.object != nil || len(e.Refused) != 7 {
		t.Fatalf("%q", e.Refused)
	}
	drops := NewDrops([]string{
		"custom_middleware", "version_data.versions.*.extended_paths.virtual", `version_data.versions["Default"].extended_paths.transform`,
		"proxy.transport.proxy_url", `event_handlers.events["QuotaExceeded"].*`,
	})
	report, e := theAPI(t, plugged, Options{Drops: drops})
	if e.object == nil || len(drops.Unused()) > 0 {
		t.Fatalf("%q, unused %q", e.Refused, drops.Unused())
	}
	api, err := definition.ParseAPI(e.body())
	if err != nil || strings.Contains(string(e.body()), "custom_middleware") || len(api.EventHandlers.Events["QuotaExceeded"]) != 1 {
		t.Errorf("%s, %v", e.body(), err)
	}
	var lost []string
	for _, l := range report.Lost {
		lost = append(lost, l.Weight+": "+l.Path)
	}
	want := []string{
		"who may call: custom_middleware", "who may call: version_data.versions.Default.extended_paths.virtual", "where calls go: proxy.transport.proxy_url",
		"other: event_handlers.events.QuotaExceeded[0]", "other: event_handlers.events.QuotaExceeded[1]", "other: version_data.versions.Default.extended_paths.transform", "other: own",
	}
	slices.Sort(lost[3:6])
	if !slices.Equal(lost, want) {
		t.Errorf("lost\n%q\nwant\n%q", lost, want)
	}
	text := report.Text()
	if at := strings.Index(text, "lost, who may call:\n  API a: custom_middleware: is left out: authentication by a plugin; callers need no credential\n"); at < 0 || at > strings.Index(text, "lost, where calls go:") {
		t.Errorf("%s", text)
	}
}

func TestDropsOfWhatIsNotRefusedAreNamed(t *testing.T) {
	drops := NewDrops([]string{"custom_middleware", "name", "proxy.listen_path"})
	_, e := theAPI(t, plain, Options{Drops: drops})
	if e.object == nil || !slices.Equal(drops.Unused(), []string{"custom_middleware", "name", "proxy.listen_path"}) {
		t.Errorf("%q, unused %q", e.Refused, drops.Unused())
	}
}

func TestUnknownMembersAreRefusedWhenThatIsAskedFor(t *testing.T) {
	text := strings.Replace(plain, "{", `{"use_keyles":true,`, 1)
	report, e := theAPI(t, text, Options{})
	want := "use_keyles: is not known to this release and has no effect; did you mean use_keyless?"
	if e.object == nil || !slices.Equal(e.Warnings, []string{want}) || !strings.Contains(report.Text(), "unknown, kept: "+want) {
		t.Errorf("%s", report.Text())
	}
	if _, e := theAPI(t, text, Options{Strict: true}); e.object != nil || !slices.Equal(e.Refused, []string{want}) {
		t.Errorf("%+v", e)
	}
}

func TestPathsAreReadAsTheyAreShown(t *testing.T) {
	for path, want := range map[string]member{
		"a": {"a"}, "a.b": {"a", "b"}, `a["b.c"].d`: {"a", "b.c", "d"}, "a[0][1].b": {"a", "0", "1", "b"}, "a.*.b": {"a", "*", "b"}, "": nil, `a["`: {"a", `"`}, "a[": {"a", ""},
	} {
		if got := memberOf(path); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
