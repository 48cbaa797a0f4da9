package definition

import (
	"encoding/json"

	"github.com/sluicegate/sluice/internal/definition/jwt"
)

// The comments on the members below are their descriptions in the admin's OpenAPI
// document: whole sentences, with units, defaults and bounds.

// API is one API definition. Members that are left out have their zero value unless
// their comment gives another default.
type API struct {
	// Id of the API: at most 128 letters, digits, "-", "_" and ".". Generated if empty.
	// Example: "orders"
	ID string `json:"api_id,omitempty"`
	// Name for people, at most 1024 bytes.
	// Example: "Orders"
	Name string `json:"name,omitempty"`
	// Id of the organisation that owns the API.
	// Example: "acme"
	OrgID string `json:"org_id,omitempty"`
	// Whether the API is in service. Default: true.
	Active *bool `json:"active,omitempty"`

	// Whether clients cannot reach the API. Other APIs still can, by svc:// targets.
	Internal bool `json:"internal,omitempty"`
	// Host name that requests must have in Host, without a port and in any case. Default: every host.
	// Example: "api.example.com"
	Domain string `json:"domain,omitempty"`
	// Whether clients need no credential.
	UseKeyless bool `json:"use_keyless,omitempty"`
	// Whether clients authenticate with a key. Default: true if no other mode is on.
	UseStandardAuth bool `json:"use_standard_auth,omitempty"`
	// Whether clients authenticate with a user name and password (RFC 7617).
	UseBasicAuth bool `json:"use_basic_auth,omitempty"`
	// Whether clients authenticate with a JSON Web Token (RFC 7519).
	EnableJWT bool `json:"enable_jwt,omitempty"`
	// Whether clients authenticate with an OAuth 2.0 access token that the portal issued.
	UseOAuth2 bool `json:"use_oauth2,omitempty"`
	// Whether clients must present one of client_certificates.
	UseMutualTLS bool `json:"use_mutual_tls_auth,omitempty"`
	// Whether requests are signed by HMAC. Not supported: must be false.
	SignatureChecking bool `json:"enable_signature_checking,omitempty"`
	// Auth mode whose session counts where several are on: auth_token, basic_auth_user, jwt_claim or oauth_key. Default: the last one that is on.
	// Example: "auth_token"
	BaseIdentity string `json:"base_identity_provided_by,omitempty" oneof:"auth_token basic_auth_user jwt_claim oauth_key"`
	// Whether credentials are removed from requests before they go to the upstream.
	StripAuthData bool `json:"strip_auth_data,omitempty"`
	// Whether $svc_context variables are replaced in headers, rewrites and bodies.
	EnableContextVars bool `json:"enable_context_vars,omitempty"`
	// Whether calls are not counted against quotas.
	DisableQuota bool `json:"disable_quota,omitempty"`
	// Whether no rate limits apply.
	DisableRateLimit bool `json:"disable_rate_limit,omitempty"`
	// Older name of disable_quota.
	SkipQuota bool `json:"skipQuota,omitempty"`
	// Whether a key keeps its used quota when it is created again or updated.
	SkipQuotaReset bool `json:"skipQuotaReset,omitempty"`
	// Older name of skipQuotaReset.
	DontSetQuotas bool `json:"DontSetQuotasOnCreate,omitempty"`
	// Older name of skipQuotaReset.
	DontSetQuotasClassic bool `json:"dont_set_quota_on_create,omitempty"`

	// Where credentials are found, by kind: authToken, basic, jwt or oauth.
	// Example: {"authToken": {"auth_header_name": "X-Api-Key"}}
	AuthConfigs map[string]*Auth `json:"auth_configs,omitempty"`
	// Older form of auth_configs.authToken, used if that is absent.
	// Example: {"auth_header_name": "X-Api-Key"}
	Auth *Auth `json:"auth,omitempty"`

	JWT *jwt.Settings `json:",inline"` // nil if none of its members is set
	// Settings of basic authentication.
	// Example: {"extract_from_body": true, "body_user_regexp": "<User>([^<]*)</User>", "body_password_regexp": "<Password>([^<]*)</Password>"}
	BasicAuth *BasicAuthSettings `json:"basic_auth,omitempty"`
	// How requests choose a version.
	// Example: {"location": "header", "key": "X-Api-Version"}
	Selector *VersionSelector `json:"definition,omitempty"`
	// Versions of the API. Default: one version without rules of its own.
	// Example: {"default_version": "v1", "versions": {"v1": {"name": "v1"}, "v2": {"name": "v2", "override_target": "http://orders-v2.internal:8080"}}}
	VersionData *VersionData `json:"version_data,omitempty"`
	// Which requests the API takes, and where they go.
	// Example: {"listen_path": "/orders/", "target_url": "http://orders.internal:8080", "strip_listen_path": true}
	Proxy Proxy `json:"proxy"`

	// Client certificates for upstreams: id or PEM file, by "host", "host:port" or "*".
	// Example: {"*.internal": "/etc/sluice/client.pem"}
	UpstreamCertificates map[string]string `json:"upstream_certificates,omitempty"`
	// Certificates of clients that are accepted with use_mutual_tls_auth: ids or, on gateways without an admin, PEM files.
	// Example: ["/etc/sluice/partner.pem"]
	ClientCertificates []string `json:"client_certificates,omitempty"`
	// Rate that all clients of the API share.
	// Example: {"rate": 1000, "per": 60}
	GlobalRateLimit *RateLimit `json:"global_rate_limit,omitempty"`

	// Whether only allowed_ips may call.
	EnableIPAllowList bool `json:"enable_ip_whitelisting,omitempty"`
	// Addresses and networks, such as 192.0.2.7 and 2001:db8::/32, that may call; at most 100,000.
	// Example: ["192.0.2.7", "2001:db8::/32"]
	AllowedIPs []string `json:"allowed_ips,omitempty"`
	// Whether blacklisted_ips may not call.
	EnableIPBlockList bool `json:"enable_ip_blacklisting,omitempty"`
	// Addresses and networks that may not call; at most 100,000.
	// Example: ["198.51.100.0/24"]
	BlockedIPs []string `json:"blacklisted_ips,omitempty"`
	// Web pages that may call the API from a browser.
	// Example: {"enable": true, "allowed_origins": ["https://app.example"]}
	CORS *CORS `json:"CORS,omitempty"`
	// Cache of responses.
	// Example: {"enable_cache": true, "cache_all_safe_requests": true, "cache_timeout": 30}
	CacheOptions *CacheOptions `json:"cache_options,omitempty"`
	// Health checks of addresses.
	// Example: {"check_list": [{"url": "http://orders.internal:8080/health"}]}
	UptimeTests *UptimeTests `json:"uptime_tests,omitempty"`
	// What is done when events happen.
	// Example: {"events": {"QuotaExceeded": [{"handler_name": "eh_web_hook_handler", "handler_meta": {"method": "POST", "target_path": "https://hooks.example/sluice"}}]}}
	EventHandlers *EventHandlers `json:"event_handlers,omitempty"`
	// Settings that make the API a GraphQL API.
	// Example: {"enabled": true, "execution_mode": "proxyOnly", "schema": "type Query { orders: [ID] }"}
	GraphQL *GraphQL `json:"graphql,omitempty"`
	// Event streams: the object {"streams": {name: stream}}. An API with streams serves their paths alone, and its proxy.target_url may be empty.
	// Example: {"streams": {"orders": {"input": {"http_server": {"path": "/in"}}, "output": {"http_server": {"stream_path": "/out"}}}}}
	Streaming json.RawMessage `json:"x-svc-streaming,omitempty" members:"streams"`

	// Segments of gateways: those that have one of these in gateway.tags serve the API. Default: all gateways.
	// Example: ["eu-west"]
	Tags []string `json:"tags,omitempty"`
	// Whether {secret:…}, {env:…} and {file:…} are literal text and no references to secrets.
	LiteralSecrets bool    `json:"disable_secret_references,omitempty"`
	Unknown        Unknown `json:"-"`

	mayRefer bool        `json:"-"` // see MayReferToSecrets
	resolved *resolution `json:"-"` // nil: there is none
}

