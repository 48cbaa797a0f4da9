// Package jwt is what a definition says about JSON Web Tokens (RFC 7519): which
// keys verify them, and what their claims mean.
package jwt

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// Settings are the members of an API definition that concern tokens.
type Settings struct {
	// Algorithm family of tokens: hmac, rsa, ecdsa or eddsa. Default with key sets: that of the key.
	// Example: "rsa"
	Method string `json:"jwt_signing_method,omitempty" oneof:"hmac rsa ecdsa eddsa"`
	// Base64 of a PEM public key, of a secret of at least 32 bytes, or of the URL of a key set; a PEM key or a URL may be given as it is. Default: keys have secrets of their own (jwt_data.secret).
	// Example: "https://login.example/.well-known/jwks.json"
	Source string `json:"jwt_source,omitempty"`
	// URLs of key sets, at most 20, in place of jwt_source.
	// Example: [{"url": "https://login.example/.well-known/jwks.json", "issuer": "https://login.example"}]
	KeySets []Set `json:"jwt_jwks_uris,omitempty"`

	// Claim that names the client. Default: sub.
	// Example: "sub"
	IdentityField string `json:"jwt_identity_base_field,omitempty"`
	// Claim that names a policy, or several.
	// Example: "plan"
	PolicyField string `json:"jwt_policy_field_name,omitempty"`
	// Policies of tokens that name none, at most 1000.
	// Example: ["free"]
	DefaultPolicies []string `json:"jwt_default_policies,omitempty"`
	// Claim with scopes, as a list or separated by spaces. Default: scope.
	// Example: "scope"
	ScopeField string `json:"jwt_scope_claim_name,omitempty"`
	// Policy of each scope, at most 1000.
	// Example: {"orders:read": "readers"}
	ScopePolicies map[string]string `json:"jwt_scope_to_policy_mapping,omitempty"`

	// Issuers of which iss must be one, at most 1000. Default: any.
	// Example: ["https://login.example"]
	Issuers []string `json:"jwt_allowed_issuers,omitempty"`
	// Audiences of which aud must have one, at most 1000. Default: any.
	// Example: ["orders"]
	Audiences []string `json:"jwt_allowed_audiences,omitempty"`

	// Seconds that iat may be in the future, at most 86400.
	// Example: 30
	IssuedAtSkew int64 `json:"jwt_issued_at_validation_skew,omitempty"`
	// Seconds that a token is accepted after exp, at most 86400.
	// Example: 30
	ExpiresAtSkew int64 `json:"jwt_expires_at_validation_skew,omitempty"`
	// Seconds that a token is accepted before nbf, at most 86400.
	// Example: 30
	NotBeforeSkew int64 `json:"jwt_not_before_validation_skew,omitempty"`
	// Whether iat is not checked.
	AnyIssuedAt bool `json:"jwt_disable_issued_at_validation,omitempty"`
	// Whether exp is not checked.
	AnyExpiresAt bool `json:"jwt_disable_expires_at_validation,omitempty"`
	// Whether a token without exp is refused.
	NeedsExpiresAt bool `json:"jwt_require_expires_at,omitempty"`
	// Whether nbf is not checked.
	AnyNotBefore bool `json:"jwt_disable_not_before_validation,omitempty"`

	// Whether jwt_identity_base_field names the key in place of the token's key id; without effect with jwt_source or jwt_jwks_uris.
	SkipKeyID bool `json:"jwt_skip_kid,omitempty"`
}

// A Set is where an issuer publishes its keys (RFC 7517).
type Set struct {
	// URL of the key set (RFC 7517), http or https.
	// Example: "https://login.example/.well-known/jwks.json"
	URL string `json:"url"`
	// Issuer whose tokens the keys verify, as in iss; others are refused. Needed with several key sets.
	// Example: "https://login.example"
	Issuer  string         `json:"issuer,omitempty"`
	Unknown object.Unknown `json:"-"`
}

// The families of algorithms that a token may be signed with (RFC 7518, RFC 8037).
const (
	HMAC  = "hmac"
	RSA   = "rsa"
	ECDSA = "ecdsa"
	EdDSA = "eddsa"
)

