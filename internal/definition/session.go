package definition

import (
	"encoding/json"
	"fmt"

	"github.com/sluicegate/sluice/internal/definition/basic"
	"github.com/sluicegate/sluice/internal/definition/jwt"
	"github.com/sluicegate/sluice/internal/definition/monitor"
	"github.com/sluicegate/sluice/internal/definition/object"
)

// Session is what is known about one key. The key itself is not part of it:
// a session is found by the key's hash.
type Session struct {
	OrgID     string  `json:"org_id,omitempty"`
	Alias     string  `json:"alias,omitempty"`
	Allowance float64 `json:"allowance,omitempty"` // legacy, without effect
	Limits
	QuotaRenews    int64 `json:"quota_renews"`    // unix seconds; filled in
	QuotaRemaining int64 `json:"quota_remaining"` // filled in
	Expires        int64 `json:"expires"`         // unix seconds; 0 and -1 are never

	DateCreated string `json:"date_created,omitempty"` // RFC 3339
	LastUpdated string `json:"last_updated,omitempty"` // unix seconds; a change starts a fresh rate window

	AccessRights  map[string]*Access `json:"access_rights,omitempty"` // by API id
	ApplyPolicies []string           `json:"apply_policies,omitempty"`
	ApplyPolicyID string             `json:"apply_policy_id,omitempty"` // used only when ApplyPolicies is empty
	IsInactive    bool               `json:"is_inactive,omitempty"`

	MetaData  map[string]json.RawMessage `json:"meta_data,omitempty"`
	Tags      []string                   `json:"tags,omitempty"`
	BasicAuth *BasicAuth                 `json:"basic_auth_data,omitempty"`
	Monitor   *Monitor                   `json:"monitor,omitempty"`
	Extra     *Extra                     `json:",inline"` // nil when none of its members is set
	Unknown   Unknown                    `json:"-"`
}

// Extra holds the members of a session that few keys have, so that the others,
// of which a gateway keeps many, are small.
type Extra struct {
	JWT                   *jwt.Key        `json:"jwt_data,omitempty"`
	HMACEnabled           bool            `json:"hmac_enabled,omitempty"`
	HMACString            string          `json:"hmac_string,omitempty"`
	Certificate           string          `json:"certificate,omitempty"`
	CertificateBindings   []string        `json:"mtls_static_certificate_bindings,omitempty"`
	OAuthClientID         string          `json:"oauth_client_id,omitempty"`
	OAuthKeys             json.RawMessage `json:"oauth_keys,omitempty"`
	SessionLifetime       int64           `json:"session_lifetime,omitempty"`
	DataExpires           int64           `json:"data_expires,omitempty"`
	DetailedRecording     bool            `json:"enable_detailed_recording,omitempty"`
	Smoothing             json.RawMessage `json:"smoothing,omitempty"`
	IDExtractorDeadline   int64           `json:"id_extractor_deadline,omitempty"`
	PostExpiryAction      string          `json:"post_expiry_action,omitempty"`
	PostExpiryGracePeriod int64           `json:"post_expiry_grace_period,omitempty"`
	Keys                  []Credential    `json:"rotated_keys,omitempty"` // filled in: all keys of one that was rotated, the newest last
	SuccessorOf           string          `json:"successor_of,omitempty"` // filled in: the identity whose key this is; nothing else is set
}

// BasicAuth holds a user's password, hashed at rest and never returned.
type BasicAuth = basic.User

// Monitor sets a key's own quota thresholds.
type Monitor = monitor.Monitor

// Policies returns the ids of the policies that the key carries, in order.
func (s *Session) Policies() []string {
	if len(s.ApplyPolicies) > 0 || s.ApplyPolicyID == "" {
		return s.ApplyPolicies
	}
	return []string{s.ApplyPolicyID}
}

// Pack appends the session to b in few bytes, which UnpackSession of the same
// release reads: for memory, not for disks.
func (s *Session) Pack(b []byte) []byte { return object.Pack(b, s) }

// UnpackSession returns the session that Pack wrote. It shares no memory with
// data.
func UnpackSession(data []byte) (*Session, error) {
	s := new(Session)
	if err := object.Unpack(data, s); err != nil {
		return nil, unpackError(data, err)
	}
	return s, nil
}

// UnpackShared makes s the session that Pack wrote to data, which never changes
// from then on: the texts of s are parts of it, and lists of them lie in room as
// far as that goes. Of a session that has policies and no rights of its own, and
// at most as many texts in lists as room, nothing is allocated.
func (s *Session) UnpackShared(data []byte, room []string) error {
	if err := object.UnpackShared(data, s, room); err != nil {
		return unpackError(data, err)
	}
	return nil
}

func unpackError(data []byte, err error) error {
	return fmt.Errorf("session of %d bytes: %w", len(data), err)
}