// Auth says where one kind of credential is found in a request.
type Auth struct {
	// Name of the header. Default: Authorization.
	// Example: "X-Api-Key"
	HeaderName string `json:"auth_header_name,omitempty"`
	// Whether the header is not read.
	DisableHeader bool `json:"disable_header,omitempty"`
	// Whether a query parameter is read.
	UseParam bool `json:"use_param,omitempty"`
	// Name of the query parameter. Default: the header's name.
	// Example: "api_key"
	ParamName string `json:"param_name,omitempty"`
	// Whether a cookie is read.
	UseCookie bool `json:"use_cookie,omitempty"`
	// Name of the cookie. Default: the header's name.
	// Example: "session"
	CookieName string `json:"cookie_name,omitempty"`
	// Whether clients may open GraphQL connections without a credential and send it in the payload of connection_init, as a member with the name of the header.
	UseConnectionInit bool `json:"use_connection_init,omitempty"`
	// Whether a client certificate stands for a key.
	UseCertificate bool `json:"use_certificate,omitempty"`
	// Whether requests carry a signature. Not supported: must be false.
	ValidateSignature bool `json:"validate_signature,omitempty"`
	// Settings of validate_signature. Not supported: without effect.
	// Example: {}
	Signature json.RawMessage `json:"signature,omitempty" members:"algorithm,header,use_param,param_name,secret,allowed_clock_skew,error_code,error_message"`
	Unknown   Unknown         `json:"-"`
}

