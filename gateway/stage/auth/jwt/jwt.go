// Package jwt verifies JSON Web Tokens (RFC 7519) and returns their identity. A token
// that was verified is cached.
package jwt

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwks"
	"github.com/sluicegate/sluice/internal/definition"
	token "github.com/sluicegate/sluice/internal/definition/jwt"
)

// Tokens verifies the tokens of all APIs. It is safe for concurrent use.
type Tokens struct {
	sets  *jwks.Sets
	known *known
}

// New returns Tokens that cache up to size tokens.
func New(sets *jwks.Sets, size int) *Tokens {
	return &Tokens{sets: sets, known: newKnown(size)}
}

// Stats is what Tokens did and holds.
type Stats struct {
	Verified uint64 // signatures checked
	Entries  int    // cached tokens
}

// Stats returns current numbers.
func (t *Tokens) Stats() Stats {
	return Stats{Verified: t.known.verified.Load(), Entries: t.known.tokens.Len()}
}

// An Identity is the caller that a token identifies. It is shared between requests.
type Identity struct {
	Hash    string              // identifies the caller in counters
	Name    string              // the caller in logs: the beginning of Hash
	Session *definition.Session // with the policies that the token names
	Grants  pipeline.Grants
	Claims  []byte // the token's, a JSON object

	window
}

// A Verifier verifies the tokens of one API.
type Verifier struct {
	tokens   *Tokens
	settings token.Settings
	org      string
	salt     uint64 // differs between verifiers
	sets     []keySet
	static   *jwks.Keys // instead of sets
	bound    bool       // sets have issuers
	allowed  []jose.SignatureAlgorithm
}

// A keySet is where keys are looked up for the tokens of an issuer.
type keySet struct {
	*jwks.Set
	issuer string // "": any
}

var errNoIssuer = errors.New("jwt_jwks_uris: each of several key sets needs its issuer")

// Compile returns the Verifier of an API. The error names the member of the definition
// that is invalid.
func (t *Tokens) Compile(def *definition.API) (*Verifier, error) {
	settings := def.JWT
	if settings == nil {
		settings = new(token.Settings)
	}
	keys, err := settings.Keys()
	if err != nil {
		return nil, fmt.Errorf("jwt_source: %w", err)
	}
	v := &Verifier{tokens: t, settings: *settings, org: def.OrgID, allowed: algorithms(settings.Method), salt: t.known.salt()}
	if len(keys.Sets) > 1 && slices.ContainsFunc(keys.Sets, func(s token.Set) bool { return s.Issuer == "" }) {
		return nil, errNoIssuer
	}
	for _, set := range keys.Sets {
		v.sets = append(v.sets, keySet{t.sets.Get(set.URL), set.Issuer})
		v.bound = v.bound || set.Issuer != ""
	}
	if keys.Key != nil {
		v.static = jwks.NewKeys(jwks.Key{Public: keys.Key})
	}
	return v, nil
}

// algorithms returns the algorithms that tokens may be signed with. Symmetric and
// asymmetric ones are never mixed, so that a public key cannot be used as a secret.
func algorithms(method string) []jose.SignatureAlgorithm {
	var (
		rsa   = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}
		ecdsa = []jose.SignatureAlgorithm{jose.ES256, jose.ES384, jose.ES512}
		eddsa = []jose.SignatureAlgorithm{jose.EdDSA}
	)
	switch method {
	case token.HMAC:
		return []jose.SignatureAlgorithm{jose.HS256, jose.HS384, jose.HS512}
	case token.RSA:
		return rsa
	case token.ECDSA:
		return ecdsa
	case token.EdDSA:
		return eddsa
	}
	return append(append(rsa, ecdsa...), eddsa...)
}

// MaxToken is the longest token that is accepted, in bytes.
const MaxToken = 8 << 10

// Find returns the identity of a token, or why it is refused. A cached token does not
// allocate. With dry the result is not cached.
func (v *Verifier) Find(text []byte, now time.Time, dry bool) (*Identity, *pipeline.Rejection) {
	if len(text) > MaxToken {
		return nil, malformed
	}
	hash := v.tokens.known.hash(text, v.salt)
	generation := v.generation()
	if e := v.tokens.known.find(hash, text, v.salt, generation); e != nil {
		return e.identity.at(now)
	}
	id, generation, refused := v.verify(string(text))
	if refused == nil {
		id, refused = id.at(now)
	}
	if refused != nil {
		return nil, refused
	}
	if !dry {
		v.tokens.known.tokens.Put(hash, &entry{text: bytes.Clone(text), salt: v.salt, generation: generation, identity: id})
	}
	return id, nil
}

// at returns the identity if its token is valid at that time.
func (id *Identity) at(now time.Time) (*Identity, *pipeline.Rejection) {
	if refused := id.refuses(now); refused != nil {
		return nil, refused
	}
	return id, nil
}

// generation returns a number that changes when an issuer changes its keys.
func (v *Verifier) generation() uint64 {
	var sum uint64
	for _, s := range v.sets {
		sum += s.Generation()
	}
	return sum
}

// Explain says what a token has to be for the API.
func (v *Verifier) Explain(f *pipeline.Finding) {
	s := &v.settings
	f.Fact("jwt_signing_method", orElse(s.Method, "whatever the key set has"), "", "definition")
	explainClaims(s, f)
	for _, set := range v.sets {
		if set.issuer != "" {
			f.Fact("jwt_jwks_uris", set.issuer, "", "definition")
		}
	}
	f.Fact("jwt_identity_base_field", orElse(s.IdentityField, "sub"), "", "definition")
}

func explainClaims(s *token.Settings, f *pipeline.Finding) {
	if len(s.Issuers) > 0 {
		f.Fact("jwt_allowed_issuers", strings.Join(s.Issuers, ", "), "", "definition")
	}
	if len(s.Audiences) > 0 {
		f.Fact("jwt_allowed_audiences", strings.Join(s.Audiences, ", "), "", "definition")
	}
	if s.NeedsExpiresAt {
		f.Fact("jwt_require_expires_at", "true", "", "definition")
	}
}
