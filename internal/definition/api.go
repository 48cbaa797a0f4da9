package definition

import (
	"encoding/json"

	"github.com/sluicegate/sluice/internal/definition/basic"
	"github.com/sluicegate/sluice/internal/definition/jwt"
)

// API is one API definition. Absent members mean their zero value unless a
// field says otherwise.
type API struct {
	ID     string `json:"api_id,omitempty"` // letters, digits, "-", "_" and "."; generated when empty
	Name   string `json:"name,omitempty"`
	OrgID  string `json:"org_id,omitempty"`
	Active *bool  `json:"active,omitempty"` // only an explicit false takes the API out of service

	Internal             bool   `json:"internal,omitempty"` // true: no route from outside
	Domain               string `json:"domain,omitempty"`   // compared case-insensitively with Host, without port
	UseKeyless           bool   `json:"use_keyless,omitempty"`
	UseStandardAuth      bool   `json:"use_standard_auth,omitempty"`
	UseBasicAuth         bool   `json:"use_basic_auth,omitempty"`
	EnableJWT            bool   `json:"enable_jwt,omitempty"`
	UseOAuth2            bool   `json:"use_oauth2,omitempty"`
	UseMutualTLS         bool   `json:"use_mutual_tls_auth,omitempty"`
	SignatureChecking    bool   `json:"enable_signature_checking,omitempty"`
	BaseIdentity         string `json:"base_identity_provided_by,omitempty"`
	StripAuthData        bool   `json:"strip_auth_data,omitempty"`
	EnableContextVars    bool   `json:"enable_context_vars,omitempty"`
	DisableQuota         bool   `json:"disable_quota,omitempty"`
	DisableRateLimit     bool   `json:"disable_rate_limit,omitempty"`
	SkipQuota            bool   `json:"skipQuota,omitempty"`
	SkipQuotaReset       bool   `json:"skipQuotaReset,omitempty"`
	DontSetQuotas        bool   `json:"DontSetQuotasOnCreate,omitempty"`
	DontSetQuotasClassic bool   `json:"dont_set_quota_on_create,omitempty"`

	AuthConfigs map[string]*Auth `json:"auth_configs,omitempty"` // by source name; "authToken" is the token's
	Auth        *Auth            `json:"auth,omitempty"`         // older form of auth_configs.authToken, used when that is absent

	JWT         *jwt.Settings    `json:",inline"` // nil when none of its members is set
	BasicAuth   *basic.Settings  `json:"basic_auth,omitempty"`
	Selector    *VersionSelector `json:"definition,omitempty"`
	VersionData *VersionData     `json:"version_data,omitempty"` // absent: not versioned
	Proxy       Proxy            `json:"proxy"`

	UpstreamCertificates map[string]string `json:"upstream_certificates,omitempty"` // "host[:port]" or "*" to certificate id or PEM file
	ClientCertificates   []string          `json:"client_certificates,omitempty"`
	GlobalRateLimit      *RateLimit        `json:"global_rate_limit,omitempty"`

	EnableIPAllowList bool            `json:"enable_ip_whitelisting,omitempty"`
	AllowedIPs        []string        `json:"allowed_ips,omitempty"`
	EnableIPBlockList bool            `json:"enable_ip_blacklisting,omitempty"`
	BlockedIPs        []string        `json:"blacklisted_ips,omitempty"`
	CORS              json.RawMessage `json:"CORS,omitempty"`
	CacheOptions      json.RawMessage `json:"cache_options,omitempty"`
	UptimeTests       json.RawMessage `json:"uptime_tests,omitempty"`
	EventHandlers     json.RawMessage `json:"event_handlers,omitempty"`
	GraphQL           *GraphQL        `json:"graphql,omitempty"`
	Streaming         json.RawMessage `json:"x-svc-streaming,omitempty"`

	Tags    []string `json:"tags,omitempty"` // gateway groups that serve the API; empty: all
	Unknown Unknown  `json:"-"`
}