// Proxy says which requests an API takes and where they go.
type Proxy struct {
	// Path that requests begin with, such as /orders/. "{name}" and "{name:regex}" match one segment. At most 4096 bytes.
	// Example: "/orders/"
	ListenPath string `json:"listen_path"`
	// URL of the upstream (http or https), or of another API (svc://name). An API with event streams has none.
	// Example: "http://orders.internal:8080"
	TargetURL string `json:"target_url"`
	// Whether listen_path is removed from the path that goes to the upstream.
	StripListenPath bool `json:"strip_listen_path,omitempty"`
	// Whether a slash at the end of the upstream's path stays.
	DisableStripSlash bool `json:"disable_strip_slash,omitempty"`
	// Whether the upstream gets the client's Host. Default: the target's host.
	PreserveHostHeader bool `json:"preserve_host_header,omitempty"`
	// Whether calls are spread over target_list instead of target_url.
	EnableLoadBalancing bool `json:"enable_load_balancing,omitempty"`
	// Upstreams for load balancing, at most 256.
	// Example: [{"url": "http://a.internal:8080", "weight": 3}, {"url": "http://b.internal:8080"}]
	TargetList []Target `json:"target_list,omitempty" object:"lenient"`
	// When a target that fails is left out for a while.
	// Example: {"failures": 3, "seconds": 30}
	Ejection *Ejection `json:"ejection,omitempty" object:"lenient"`
	// Health check of every target.
	// Example: {"path": "/health", "interval": 5}
	HealthCheck *HealthCheck `json:"health_check,omitempty"`
	// When all calls are refused because too many fail.
	// Example: {"threshold_percent": 0.5, "samples": 20}
	CircuitBreaker *APIBreaker `json:"circuit_breaker,omitempty"`
	// How connections to the upstream are made.
	// Example: {"response_timeout": 5}
	Transport *Transport `json:"transport,omitempty"`
	Unknown   Unknown    `json:"-"`
}

// Transport is how connections to an API's upstream are made.
type Transport struct {
	// Whether the upstream's certificate is not verified.
	InsecureSkipVerify bool `json:"ssl_insecure_skip_verify,omitempty"`
	// PEM file of the roots that are trusted, in place of the system's.
	// Example: "/etc/sluice/roots.pem"
	CAFile string `json:"ssl_ca_file,omitempty"`
	// PEM file of the client certificate.
	// Example: "/etc/sluice/client.pem"
	CertificateFile string `json:"ssl_certificate_file,omitempty"`
	// PEM file of the key of ssl_certificate_file.
	// Example: "/etc/sluice/client.key"
	KeyFile string `json:"ssl_key_file,omitempty"`
	// Name that the upstream's certificate must have. Default: the target's host.
	// Example: "orders.internal"
	ServerName string `json:"ssl_server_name,omitempty"`
	// Lowest TLS version: "1.2" (default) or "1.3".
	// Example: "1.3"
	MinVersion string `json:"ssl_min_version,omitempty" oneof:"1.2 1.3"`
	// Seconds to wait for a connection, at most 86400. Default: the gateway's setting.
	// Example: 2.5
	DialTimeout float64 `json:"dial_timeout,omitempty"`
	// Seconds to wait for a response, at most 86400. Default: the gateway's setting.
	// Example: 5
	ResponseTimeout float64 `json:"response_timeout,omitempty"`
	// Connections to each host. Default: the gateway's setting.
	// Example: 200
	MaxConns int `json:"max_conns,omitempty"`
	// Whether a connection serves several requests. Default: true; false for upstreams that are not trusted to keep the responses to different clients apart.
	Reuse   *bool   `json:"reuse,omitempty"`
	Unknown Unknown `json:"-"`
}

// Reuses reports whether a connection serves several requests. t may be nil.
func (t *Transport) Reuses() bool { return t == nil || t.Reuse == nil || *t.Reuse }

// RateLimit admits Rate calls per Per seconds.
type RateLimit struct {
	// Calls that are admitted per period, at most 2147483647; 0 and negative numbers limit nothing.
	// Example: 100
	Rate float64 `json:"rate"`
	// Length of the period in seconds, in whole milliseconds.
	// Example: 60
	Per float64 `json:"per"`
	// Whether the limit is off.
	Disabled bool    `json:"disabled,omitempty"`
	Unknown  Unknown `json:"-"`
}

// documentMember is the member that OpenAPIDocument returns. Few definitions have it, so
// that it is no field.
const documentMember = "x-svc-openapi"

// OpenAPIDocument returns the OpenAPI document of an API of event streams, without what the
// definition says itself, or nil.
func (a *API) OpenAPIDocument() json.RawMessage { return a.Unknown.Get(documentMember) }

// IsActive reports whether the API is in service.
func (a *API) IsActive() bool { return a.Active == nil || *a.Active }

// QuotaOff reports whether calls to the API are not counted against quotas.
func (a *API) QuotaOff() bool { return a.DisableQuota || a.SkipQuota }

// KeepsQuota reports whether a key that is created again or updated keeps its used
// quota.
func (a *API) KeepsQuota() bool {
	return a.SkipQuotaReset || a.DontSetQuotas || a.DontSetQuotasClassic
}

// Header returns the name of the header that carries the credential.
func (a *Auth) Header() string {
	if a.HeaderName == "" {
		return "Authorization"
	}
	return a.HeaderName
}
