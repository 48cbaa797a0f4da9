package openapi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/didyoumean"
)

// A field is a member of x-svc-api-gateway, and of the definition, that mean the same.
// Names in paths are separated by points.
type field struct{ document, definition string }

// fields are the members of x-svc-api-gateway, but for those of authentication schemes.
var fields = []field{
	{"info.id", "api_id"},
	{"info.orgId", "org_id"},
	{"info.name", "name"},
	{"info.state.active", "active"},
	{"info.state.internal", "internal"},
	{"server.listenPath.value", "proxy.listen_path"},
	{"server.listenPath.strip", "proxy.strip_listen_path"},
	{"server.customDomain.name", "domain"},
	{"server.gatewayTags.tags", "tags"},
	{"server.authentication.stripAuthorizationData", "strip_auth_data"},
	{"server.authentication.baseIdentityProvider", "base_identity_provided_by"},
	{"upstream.url", "proxy.target_url"},
	{"middleware.global.cors.enabled", "CORS.enable"},
	{"middleware.global.cors.allowedOrigins", "CORS.allowed_origins"},
	{"middleware.global.cors.allowedMethods", "CORS.allowed_methods"},
	{"middleware.global.cors.allowedHeaders", "CORS.allowed_headers"},
	{"middleware.global.cors.exposedHeaders", "CORS.exposed_headers"},
	{"middleware.global.cors.allowCredentials", "CORS.allow_credentials"},
	{"middleware.global.cors.maxAge", "CORS.max_age"},
	{"middleware.global.requestSizeLimit.value", sizeLimit},
	{"middleware.global.contextVariables.enabled", "enable_context_vars"},
	{"middleware.global.skipRateLimit", "disable_rate_limit"},
	{"middleware.global.skipQuota", "disable_quota"},
	{"middleware.global.skipQuotaReset", "skipQuotaReset"},
}

// schemeFields are the members of an authentication scheme and of its entry in
// auth_configs.
var schemeFields = []field{
	{"header.name", "auth_header_name"},
	{"query.enabled", "use_param"},
	{"query.name", "param_name"},
	{"cookie.enabled", "use_cookie"},
	{"cookie.name", "cookie_name"},
	{"enableClientCertificate", "use_certificate"},
}

// tokenFields are the members of an authentication scheme of JSON Web Tokens.
var tokenFields = []field{
	{"signingMethod", "jwt_signing_method"},
	{"source", "jwt_source"},
	{"jwksURIs", "jwt_jwks_uris"},
	{"identityBaseField", "jwt_identity_base_field"},
	{"policyFieldName", "jwt_policy_field_name"},
	{"defaultPolicies", "jwt_default_policies"},
	{"scopes.claimName", "jwt_scope_claim_name"},
	{"allowedIssuers", "jwt_allowed_issuers"},
	{"allowedAudiences", "jwt_allowed_audiences"},
	{"issuedAtValidationSkew", "jwt_issued_at_validation_skew"},
	{"notBeforeValidationSkew", "jwt_not_before_validation_skew"},
	{"expiresAtValidationSkew", "jwt_expires_at_validation_skew"},
	{"skipKid", "jwt_skip_kid"},
}

// Paths of single members.
const (
	extension      = "x-svc-api-gateway"
	streaming      = "x-svc-streaming"
	kept           = "x-svc-openapi" // member of the definition with the rest of the document
	version        = "version_data.versions.Default"
	sizeLimit      = version + ".global_size_limit"
	authentication = "server.authentication"
	schemes        = authentication + ".securitySchemes"
)

// A tree is a decoded JSON object. Numbers are of the type json.Number.
type tree = map[string]any

func parseTree(data []byte) (tree, error) {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	var t tree
	err := dec.Decode(&t)
	return t, err
}

// get returns the value at a path, or nil.
func get(t tree, path string) any {
	name, rest, more := strings.Cut(path, ".")
	if !more {
		return t[name]
	}
	below, _ := t[name].(tree)
	return get(below, rest)
}

// set sets the value at a path.
func set(t tree, path string, value any) {
	name, rest, more := strings.Cut(path, ".")
	if !more {
		t[name] = value
		return
	}
	below, ok := t[name].(tree)
	if !ok {
		below = tree{}
		t[name] = below
	}
	set(below, rest, value)
}

// take removes the value at a path, with the objects around it that are empty then, and
// returns it.
func take(t tree, path string) any {
	name, rest, more := strings.Cut(path, ".")
	value := t[name]
	if !more {
		delete(t, name)
		return value
	}
	below, ok := value.(tree)
	if !ok {
		return nil
	}
	taken := take(below, rest)
	if len(below) == 0 {
		delete(t, name)
	}
	return taken
}

// move moves the members of a document to the definition.
func move(from, to tree, all []field) {
	for _, f := range all {
		if value := take(from, f.document); value != nil {
			set(to, f.definition, value)
		}
	}
}

// show copies the members of a definition to a document.
func show(from, to tree, all []field) {
	for _, f := range all {
		if value := get(from, f.definition); value != nil {
			set(to, f.document, value)
		}
	}
}

// rest reports the members of x-svc-api-gateway that are left once all known ones were
// taken out, and mean something. Others are kept.
func rest(problems *definition.Problems, path string, left tree, known []string) {
	for _, name := range object.SortedKeys(left) {
		at, value := member(path, name), left[name]
		below, nested := value.(tree)
		switch under := namesUnder(known, name); {
		case strings.HasPrefix(name, "x-") || at == extension+".info.dbId" || !means(value):
		case at == extension+"."+schemes || at == extension+"."+authentication && !nested: // reported by authenticate
		case nested && len(under) > 0:
			rest(problems, at, below, under)
		case len(under) > 0:
			*problems = append(*problems, definition.Problem{Path: at, Message: "must be an object"})
		default:
			*problems = append(*problems, definition.Problem{Path: at, Message: unsupported(name, known)})
		}
	}
}

// namesUnder returns the known paths below a member.
func namesUnder(known []string, name string) (under []string) {
	for _, path := range known {
		if first, rest, more := strings.Cut(path, "."); more && (first == name || first == "*") {
			under = append(under, rest)
		}
	}
	return under
}

func unsupported(name string, known []string) string {
	names := make([]string, 0, len(known))
	for _, path := range known {
		first, _, _ := strings.Cut(path, ".")
		names = append(names, first)
	}
	slices.Sort(names)
	if near := didyoumean.Nearest(name, slices.Compact(names)); near != "" {
		return `is unknown; did you mean "` + near + `"?`
	}
	if name == "operations" {
		return "is for paths of an upstream, which streams do not have; leave it out"
	}
	return "is not supported in a document of streams; leave it out"
}

// means reports whether a value says anything: null, false, 0, what is empty, and objects
// that are switched off do not.
func means(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case json.Number:
		return strings.Trim(v.String(), "-0.eE+") != ""
	case []any:
		return slices.ContainsFunc(v, means)
	case tree:
		if v["enabled"] == false || v["disabled"] == true {
			return false
		}
		for _, one := range v {
			if means(one) {
				return true
			}
		}
		return false
	}
	return true
}