// Auth says where one kind of credential is found in a request.
type Auth struct {
	HeaderName        string          `json:"auth_header_name,omitempty"` // default Authorization
	DisableHeader     bool            `json:"disable_header,omitempty"`
	UseParam          bool            `json:"use_param,omitempty"`
	ParamName         string          `json:"param_name,omitempty"` // default: the header name
	UseCookie         bool            `json:"use_cookie,omitempty"`
	CookieName        string          `json:"cookie_name,omitempty"` // default: the header name
	UseCertificate    bool            `json:"use_certificate,omitempty"`
	ValidateSignature bool            `json:"validate_signature,omitempty"`
	Signature         json.RawMessage `json:"signature,omitempty"`
	Unknown           Unknown         `json:"-"`
}

// Proxy says which requests an API takes and where they go.
type Proxy struct {
	ListenPath          string      `json:"listen_path"` // starts with "/"; "{name}" and "{name:regex}" match one segment
	TargetURL           string      `json:"target_url"`  // http or https
	StripListenPath     bool        `json:"strip_listen_path,omitempty"`
	DisableStripSlash   bool        `json:"disable_strip_slash,omitempty"`
	PreserveHostHeader  bool        `json:"preserve_host_header,omitempty"`
	EnableLoadBalancing bool        `json:"enable_load_balancing,omitempty"`
	Extra               *ProxyExtra `json:",inline"` // nil when none of its members is set
	Transport           *Transport  `json:"transport,omitempty"`
	Unknown             Unknown     `json:"-"`
}

// ProxyExtra holds the members of a proxy that few APIs have, so that the others,
// of which there may be very many, are small. See Upstreams.
type ProxyExtra struct {
	TargetList     json.RawMessage `json:"target_list,omitempty"`
	Ejection       json.RawMessage `json:"ejection,omitempty"`
	HealthCheck    json.RawMessage `json:"health_check,omitempty"`
	CircuitBreaker json.RawMessage `json:"circuit_breaker,omitempty"`
}

// Rest returns the members that few APIs have.
func (p *Proxy) Rest() ProxyExtra {
	if p.Extra == nil {
		return ProxyExtra{}
	}
	return *p.Extra
}

// Transport is how an API's upstream is reached.
type Transport struct {
	InsecureSkipVerify bool    `json:"ssl_insecure_skip_verify,omitempty"`
	CAFile             string  `json:"ssl_ca_file,omitempty"`          // PEM; added to nothing: only these roots are trusted
	CertificateFile    string  `json:"ssl_certificate_file,omitempty"` // PEM client certificate
	KeyFile            string  `json:"ssl_key_file,omitempty"`         // PEM key of CertificateFile
	ServerName         string  `json:"ssl_server_name,omitempty"`      // default: the target's host
	MinVersion         string  `json:"ssl_min_version,omitempty"`      // "1.2" (default) or "1.3"
	DialTimeout        float64 `json:"dial_timeout,omitempty"`         // seconds; 0: the gateway's default
	ResponseTimeout    float64 `json:"response_timeout,omitempty"`     // seconds; 0: the gateway's default
	MaxConns           int     `json:"max_conns,omitempty"`            // to each host; 0: the gateway's default
	Unknown            Unknown `json:"-"`
}

// RateLimit admits Rate calls per Per seconds.
type RateLimit struct {
	Rate     float64 `json:"rate"`
	Per      float64 `json:"per"` // seconds
	Disabled bool    `json:"disabled,omitempty"`
	Unknown  Unknown `json:"-"`
}

// IsActive tells whether the API is in service.
func (a *API) IsActive() bool { return a.Active == nil || *a.Active }

// QuotaOff tells whether calls to the API are neither counted against nor
// checked for a quota.
func (a *API) QuotaOff() bool { return a.DisableQuota || a.SkipQuota }

// KeepsQuota tells whether creating or updating a key leaves its used quota.
func (a *API) KeepsQuota() bool {
	return a.SkipQuotaReset || a.DontSetQuotas || a.DontSetQuotasClassic
}

// Token returns where the API's token is found, never nil.
func (a *API) Token() *Auth {
	if c := a.AuthConfigs["authToken"]; c != nil {
		return c
	}
	if a.Auth != nil {
		return a.Auth
	}
	return &Auth{}
}

// Header returns the name of the header that carries the credential.
func (a *Auth) Header() string {
	if a.HeaderName == "" {
		return "Authorization"
	}
	return a.HeaderName
}