var methods = []string{HMAC, RSA, ECDSA, EdDSA}

// Bounds of what is said about tokens.
const (
	maxSets   = 20
	maxList   = 1_000
	maxSkew   = 24 * 60 * 60 // seconds
	leastHMAC = 32           // bytes of a secret (RFC 7518 section 3.2)
	leastRSA  = 2048         // bits (RFC 7518 section 3.3)

	leastCurve = 256 // bits (RFC 7518 section 3.4)
)

// Keys is what tokens are verified with: key sets, or one key.
type Keys struct {
	Sets []Set
	Key  any // *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey, or []byte with Method hmac
}

// Keys reads what verifies tokens. The error says what is wrong with Source.
func (s *Settings) Keys() (Keys, error) {
	if len(s.KeySets) > 0 {
		return Keys{Sets: s.KeySets}, nil
	}
	source := s.Source
	if !isAddress(source) && !isPEM(source) {
		decoded, err := base64.StdEncoding.DecodeString(source)
		if err != nil {
			return Keys{}, errors.New("must be base64 of a key, of a secret or of the address of a key set")
		}
		source = string(decoded)
	}
	switch {
	case isAddress(source):
		return Keys{Sets: []Set{{URL: source}}}, checkAddress(source)
	case s.Method == HMAC:
		if len(source) < leastHMAC {
			return Keys{}, fmt.Errorf("a secret must have %d bytes at least", leastHMAC)
		}
		return Keys{Key: []byte(source)}, nil
	}
	key, err := publicKey(source)
	if err == nil && !fits(key, s.Method) {
		err = fmt.Errorf("is no key for jwt_signing_method %s", s.Method)
	}
	return Keys{Key: key}, err
}

// OwnSecrets reports whether every token is verified with what the session of the
// key has that the token names: in its key id, or else in the claim IdentityField.
// s may be nil.
func (s *Settings) OwnSecrets() bool { return s == nil || s.Source == "" && len(s.KeySets) == 0 }

func isAddress(s string) bool {
	return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
}

func isPEM(s string) bool { return strings.HasPrefix(strings.TrimSpace(s), "-----BEGIN ") }

func checkAddress(address string) error {
	if u, err := url.Parse(address); err != nil || u.Host == "" || !isAddress(address) || u.User != nil {
		return errors.New("must be an http or https address, without a user")
	}
	return nil
}

// publicKey reads a key or certificate in PEM.
func publicKey(text string) (any, error) {
	block, _ := pem.Decode([]byte(strings.TrimSpace(text)))
	if block == nil {
		return nil, errors.New("must be a public key in PEM")
	}
	if strings.Contains(block.Type, "PRIVATE") {
		return nil, errors.New("is a private key, which only the issuer may have; give the public key")
	}
	var key any
	var err error
	switch block.Type {
	case "CERTIFICATE":
		var cert *x509.Certificate
		if cert, err = x509.ParseCertificate(block.Bytes); err == nil {
			key = cert.PublicKey
		}
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	default:
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot be read as a public key: %w", err)
	}
	return key, CheckKey(key)
}

// CheckKey says why signatures cannot be verified with a key, or must not be.
func CheckKey(key any) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() < leastRSA {
			return fmt.Errorf("is an RSA key of %d bits, %d are the least", k.N.BitLen(), leastRSA)
		}
	case *ecdsa.PublicKey:
		if k.Curve.Params().BitSize < leastCurve {
			return fmt.Errorf("is a key on the curve %s, P-256 is the least", k.Curve.Params().Name)
		}
	case ed25519.PublicKey:
	default:
		return errors.New("is no RSA, ECDSA or Ed25519 key that others may know")
	}
	return nil
}

func fits(key any, method string) bool {
	switch key.(type) {
	case *rsa.PublicKey:
		return method == RSA
	case *ecdsa.PublicKey:
		return method == ECDSA
	case ed25519.PublicKey:
		return method == EdDSA
	}
	return false
}

