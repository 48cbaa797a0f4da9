package definition

import (
	"encoding/json"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// A feature is something that a definition can set and that this release does not
// have. Such a definition is refused, so that it is never served without the feature.
// Adding a feature includes deleting its row here.
type feature[T any] struct {
	path   string // of the member that asks, below the object
	name   string
	weight Weight
	asks   func(T) bool
}

// Weight is how much it matters that something in a definition has no effect.
type Weight uint8

// The weights, the greatest last.
const (
	MinorWeight  Weight = iota // what is sent, kept or recorded
	RouteWeight                // where calls go
	AccessWeight               // who may call
)

// missing lists the features of API definitions that do not exist.
var missing = []feature[*API]{
	{"auth_configs.basic", "basic authentication elsewhere than in a header", AccessWeight, func(a *API) bool {
		place := a.Place("basic")
		return a.UseBasicAuth && (place.DisableHeader || place.UseParam || place.UseCookie)
	}},
	{"cache_options.enable_cache", "response cache of GraphQL APIs", MinorWeight, func(a *API) bool { return a.IsGraphQL() && a.CacheOptions.On() }},
	{"cache_options.enable_cache", "response cache of event streams", MinorWeight, func(a *API) bool { return a.HasStreams() && a.CacheOptions.On() }},
	{"enable_signature_checking", "HMAC request signatures", AccessWeight, func(a *API) bool { return a.SignatureChecking }},
	{"graphql.engine.data_sources", "GraphQL data sources beside proxyOnly", RouteWeight, func(a *API) bool {
		return a.IsGraphQL() && !a.IsDataGraph() && a.GraphQL.Engine != nil && len(a.GraphQL.Engine.DataSources) > 0
	}},
}

// A missingMember is a feature that a member without a field asks for.
type missingMember struct {
	path   string // of the member
	name   string
	weight Weight
	remedy string // what would be lost and what to write in its place

	unless string            // member that turns the feature off if it is on
	asks   func(a *API) bool // further condition; nil: none
}

// missingMembers lists the features of API definitions that do not exist and that
// members without fields ask for. A member that is false, empty or null asks for nothing.
var missingMembers = []missingMember{
	{path: "use_openid", name: "OpenID Connect", weight: AccessWeight, remedy: "use enable_jwt, with the provider's key set in jwt_jwks_uris"},
	{path: "external_oauth.enabled", name: "OAuth 2.0 tokens of other issuers", weight: AccessWeight, remedy: "use enable_jwt, with the issuer's key set in jwt_jwks_uris"},
	{path: "enable_coprocess_auth", name: "authentication by a plugin", weight: AccessWeight, remedy: usePlainAuth},
	{path: "use_go_plugin_auth", name: "authentication by a plugin", weight: AccessWeight, remedy: usePlainAuth},
	{path: "custom_plugin_auth_enabled", name: "authentication by a plugin", weight: AccessWeight, remedy: usePlainAuth},
	{path: "custom_middleware.auth_check", name: "authentication by a plugin", weight: AccessWeight, remedy: usePlainAuth},
	{path: "custom_middleware.pre", name: "plugins", weight: AccessWeight, remedy: pluginLoss},
	{path: "custom_middleware.post_key_auth", name: "plugins", weight: AccessWeight, remedy: pluginLoss},
	{path: "custom_middleware.post", name: "plugins", weight: AccessWeight, remedy: pluginLoss},
	{path: "custom_middleware.response", name: "plugins", weight: MinorWeight, remedy: "responses would reach callers as the upstream sends them; change them there and leave it out"},
	{path: "custom_middleware_bundle", name: "plugins", weight: AccessWeight, remedy: pluginLoss, unless: "custom_middleware_bundle_disabled"},
	{
		path: "auth_provider.storage_engine", name: "a store of keys of the API's own", weight: AccessWeight, remedy: "create the keys here, and leave it out",
		asks: func(a *API) bool { return string(a.member("auth_provider.storage_engine")) != `"redis"` },
	},
	{path: "scopes.jwt", name: "scopes of tokens in scopes", weight: AccessWeight, remedy: "write jwt_scope_claim_name and jwt_scope_to_policy_mapping instead"},
	{path: "scopes.oidc", name: "scopes of tokens in scopes", weight: AccessWeight, remedy: "write jwt_scope_claim_name and jwt_scope_to_policy_mapping instead"},
	{path: "security_requirements", name: "alternatives between auth modes", weight: AccessWeight, remedy: "all modes that are on must accept a call here; split the API, or leave it out"},
	{path: "session_lifetime", name: "removal of keys after a time", weight: AccessWeight, remedy: "set expires of the keys, or key_expires_in of their policies, and leave it out"},
	{path: "expiration", name: "expiry of an API", weight: AccessWeight, remedy: "set expires of its version instead"},
	{path: "is_oas", name: "OpenAPI documents of APIs", weight: AccessWeight, remedy: "what the document demands of calls would not be checked; leave it out if it demands nothing"},
	{path: "listen_port", name: "ports of single APIs", weight: AccessWeight, remedy: "the API would be served on the port of all others; leave it out if it may be"},
	{
		path: "protocol", name: "protocols of single APIs", weight: AccessWeight, remedy: "APIs are served by HTTP on the listeners of the gateway; leave it out if that is meant",
		asks: func(a *API) bool { return string(a.member("protocol")) != `"http"` },
	},
	{path: "enable_proxy_protocol", name: "PROXY protocol of single APIs", weight: AccessWeight, remedy: "it is a setting of listeners; leave it out"},
	{
		path: "domain_disabled", name: "a domain that is switched off", weight: AccessWeight, remedy: "leave out domain instead",
		asks: func(a *API) bool { return a.Domain != "" },
	},
	{
		path: "ip_access_control_disabled", name: "lists of addresses that are switched off together", weight: AccessWeight,
		remedy: "turn off enable_ip_whitelisting and enable_ip_blacklisting instead",
		asks:   func(a *API) bool { return a.EnableIPAllowList || a.EnableIPBlockList },
	},

	{path: "proxy.service_discovery.use_discovery_service", name: "service discovery", weight: RouteWeight, remedy: "list the addresses in proxy.target_list, and turn it off"},
	{path: "proxy.transport.proxy_url", name: "outbound proxies", weight: RouteWeight, remedy: "calls would go to the upstream directly; leave it out if they may"},
	{path: "upstream_auth.enabled", name: "authentication at upstreams", weight: RouteWeight, remedy: "set a fixed credential in global_headers of the version, and turn it off"},
	{path: "pinned_public_keys", name: "pinned keys of upstreams", weight: RouteWeight, remedy: "name the upstream's authority in proxy.transport.ssl_ca_file instead", unless: "certificate_pinning_disabled"},
	{path: "request_signing.is_enabled", name: "signatures of requests to upstreams", weight: RouteWeight, remedy: "calls would go to the upstream without a signature; turn it off if they may"},
	{path: "enable_batch_request_support", name: "batches of requests", weight: RouteWeight, remedy: "callers send requests one by one; turn it off"},
	{
		path: "upstream_certificates_disabled", name: "certificates for upstreams that are switched off", weight: RouteWeight, remedy: "leave out upstream_certificates instead",
		asks: func(a *API) bool { return len(a.UpstreamCertificates) > 0 },
	},
	{path: "response_processors", name: "response processors", weight: MinorWeight, remedy: "use global_response_headers or extended_paths.transform_response_headers, which need no processor, and leave it out"},
}

// Remedies that several features have.
const (
	usePlainAuth = "callers that the plugin refuses would be let in; choose an auth mode of this release, such as use_standard_auth, and leave it out"
	pluginLoss   = "calls that a plugin refuses or changes would pass as they are; have the upstream do its work, and leave it out"
)

// member returns a member that API, Proxy or Transport have no field for, or nil.
func (a *API) member(path string) json.RawMessage {
	unknown := &a.Unknown
	if below, ok := strings.CutPrefix(path, "proxy.transport."); ok {
		if a.Proxy.Transport == nil {
			return nil
		}
		unknown, path = &a.Proxy.Transport.Unknown, below
	} else if below, ok := strings.CutPrefix(path, "proxy."); ok {
		unknown, path = &a.Proxy.Unknown, below
	}
	names := strings.Split(path, ".")
	raw := unknown.Get(names[0])
	for _, name := range names[1:] {
		raw = part(raw, name)
	}
	return raw
}

// asked reports whether a definition asks for the feature.
func (m *missingMember) asked(a *API) bool {
	return means(a.member(m.path)) && (m.unless == "" || !means(a.member(m.unless))) && (m.asks == nil || m.asks(a))
}

// missingTokens lists the features of token places that do not exist. They do
// not matter to an API without authentication.
var missingTokens = []feature[*Auth]{
	{"validate_signature", "request signatures", AccessWeight, func(a *Auth) bool { return a.ValidateSignature }},
}

// hasMode reports whether the API serves GraphQL in an execution mode.
func (a *API) hasMode(mode string) bool { return a.IsGraphQL() && a.GraphQL.ExecutionMode == mode }

// checkFeatures refuses every feature of a that does not exist.
func (p *Problems) checkFeatures(a *API) {
	refuse(p, "", missing, a)
	for i := range missingMembers {
		if m := &missingMembers[i]; m.asked(a) {
			p.refuse(m.path, m.name, m.weight, m.remedy)
		}
	}
	if path := a.tokenPath(); path != "" && !a.UseKeyless {
		refuse(p, path, missingTokens, a.Token())
	}
	if a.VersionData == nil {
		return
	}
	for _, name := range object.SortedKeys(a.VersionData.Versions) {
		v, at := a.VersionData.Versions[name], object.Entry("version_data.versions", name)
		if v == nil {
			continue
		}
		if v.ExtendedPaths == nil {
			continue
		}
		for _, list := range v.ExtendedPaths.unsupported() {
			p.refuse(object.Member(at+".extended_paths", list), "path rules ("+list+")", weightOfList(list), turnOff)
		}
	}
}

// tokenPath is where the settings that Token returns stand, "" when nowhere.
func (a *API) tokenPath() string {
	switch {
	case a.AuthConfigs["authToken"] != nil:
		return object.Entry("auth_configs", "authToken")
	case a.Auth != nil:
		return "auth"
	}
	return ""
}

// asksFor reports whether a list of path rules holds one that is not disabled.
func asksFor(list json.RawMessage) bool {
	rules := elements(list)
	for _, rule := range rules {
		if !isOn(rule, "disabled") {
			return true
		}
	}
	return len(rules) == 0 && says(list)
}

// weightOfList returns the weight of a list of path rules that does not exist.
func weightOfList(name string) Weight {
	switch name {
	case "internal", "virtual", "go_plugin", "validate_json", "validate_request":
		return AccessWeight
	case "transform", "transform_jq", "transform_response", "transform_jq_response":
		return MinorWeight
	}
	return RouteWeight
}

func refuse[T any](p *Problems, path string, features []feature[T], of T) {
	for _, f := range features {
		if f.asks(of) {
			p.refuse(object.Member(path, f.path), f.name, f.weight, turnOff)
		}
	}
}

// turnOff is the remedy of features without which little changes, or whose lack is plain.
const turnOff = "leave it out or turn it off"

// refuse adds the problem that a feature is used at path.
func (p *Problems) refuse(path, feature string, weight Weight, remedy string) {
	p.add(Problem{Path: path, Feature: feature, Weight: weight, Message: "asks for a feature that this release does not have: " + feature + "; " + remedy})
}
