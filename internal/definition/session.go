package definition

import (
	"encoding/json"
	"fmt"

	"github.com/sluicegate/sluice/internal/definition/jwt"
	"github.com/sluicegate/sluice/internal/definition/object"
)

// Session is what is known about one key. The key itself is not part of it: a
// session is found by the key's hash.
type Session struct {
	// Id of the organisation that owns the key.
	// Example: "acme"
	OrgID string `json:"org_id,omitempty"`
	// Name of the key for people, at most 1024 bytes.
	// Example: "Orders of the shop"
	Alias string `json:"alias,omitempty"`
	// Older member, without effect.
	// Example: 0
	Allowance float64 `json:"allowance,omitempty"`
	Limits
	// Unix seconds at which the quota renews; filled in.
	// Example: 1795852800
	QuotaRenews int64 `json:"quota_renews"`
	// Calls that are left of the quota; filled in.
	// Example: 400
	QuotaRemaining int64 `json:"quota_remaining"`
	// Unix seconds from which the key is not valid; 0 and -1 are never.
	// Example: 1798761600
	Expires int64 `json:"expires"`

	// Time at which the key was created (RFC 3339); filled in.
	// Example: "2026-11-28T07:00:00Z"
	DateCreated string `json:"date_created,omitempty"`
	// Unix seconds of the last change, which starts new rate windows; filled in.
	// Example: "1795849200"
	LastUpdated string `json:"last_updated,omitempty"`

	// What the key may do, by API id; at most 10,000 APIs. Policies replace it.
	// Example: {"orders": {"versions": ["v1"]}}
	AccessRights map[string]*Access `json:"access_rights,omitempty"`
	// Ids of the key's policies, at most 100.
	// Example: ["gold"]
	ApplyPolicies []string `json:"apply_policies,omitempty"`
	// Older form of apply_policies, used only if that is empty.
	// Example: "gold"
	ApplyPolicyID string `json:"apply_policy_id,omitempty"`
	// Whether the key is refused.
	IsInactive bool `json:"is_inactive,omitempty"`

	// Values for $svc_meta variables, by name. A policy's value replaces the key's.
	// Example: {"tenant": "acme"}
	MetaData map[string]json.RawMessage `json:"meta_data,omitempty"`
	// Labels for people, at most 1000.
	// Example: ["partners"]
	Tags []string `json:"tags,omitempty"`
	// Password of a user.
	// Example: {"password": "correct horse battery staple"}
	BasicAuth *BasicAuth `json:"basic_auth_data,omitempty"`
	// Shares of the quota at which the event TriggerExceeded is raised.
	// Example: {"trigger_limits": [80, 100]}
	Monitor *Monitor `json:"monitor,omitempty"`
	Extra   *Extra   `json:",inline"` // nil if none of its members is set
	Unknown Unknown  `json:"-"`
}

// Extra holds the members of a session that few keys have, so that the sessions of
// the others are small.
type Extra struct {
	// Secret or public key that verifies tokens that name the key.
	// Example: {"secret": "a secret of at least 32 bytes, shared with the client"}
	JWT *jwt.Key `json:"jwt_data,omitempty"`
	// Whether requests are signed by HMAC. Not supported: must be false.
	HMACEnabled bool `json:"hmac_enabled,omitempty"`
	// Secret of hmac_enabled. Not supported: without effect.
	// Example: ""
	HMACString string `json:"hmac_string,omitempty"`
	// Id of the client certificate that stands for the key.
	// Example: "2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6"
	Certificate string `json:"certificate,omitempty"`
	// Ids of the client certificates of which one must be presented with the key.
	// Example: ["2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6"]
	CertificateBindings []string `json:"mtls_static_certificate_bindings,omitempty"`
	// Id of the OAuth client that the session belongs to; filled in.
	// Example: "shop"
	OAuthClientID string `json:"oauth_client_id,omitempty"`
	// Tokens of OAuth clients. Not supported: must be empty.
	// Example: {}
	OAuthKeys json.RawMessage `json:"oauth_keys,omitempty"`
	// Seconds after which the key is removed. Not supported: must be 0.
	// Example: 0
	SessionLifetime int64 `json:"session_lifetime,omitempty"`
	// Older member, without effect.
	// Example: 0
	DataExpires int64 `json:"data_expires,omitempty"`
	// Older member, without effect.
	DetailedRecording bool `json:"enable_detailed_recording,omitempty"`
	// Smoothing of rates. Not supported: must be off.
	// Example: {"enabled": false}
	Smoothing json.RawMessage `json:"smoothing,omitempty" members:"enabled,threshold,trigger,step,delay"`
	// Older member, without effect.
	// Example: 0
	IDExtractorDeadline int64 `json:"id_extractor_deadline,omitempty"`
	// What becomes of an expired key; "delete" is not supported.
	// Example: "retain"
	PostExpiryAction string `json:"post_expiry_action,omitempty"`
	// Seconds from expiry to post_expiry_action, without effect.
	// Example: 0
	PostExpiryGracePeriod int64 `json:"post_expiry_grace_period,omitempty"`
	// All keys of a session that was rotated, the newest last; filled in.
	// Example: [{"key_hash": "9f86d081884c7d65", "retires": 1795852800}]
	Keys []Credential `json:"rotated_keys,omitempty"`
	// Identity of the session whose further key this is; filled in, and nothing else is set.
	// Example: "9f86d081884c7d65"
	SuccessorOf string `json:"successor_of,omitempty"`
	// The quotas of the key, if there is another one than that of the key as a whole;
	// filled in.
	// Example: [{"scope": "gold", "apis": ["orders"], "quota_max": 1000, "quota_remaining": 400, "quota_renews": 1795852800, "quota_renewal_rate": 3600}]
	Quotas []QuotaState `json:"quotas,omitempty"`
}

