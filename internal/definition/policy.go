package definition

import "encoding/json"

// Limits are the numbers that a policy, a key or one of its access entries sets.
// Zero sets nothing; -1 is unlimited.
type Limits struct {
	// Calls that are admitted per period, at most 2147483647.
	// Example: 100
	Rate float64 `json:"rate"`
	// Length of the period of rate in seconds, in whole milliseconds.
	// Example: 60
	Per float64 `json:"per"`
	// Seconds that a call over the rate waits before each further try, at most 3600.
	// Example: 0.5
	ThrottleInterval float64 `json:"throttle_interval"`
	// Tries after which a call over the rate is refused, at most 1000.
	// Example: 3
	ThrottleRetryLimit int `json:"throttle_retry_limit"`
	// Levels that a GraphQL operation may nest.
	// Example: 8
	MaxQueryDepth int `json:"max_query_depth"`
	// Calls per period of the quota, at most 9007199254740991.
	// Example: 100000
	QuotaMax int64 `json:"quota_max"`
	// Seconds after which the quota renews; 0 never renews.
	// Example: 86400
	QuotaRenewalRate int64 `json:"quota_renewal_rate"`

	Renewal *Calendar `json:",inline"` // nil if none of its members is set

	// Aliases in a GraphQL operation; fragments count where they are spread.
	// Example: 20
	MaxQueryAliases int `json:"max_query_aliases,omitempty"`
	// Fields of the outermost selection set of a GraphQL operation.
	// Example: 10
	MaxQueryRootFields int `json:"max_query_root_fields,omitempty"`
	// Directives in a GraphQL operation; fragments count where they are spread.
	// Example: 20
	MaxQueryDirectives int `json:"max_query_directives,omitempty"`
	// Tokens of a GraphQL document.
	// Example: 5000
	MaxQueryTokens int `json:"max_query_tokens,omitempty"`
	// Fields of a GraphQL operation, times the sizes of the lists that they are in.
	// Example: 10000
	MaxQueryCost int64 `json:"max_query_cost,omitempty"`
}

// Policy is a template of access rights and limits that many keys share.
type Policy struct {
	// Id of the policy: at most 128 letters, digits, "-", "_" and ".".
	// Example: "gold"
	ID string `json:"id,omitempty"`
	// Older name of id, used if that is empty.
	// Example: "gold"
	StoreID string `json:"_id,omitempty"`
	// Name for people, at most 1024 bytes.
	// Example: "Gold"
	Name string `json:"name,omitempty"`
	// Id of the organisation that owns the policy.
	// Example: "acme"
	OrgID string `json:"org_id,omitempty"`
	Limits
	// What keys may do, by API id; at most 10,000 APIs. Default: the policy sets limits only.
	// Example: {"orders": {"versions": ["v1"]}}
	AccessRights map[string]*Access `json:"access_rights,omitempty"`
	// The entries of access_rights as a list, each with api_id; at most 10,000. Answers have both forms.
	// Example: [{"api_id": "orders"}]
	AccessList []*Access `json:"access_rights_array,omitempty"`
	// Groups of members that the policy sets. Default: all groups.
	// Example: {"quota": true, "rate_limit": true, "complexity": false, "acl": true, "per_api": false}
	Partitions Partitions `json:"partitions"`

	// Whether the policy is in use. Default: true.
	Active *bool `json:"active,omitempty"`
	// Whether keys of the policy are refused.
	IsInactive bool `json:"is_inactive,omitempty"`
	// active (default), draft or deny; keys of a policy that is not active are refused.
	// Example: "draft"
	State string `json:"state,omitempty" oneof:"active draft deny"`
	// enforce (default), or measure to only count and log the refusals of the policy.
	// Example: "measure"
	Enforcement string `json:"enforcement,omitempty" oneof:"enforce measure"`
	// Seconds that new keys are valid; 0 is no end.
	// Example: 2592000
	KeyExpiresIn int64 `json:"key_expires_in,omitempty"`
	// What becomes of expired keys; "delete" is not supported.
	// Example: "retain"
	PostExpiryAction string `json:"post_expiry_action,omitempty"`
	// Seconds from expiry to post_expiry_action, without effect.
	// Example: 0
	PostExpiryGracePeriod int64 `json:"post_expiry_grace_period,omitempty"`
	// Labels for people, at most 1000.
	// Example: ["partners"]
	Tags []string `json:"tags,omitempty"`
	// Values for $svc_meta variables, by name. They replace the key's; those of later policies replace those of earlier ones.
	// Example: {"tenant": "acme"}
	MetaData map[string]json.RawMessage `json:"meta_data,omitempty"`
	// Whether requests are signed by HMAC. Not supported: must be false.
	HMACEnabled bool `json:"hmac_enabled,omitempty"`
	// Whether requests carry HTTP message signatures. Not supported: must be false.
	SignatureValidation bool `json:"enable_http_signature_validation,omitempty"`
	// Smoothing of rates. Not supported: must be off.
	// Example: {"enabled": false}
	Smoothing json.RawMessage `json:"smoothing,omitempty" members:"enabled,threshold,trigger,step,delay"`
	// Time at which the policy was created; filled in.
	// Example: "2026-11-28T07:00:00Z"
	DateCreated string `json:"date_created,omitempty"`
	// Time of the last change; filled in.
	// Example: "1795849200"
	LastUpdated string  `json:"last_updated,omitempty"`
	Unknown     Unknown `json:"-"`
}

