package definition

import (
	"encoding/json"

	"github.com/sluicegate/sluice/internal/definition/renewal"
)

// Limits are the numbers that a policy, a key or one of its access entries
// sets. Zero means that nothing is set; -1 is an explicit "unlimited".
type Limits struct {
	Rate               float64 `json:"rate"`                 // calls
	Per                float64 `json:"per"`                  // seconds
	ThrottleInterval   float64 `json:"throttle_interval"`    // seconds
	ThrottleRetryLimit int     `json:"throttle_retry_limit"` // tries
	MaxQueryDepth      int     `json:"max_query_depth"`
	QuotaMax           int64   `json:"quota_max"`          // calls per period
	QuotaRenewalRate   int64   `json:"quota_renewal_rate"` // seconds; 0 never renews

	Renewal *renewal.Calendar `json:",inline"` // by the calendar rather than QuotaRenewalRate; nil when none of its members is set

	// Of one GraphQL operation, fragments counted where they are spread.
	MaxQueryAliases    int   `json:"max_query_aliases,omitempty"`
	MaxQueryRootFields int   `json:"max_query_root_fields,omitempty"`
	MaxQueryDirectives int   `json:"max_query_directives,omitempty"`
	MaxQueryTokens     int   `json:"max_query_tokens,omitempty"`
	MaxQueryCost       int64 `json:"max_query_cost,omitempty"`
}

// Policy is a template of rights and limits that many keys share.
type Policy struct {
	ID      string `json:"id,omitempty"`
	StoreID string `json:"_id,omitempty"` // fills ID when that is empty
	Name    string `json:"name,omitempty"`
	OrgID   string `json:"org_id,omitempty"`
	Limits
	AccessRights map[string]*Access `json:"access_rights,omitempty"` // by API id; empty: limits only
	AccessList   []*Access          `json:"access_rights_array,omitempty"`
	Partitions   Partitions         `json:"partitions"`

	Active                *bool                      `json:"active,omitempty"`
	IsInactive            bool                       `json:"is_inactive,omitempty"`
	State                 string                     `json:"state,omitempty"`       // active, draft or deny
	Enforcement           string                     `json:"enforcement,omitempty"` // enforce (default) or measure: see Measures
	KeyExpiresIn          int64                      `json:"key_expires_in,omitempty"`
	PostExpiryAction      string                     `json:"post_expiry_action,omitempty"`
	PostExpiryGracePeriod int64                      `json:"post_expiry_grace_period,omitempty"`
	Tags                  []string                   `json:"tags,omitempty"`
	MetaData              map[string]json.RawMessage `json:"meta_data,omitempty"`
	HMACEnabled           bool                       `json:"hmac_enabled,omitempty"`
	SignatureValidation   bool                       `json:"enable_http_signature_validation,omitempty"`
	Smoothing             json.RawMessage            `json:"smoothing,omitempty"`
	DateCreated           string                     `json:"date_created,omitempty"`
	LastUpdated           string                     `json:"last_updated,omitempty"`
	Unknown               Unknown                    `json:"-"`
}

// Partitions name the groups that a policy writes; none set is all of them.
type Partitions struct {
	Quota      bool    `json:"quota"`
	RateLimit  bool    `json:"rate_limit"`
	Complexity bool    `json:"complexity"`
	ACL        bool    `json:"acl"`
	PerAPI     bool    `json:"per_api"`
	Unknown    Unknown `json:"-"`
}

// Access is what a key or policy may do with one API.
type Access struct {
	APIID                string        `json:"api_id,omitempty"`
	APIName              string        `json:"api_name,omitempty"`
	Versions             []string      `json:"versions,omitempty"`     // ignored on an API without versions
	AllowedURLs          []AllowedURL  `json:"allowed_urls,omitempty"` // empty: every path
	RestrictedTypes      []TypeFields  `json:"restricted_types,omitempty"`
	AllowedTypes         []TypeFields  `json:"allowed_types,omitempty"`
	FieldAccessRights    []FieldAccess `json:"field_access_rights,omitempty"`
	DisableIntrospection bool          `json:"disable_introspection,omitempty"`
	TrustedDocumentsOnly bool          `json:"trusted_documents_only,omitempty"` // true: of GraphQL, only operations that the API stores
	Limit                *AccessLimit  `json:"limit,omitempty"`                  // nil or all zero: inherited, group by group
	AllowanceScope       string        `json:"allowance_scope,omitempty"`
	Endpoints            []Endpoint    `json:"endpoints,omitempty"`
	Unknown              Unknown       `json:"-"`
}

// AccessLimit is the part of Limits that an access entry overrides.
type AccessLimit struct {
	Limits
	QuotaRenews    int64   `json:"quota_renews,omitempty"`    // unix seconds; filled in
	QuotaRemaining int64   `json:"quota_remaining,omitempty"` // filled in
	SetByPolicy    bool    `json:"set_by_policy,omitempty"`   // for display
	Unknown        Unknown `json:"-"`
}

// AllowedURL admits some methods on paths that match a regular expression.
type AllowedURL struct {
	URL     string   `json:"url"`
	Methods []string `json:"methods"`
	Unknown Unknown  `json:"-"`
}

// TypeFields names fields of one GraphQL type; "*" is all of them.
type TypeFields struct {
	Name    string   `json:"name"`
	Fields  []string `json:"fields"`
	Unknown Unknown  `json:"-"`
}

// FieldAccess limits one GraphQL field.
type FieldAccess struct {
	TypeName  string      `json:"type_name"`
	FieldName string      `json:"field_name"`
	Limits    FieldLimits `json:"limits"`
	Unknown   Unknown     `json:"-"`
}

// FieldLimits are the limits of one GraphQL field.
type FieldLimits struct {
	MaxQueryDepth int     `json:"max_query_depth"` // 0 sets nothing, -1 is unlimited
	Unknown       Unknown `json:"-"`
}

// Endpoint limits calls of one path, method by method.
type Endpoint struct {
	Path    string           `json:"path"`
	Methods []EndpointMethod `json:"methods"`
	Unknown Unknown          `json:"-"`
}

// EndpointMethod limits one method of an Endpoint.
type EndpointMethod struct {
	Name    string    `json:"name"`
	Limit   RateLimit `json:"limit"`
	Unknown Unknown   `json:"-"`
}

// Key returns the id under which keys name the policy.
func (p *Policy) Key() string {
	if p.ID != "" {
		return p.ID
	}
	return p.StoreID
}
