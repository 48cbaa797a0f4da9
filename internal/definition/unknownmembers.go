package definition

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/didyoumean"
)

// An Object is an API, a policy or a session.
type Object interface {
	// UnknownMembers lists the members that are kept and have no effect, each with its
	// path and the nearest known name: at most 100, and one problem more if there are
	// others. Texts that look like references to secrets and are none are listed as well.
	UnknownMembers() Problems

	// TakeSwitch removes an unknown member that is true or false, and reports whether it
	// is true: an option of a call that is written beside the members of the object.
	TakeSwitch(name string) bool
}

// UnknownMembers implements Object.
func (a *API) UnknownMembers() Problems {
	return append(unknownMembers(a, harmlessAPI, classicAPI), a.literalRefs()...)
}

// UnknownMembers implements Object.
func (p *Policy) UnknownMembers() Problems { return unknownMembers(p, harmlessPolicy, classicPolicy) }

// UnknownMembers implements Object.
func (s *Session) UnknownMembers() Problems {
	return unknownMembers(s, harmlessSession, classicSession)
}

// TakeSwitch implements Object.
func (a *API) TakeSwitch(name string) bool { return takeSwitch(&a.Unknown, name) }

// TakeSwitch implements Object.
func (p *Policy) TakeSwitch(name string) bool { return takeSwitch(&p.Unknown, name) }

// TakeSwitch implements Object.
func (s *Session) TakeSwitch(name string) bool { return takeSwitch(&s.Unknown, name) }

func takeSwitch(u *Unknown, name string) bool {
	switch string(u.Get(name)) {
	case "true", "false":
		return string(u.Take(name)) == "true"
	}
	return false
}

func unknownMembers(of any, harmless map[string]bool, classic map[string]classicMember) Problems {
	r := memberReport{harmless: harmless, classic: classic}
	for _, m := range object.UnknownMembers(of) {
		r.add(&m)
		if len(r.found) > maxProblems {
			break // looking for near names takes time
		}
	}
	return r.found
}

// A memberReport collects unknown members of an object.
type memberReport struct {
	harmless map[string]bool
	classic  map[string]classicMember
	found    Problems
}

// add reports an unknown member, unless comparable gateways have it and it is harmless or
// off.
func (r *memberReport) add(m *object.UnknownMember) {
	if isExtension(m.Name) || m.Form == schemaMember || r.harmless[m.Form] {
		return
	}
	use, classic := r.classic[m.Form]
	switch {
	case !classic:
		r.found.addf(m.Path, "is not known to this release and has no effect%s", near(m.Name, m.Known))
	case use.parts != "" && means(m.Value) && m.Value[0] != '{':
		r.found.addf(m.Path, "is not an object and has no effect")
	case use.parts != "":
		r.addParts(m, strings.Split(use.parts, " "))
	case use.idle && means(m.Value):
		r.found.addf(m.Path, "has no effect in this release")
	}
}

// addParts reports the unknown members of an object whose members have names.
func (r *memberReport) addParts(of *object.UnknownMember, names []string) {
	members := parts(of.Value)
	for _, name := range object.SortedKeys(members) {
		if !slices.Contains(names, name) {
			r.add(&object.UnknownMember{Path: object.Member(of.Path, name), Form: object.Member(of.Form, name), Name: name, Value: members[name], Known: names})
		}
	}
}

func near(name string, known []string) string {
	if found := didyoumean.Nearest(name, known); found != "" {
		return "; did you mean " + found + "?"
	}
	return ""
}

// schemaMember names the JSON Schema of a file, for editors.
const schemaMember = "$schema"

// isExtension reports whether a name is one that users give to members of their own.
func isExtension(name string) bool {
	return strings.HasPrefix(name, "x-") && !strings.HasPrefix(name, "x-svc-")
}

// A classicMember is a member that definitions of comparable gateways have, that has no
// field here and that is not harmless.
type classicMember struct {
	idle  bool   // it is lost: reported if it says something. Others are refused when they are on
	parts string // names of the members of its object, which alone are looked at; "": it may have any
}

// harmlessAPI are the members of API definitions without a field that need no warning, by
// their form.
var harmlessAPI = map[string]bool{
	// How calls are recorded.
	"do_not_track": true, "enable_detailed_recording": true, "tag_headers": true, "expire_analytics_after": true,
	"analytics_plugin": true, "detailed_tracing": true,
	documentMember:                   true, // read by OpenAPIDocument
	extendedForm + "track_endpoints": true, extendedForm + "do_not_track_endpoints": true,

	// Names and times of other databases.
	"id": true, "_id": true, "slug": true, "created_at": true, "updated_at": true,

	// Details of what is refused when it is on, or is done in another way.
	"config_data": true, "config_data_disabled": true, "custom_middleware_bundle_disabled": true, "openid_options": true,
	"certificate_pinning_disabled": true, "hmac_allowed_clock_skew": true, "hmac_allowed_algorithms": true,
	"session_lifetime_respects_key_expiration": true, "idp_client_id_mapping_disabled": true,
	"basic_auth.disable_caching": true, "basic_auth.cache_ttl": true, "CORS.debug": true, "auth.name": true, "auth_configs.*.name": true,
	extendedForm + "transform_headers.*.act_on": true, extendedForm + "transform_response_headers.*.act_on": true,
	"proxy.check_host_against_uptime_tests": true, "uptime_tests.config.expire_utime_after": true, "uptime_tests.config.recheck_wait": true,
	discoveryForm + "query_endpoint": true, discoveryForm + "use_nested_query": true, discoveryForm + "parent_data_path": true, discoveryForm + "data_path": true,
	discoveryForm + "port_data_path": true, discoveryForm + "target_path": true, discoveryForm + "use_target_list": true, discoveryForm + "cache_disabled": true,
	discoveryForm + "cache_timeout": true, discoveryForm + "endpoint_returns_list": true,
}