// Partitions name the groups of members that a policy sets; none set is all of them.
type Partitions struct {
	// The quota.
	Quota bool `json:"quota"`
	// The rate.
	RateLimit bool `json:"rate_limit"`
	// Limits on GraphQL operations.
	Complexity bool `json:"complexity"`
	// Access rights.
	ACL bool `json:"acl"`
	// Limits of each API.
	PerAPI  bool    `json:"per_api"`
	Unknown Unknown `json:"-"`
}

// Access is what a key or policy may do with one API.
type Access struct {
	// Id of the API. Default: the name of the entry.
	// Example: "orders"
	APIID string `json:"api_id,omitempty"`
	// Name of the API, for people.
	// Example: "Orders"
	APIName string `json:"api_name,omitempty"`
	// Versions that may be called; without effect on an API without versions. Default: all versions.
	// Example: ["v1"]
	Versions []string `json:"versions,omitempty"`
	// Paths and methods that may be called, at most 1000. Default: every path.
	// Example: [{"url": "^/orders/\\d+$", "methods": ["GET"]}]
	AllowedURLs []AllowedURL `json:"allowed_urls,omitempty"`
	// GraphQL fields that may not be selected.
	// Example: [{"name": "User", "fields": ["email"]}]
	RestrictedTypes []TypeFields `json:"restricted_types,omitempty"`
	// GraphQL fields that alone may be selected.
	// Example: [{"name": "Query", "fields": ["orders"]}]
	AllowedTypes []TypeFields `json:"allowed_types,omitempty"`
	// Limits of single GraphQL fields.
	// Example: [{"type_name": "Query", "field_name": "orders", "limits": {"max_query_depth": 3}}]
	FieldAccessRights []FieldAccess `json:"field_access_rights,omitempty"`
	// Whether __schema and __type may not be selected.
	DisableIntrospection bool `json:"disable_introspection,omitempty"`
	// Whether only GraphQL operations that the API stores may be run.
	TrustedDocumentsOnly bool `json:"trusted_documents_only,omitempty"`
	// Limits of this API. Default, group by group: those of the key or policy.
	// Example: {"rate": 10, "per": 1, "quota_max": 1000, "quota_renewal_rate": 3600}
	Limit *AccessLimit `json:"limit,omitempty"`
	// Older member, without effect.
	// Example: ""
	AllowanceScope string `json:"allowance_scope,omitempty"`
	// Rates of single paths, at most 10,000.
	// Example: [{"path": "/search", "methods": [{"name": "GET", "limit": {"rate": 5, "per": 1}}]}]
	Endpoints []Endpoint `json:"endpoints,omitempty"`
	Unknown   Unknown    `json:"-"`
}

// AccessLimit is the part of Limits that an access entry overrides.
type AccessLimit struct {
	Limits
	// Unix seconds at which the quota renews; filled in.
	// Example: 1795852800
	QuotaRenews int64 `json:"quota_renews,omitempty"`
	// Calls that are left of the quota; filled in.
	// Example: 400
	QuotaRemaining int64 `json:"quota_remaining,omitempty"`
	// Whether a policy set the limits; filled in.
	SetByPolicy bool    `json:"set_by_policy,omitempty"`
	Unknown     Unknown `json:"-"`
}

// AllowedURL admits some methods on paths that match a regular expression.
type AllowedURL struct {
	// Regular expression of the path.
	// Example: "^/orders/\\d+$"
	URL string `json:"url"`
	// Methods that may be called.
	// Example: ["GET"]
	Methods []string `json:"methods"`
	Unknown Unknown  `json:"-"`
}

// TypeFields names fields of one GraphQL type.
type TypeFields struct {
	// Name of the type.
	// Example: "User"
	Name string `json:"name"`
	// Names of its fields; "*" is all of them.
	// Example: ["email"]
	Fields  []string `json:"fields"`
	Unknown Unknown  `json:"-"`
}

// FieldAccess limits one GraphQL field.
type FieldAccess struct {
	// Name of the type.
	// Example: "Query"
	TypeName string `json:"type_name"`
	// Name of the field.
	// Example: "orders"
	FieldName string `json:"field_name"`
	// Limits of the field.
	// Example: {"max_query_depth": 3}
	Limits  FieldLimits `json:"limits"`
	Unknown Unknown     `json:"-"`
}

// FieldLimits are the limits of one GraphQL field.
type FieldLimits struct {
	// Levels that may be nested below the field; 0 sets nothing, -1 is unlimited.
	// Example: 3
	MaxQueryDepth int     `json:"max_query_depth"`
	Unknown       Unknown `json:"-"`
}

// Endpoint limits calls of one path, method by method.
type Endpoint struct {
	// Pattern of the path.
	// Example: "/search"
	Path string `json:"path"`
	// Rates by method.
	// Example: [{"name": "GET", "limit": {"rate": 5, "per": 1}}]
	Methods []EndpointMethod `json:"methods"`
	Unknown Unknown          `json:"-"`
}

// EndpointMethod limits one method of an Endpoint.
type EndpointMethod struct {
	// Method, such as GET.
	// Example: "GET"
	Name string `json:"name"`
	// Rate of the calls.
	// Example: {"rate": 5, "per": 1}
	Limit   RateLimit `json:"limit"`
	Unknown Unknown   `json:"-"`
}

// ReportOnly reports whether refusals of the policy are counted and logged, and not
// carried out.
func (p *Policy) ReportOnly() bool { return p.Enforcement == "measure" }

// Key returns the id under which keys name the policy.
func (p *Policy) Key() string {
	if p.ID != "" {
		return p.ID
	}
	return p.StoreID
}