// Check returns everything that is wrong with the settings of an API that takes
// tokens. s may be nil.
func (s *Settings) Check() []object.Fault {
	var f object.Faults
	if s == nil {
		s = &Settings{}
	}
	own := s.OwnSecrets()
	if own {
		s.checkOwn(&f)
	} else {
		s.checkKeys(&f)
	}
	for name, skew := range map[string]int64{
		"jwt_issued_at_validation_skew":  s.IssuedAtSkew,
		"jwt_expires_at_validation_skew": s.ExpiresAtSkew,
		"jwt_not_before_validation_skew": s.NotBeforeSkew,
	} {
		if skew < 0 || skew > maxSkew {
			f.Add(name, fmt.Sprintf("must be 0 to %d seconds", maxSkew))
		}
	}
	if s.NeedsExpiresAt && s.AnyExpiresAt {
		f.Add("jwt_require_expires_at", "contradicts jwt_disable_expires_at_validation: leave one of them out")
	}
	for name, n := range map[string]int{
		"jwt_default_policies": len(s.DefaultPolicies), "jwt_allowed_issuers": len(s.Issuers),
		"jwt_allowed_audiences": len(s.Audiences), "jwt_scope_to_policy_mapping": len(s.ScopePolicies),
	} {
		if n > maxList {
			f.Count(name, n, maxList)
		}
	}
	if !own && !s.namesPolicies() {
		f.Add("jwt_policy_field_name", "is needed, or jwt_default_policies or jwt_scope_to_policy_mapping: without a policy no token opens anything")
	}
	slices.SortFunc(f, func(a, b object.Fault) int { return strings.Compare(a.Path, b.Path) })
	return f
}

func (s *Settings) namesPolicies() bool {
	return s.PolicyField != "" || len(s.DefaultPolicies) > 0 || len(s.ScopePolicies) > 0
}

// checkOwn checks an API whose keys have secrets of their own. One that gives
// policies to tokens was meant to have a source: without it those are of no use.
func (s *Settings) checkOwn(f *object.Faults) {
	switch {
	case s.namesPolicies():
		f.Add("jwt_source", "is needed with policies for tokens, or jwt_jwks_uris: a key, a secret or the address of a key set. Without it keys have secrets and policies of their own (jwt_data.secret): leave jwt_policy_field_name, jwt_default_policies and jwt_scope_to_policy_mapping out then")
	case !slices.Contains(methods, s.Method):
		f.Add("jwt_signing_method", "must be hmac, rsa, ecdsa or eddsa where jwt_source is empty: it says what jwt_data.secret of keys holds")
	}
}

// checkSet checks one of the key sets. With several, a key is bound to its issuer: each
// issuer could otherwise make tokens in the name of the others.
func (s *Settings) checkSet(f *object.Faults, i int) {
	set, place := s.KeySets[i], object.Item("jwt_jwks_uris", i)
	if err := checkAddress(set.URL); err != nil {
		f.Add(object.Member(place, "url"), err.Error())
	}
	switch {
	case set.Issuer == "" && len(s.KeySets) > 1:
		f.Add(object.Member(place, "issuer"), "is needed with several key sets: the iss of the tokens that the keys of this one verify")
	case set.Issuer != "" && len(s.Issuers) > 0 && !slices.Contains(s.Issuers, set.Issuer):
		f.Add(object.Member(place, "issuer"), "is not in jwt_allowed_issuers: no token of it would be accepted")
	}
}

func (s *Settings) checkKeys(f *object.Faults) {
	if s.Method != "" && !slices.Contains(methods, s.Method) {
		f.Add("jwt_signing_method", "must be hmac, rsa, ecdsa or eddsa")
		return
	}
	if len(s.KeySets) > maxSets {
		f.Count("jwt_jwks_uris", len(s.KeySets), maxSets)
		return
	}
	for i := range s.KeySets {
		s.checkSet(f, i)
	}
	keys, err := s.Keys()
	switch {
	case err != nil:
		f.Add("jwt_source", err.Error())
	case len(keys.Sets) > 0 && s.Method == HMAC:
		f.Add("jwt_signing_method", "must not be hmac with keys that everybody can read")
	case len(keys.Sets) == 0 && s.Method == "":
		f.Add("jwt_signing_method", "is needed with a key in jwt_source: hmac, rsa, ecdsa or eddsa")
	}
}
