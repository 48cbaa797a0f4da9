package jwt

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	token "github.com/sluicegate/sluice/internal/definition/jwt"
)

// claims are the members of a token by name.
type claims map[string]json.RawMessage

// window is when a token is valid, in unix seconds including the allowed skew; 0 is no
// bound.
type window struct{ from, issued, until int64 }

// refuses returns why a token is not valid now, or nil.
func (w *window) refuses(now time.Time) *pipeline.Rejection {
	at := now.Unix()
	switch {
	case w.until != 0 && at >= w.until:
		return expired
	case w.from != 0 && at < w.from:
		return notYet
	case w.issued != 0 && at < w.issued:
		return fromTheFuture
	}
	return nil
}

// read returns the identity of a token with a valid signature. It keeps payload.
func (v *Verifier) read(payload []byte) (*Identity, *pipeline.Rejection) {
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil || c == nil {
		return nil, malformed
	}
	w, refused := windowOf(&v.settings, c)
	if refused != nil {
		return nil, refused
	}
	if refused := checkOrigin(&v.settings, c); refused != nil {
		return nil, refused
	}
	caller := c.text(orElse(v.settings.IdentityField, "sub"))
	if caller == "" {
		return nil, noIdentity
	}
	policies, ok := v.policiesOf(c)
	if !ok {
		return nil, malformed
	}
	if len(policies) == 0 {
		return nil, noPolicy
	}
	sum := sha256.Sum256([]byte(v.org + "\x00" + c.text("iss") + "\x00" + caller))
	hash := "jwt-" + hex.EncodeToString(sum[:])
	return &Identity{
		Hash: hash, Name: hash[:len("jwt-")+nameLength], Claims: payload, window: w,
		Session: &definition.Session{OrgID: v.org, Alias: caller, ApplyPolicies: policies},
	}, nil
}

// nameLength is how much of a hash logs show, in hex digits.
const nameLength = 12

// windowOf returns when a token is valid (RFC 7519 sections 4.1.4 to 4.1.6), or why it
// never is.
func windowOf(s *token.Settings, c claims) (w window, refused *pipeline.Rejection) {
	for _, bound := range [...]struct {
		claim string
		off   bool
		skew  int64
		at    *int64
	}{
		{"exp", s.AnyExpiresAt, s.ExpiresAtSkew, &w.until},
		{"nbf", s.AnyNotBefore, -s.NotBeforeSkew, &w.from},
		{"iat", s.AnyIssuedAt, -s.IssuedAtSkew, &w.issued},
	} {
		at, there, ok := c.date(bound.claim)
		switch {
		case !ok:
			return w, malformed
		case !there && bound.at == &w.until && s.NeedsExpiresAt:
			return w, endless
		}
		if there && !bound.off {
			*bound.at = max(at+bound.skew, 1)
		}
	}
	return w, nil
}

// checkOrigin refuses a token of another issuer or for another audience.
func checkOrigin(s *token.Settings, c claims) *pipeline.Rejection {
	if list := s.Issuers; len(list) > 0 && !slices.Contains(list, c.text("iss")) {
		return wrongIssuer
	}
	if list := s.Audiences; len(list) > 0 {
		audiences, _ := c.list("aud")
		if !slices.ContainsFunc(audiences, func(a string) bool { return slices.Contains(list, a) }) {
			return wrongAudience
		}
	}
	return nil
}

// maxPolicies is how many policies a token may name.
const maxPolicies = 50

// policiesOf returns the policies of a token: those that it names, then those of its
// scopes, or else the default ones.
func (v *Verifier) policiesOf(c claims) (policies []string, ok bool) {
	if field := v.settings.PolicyField; field != "" {
		if policies, ok = c.list(field); !ok {
			return nil, false
		}
	}
	if len(v.settings.ScopePolicies) > 0 {
		scopes, ok := c.list(orElse(v.settings.ScopeField, "scope"))
		if !ok {
			return nil, false
		}
		for _, list := range scopes {
			for scope := range strings.FieldsSeq(list) {
				if policy := v.settings.ScopePolicies[scope]; policy != "" && !slices.Contains(policies, policy) {
					policies = append(policies, policy)
				}
			}
		}
	}
	if len(policies) == 0 {
		policies = v.settings.DefaultPolicies
	}
	return policies, len(policies) <= maxPolicies
}

// text returns a claim that is a string or a number, and "" for any other.
func (c claims) text(name string) string {
	raw := c[name]
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

// list returns a claim that is a string or a list of strings, and nil if it is missing
// or empty. ok is false for anything else.
func (c claims) list(name string) (list []string, ok bool) {
	raw, there := c[name]
	if !there || string(raw) == "null" || string(raw) == `""` {
		return nil, true
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}, true
	}
	return list, json.Unmarshal(raw, &list) == nil
}

// furthest bounds dates, in unix seconds: the end of the year 9999.
const furthest = 253402300799

// date returns a claim that is a NumericDate (RFC 7519 section 2).
func (c claims) date(name string) (at int64, there, ok bool) {
	raw, there := c[name]
	if !there || string(raw) == "null" {
		return 0, false, true
	}
	var seconds float64
	if json.Unmarshal(raw, &seconds) != nil || math.IsNaN(seconds) {
		return 0, false, false
	}
	return int64(min(max(seconds, 0), furthest)), true, true
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