// QuotaState is one of the quotas of a key, with what is left of it.
type QuotaState struct {
	// What the calls are counted for: the id of a policy or an API, or empty for the key
	// as a whole.
	// Example: "gold"
	Scope string `json:"scope"`
	// Ids of the APIs whose calls are counted.
	// Example: ["orders"]
	APIs []string `json:"apis"`
	// Calls in each period.
	// Example: 1000
	QuotaMax int64 `json:"quota_max"`
	// Calls that are left.
	// Example: 400
	QuotaRemaining int64 `json:"quota_remaining"`
	// Unix seconds at which the quota renews; 0 is never.
	// Example: 1795852800
	QuotaRenews int64 `json:"quota_renews"`
	// Seconds of a period; 0 is no end.
	// Example: 3600
	QuotaRenewalRate int64     `json:"quota_renewal_rate"`
	Renewal          *Calendar `json:",inline"` // nil if none of its members is set
	Unknown          Unknown   `json:"-"`
}

// SetQuotas sets the quotas that a session is shown with. The session must be the
// caller's own.
func (s *Session) SetQuotas(all []QuotaState) {
	if s.Extra == nil && all == nil {
		return
	}
	if s.Extra == nil {
		s.Extra = new(Extra)
	}
	s.Extra.Quotas = all
}

// Monitor sets a key's own quota thresholds.
type Monitor struct {
	// Percentages of the quota at which an event is raised, above 0 and up to 100; at most 100 of them.
	// Example: [80, 100]
	TriggerLimits []float64 `json:"trigger_limits"`
	Unknown       Unknown   `json:"-"`
}

const maxQuotaTriggers = 100

// check returns what is wrong with the thresholds. m may be nil.
func (m *Monitor) check() (f object.Faults) {
	if m == nil {
		return nil
	}
	const path = "trigger_limits"
	f.Count(path, len(m.TriggerLimits), maxQuotaTriggers)
	for i, limit := range m.TriggerLimits {
		if !(limit > 0 && limit <= 100) {
			f.Add(object.Item(path, i), "must be a percentage of the quota, above 0 and at most 100")
		}
	}
	return f
}

// Policies returns the ids of the policies that the key carries, in order.
func (s *Session) Policies() []string {
	if len(s.ApplyPolicies) > 0 || s.ApplyPolicyID == "" {
		return s.ApplyPolicies
	}
	return []string{s.ApplyPolicyID}
}

// Pack appends the session to b in a compact form that UnpackSession of the same
// release reads: for memory, not for disks.
func (s *Session) Pack(b []byte) []byte { return object.Pack(b, s) }

// UnpackSession returns the session that Pack wrote. Its strings are parts of data.
func UnpackSession(data string) (*Session, error) {
	s := new(Session)
	if err := object.Unpack(data, s); err != nil {
		return nil, fmt.Errorf("session of %d bytes: %w", len(data), err)
	}
	return s, nil
}