// harmlessPolicy is harmlessAPI for policies.
var harmlessPolicy = map[string]bool{"graphql_access_rights": true}

// harmlessSession is harmlessAPI for sessions.
var harmlessSession = map[string]bool{"last_check": true, "enable_detail_recording": true}

// classicAPI are the other members of API definitions that are known and have no field, by
// their form.
var classicAPI = map[string]classicMember{
	// Refused when they are on.
	"custom_middleware":        {parts: "pre post post_key_auth auth_check response driver id_extractor"},
	"custom_middleware_bundle": {}, "use_openid": {}, "enable_coprocess_auth": {}, "use_go_plugin_auth": {}, "custom_plugin_auth_enabled": {},
	"external_oauth":  {parts: "enabled providers"},
	"upstream_auth":   {parts: "enabled basic_auth oauth"},
	"request_signing": {parts: "is_enabled secret key_id algorithm header_list certificate_id signature_header"},
	"scopes":          {parts: "jwt oidc"},
	"auth_provider":   {parts: "name storage_engine meta"},
	"proxy.service_discovery": {
		parts: "use_discovery_service query_endpoint use_nested_query parent_data_path data_path port_data_path target_path use_target_list cache_disabled cache_timeout endpoint_returns_list",
	},
	"proxy.transport.proxy_url": {}, "pinned_public_keys": {}, "response_processors": {}, "enable_batch_request_support": {},
	"session_lifetime": {}, "expiration": {}, "listen_port": {}, "protocol": {}, "enable_proxy_protocol": {}, "is_oas": {}, "security_requirements": {},
	extendedForm + "transform": {}, extendedForm + "transform_response": {}, extendedForm + "transform_jq": {}, extendedForm + "transform_jq_response": {},
	extendedForm + "virtual": {}, extendedForm + "method_transforms": {}, extendedForm + "validate_json": {}, extendedForm + "validate_request": {},
	extendedForm + "internal": {}, extendedForm + "go_plugin": {},

	// Lost.
	"certificates": {idle: true}, "notifications": {idle: true}, "oauth_meta": {idle: true}, "session_provider": {idle: true},
	"jwt_client_base_field": {idle: true}, "jwt_jwks_uris.*.cache_timeout": {idle: true}, "json_rpc_version": {idle: true}, "application_protocol": {idle: true},
	"domain_disabled": {idle: true}, "ip_access_control_disabled": {idle: true}, "upstream_certificates_disabled": {idle: true}, "tags_disabled": {idle: true},
	"proxy.transport.ssl_ciphers": {idle: true}, "proxy.transport.ssl_max_version": {idle: true}, "proxy.transport.ssl_force_common_name_check": {idle: true},
	"version_data.versions.*.global_size_limit_disabled": {idle: true},
}

// The beginnings of forms that several members have.
const (
	extendedForm  = "version_data.versions.*.extended_paths."
	discoveryForm = "uptime_tests.config.service_discovery."
)

// classicPolicy are the members of policies that are known and have no field.
var classicPolicy = map[string]classicMember{
	"access_rights.*.limit.smoothing": {}, "access_rights_array.*.limit.smoothing": {},
}

// classicSession are the members of sessions that are known and have no field.
var classicSession = map[string]classicMember{
	"enable_http_signature_validation": {}, "access_rights.*.limit.smoothing": {},
	"rsa_certificate_id": {idle: true},
	"key":                {}, // that the caller has chosen: callers take it out
}

// switches are the members that say whether an object of settings is on.
var switches = []string{"enabled", "is_enabled"}

// means reports whether raw says anything at any depth: null, false, 0, empty texts,
// lists and objects do not, nor do objects that are switched off.
func means(raw json.RawMessage) bool {
	switch {
	case !says(raw):
		return false
	case raw[0] == '{':
		members := parts(raw)
		if string(members["disabled"]) == "true" {
			return false
		}
		for _, name := range switches {
			if on, there := members[name]; there && !says(on) {
				return false
			}
		}
		for _, value := range members {
			if means(value) {
				return true
			}
		}
		return false
	case raw[0] == '[':
		return slices.ContainsFunc(elements(raw), means)
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		return strings.Trim(string(raw), "-0.eE+") != ""
	}
	return true
}
