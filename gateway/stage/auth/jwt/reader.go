package jwt

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	token "github.com/sluicegate/sluice/internal/definition/jwt"
)

// A Reader reads the tokens of an API whose keys have secrets of their own. The token
// names its key, which the caller looks up between Read and Verify.
type Reader struct {
	tokens   *Tokens
	settings token.Settings
	salt     uint64 // differs between readers
	allowed  []jose.SignatureAlgorithm
}

// A Signed is a token that was read. Its content is not trustworthy before it was
// verified.
type Signed struct {
	Name   []byte // of the key
	From   string // where the name is in the token: "kid", or a claim
	Claims []byte // a JSON object

	jws    *jose.JSONWebSignature // nil once verified
	secret string                 // that it was verified with; "" if it was not
	window window
	means  *pipeline.Rejection // why its claims are refused; nil: they are accepted
}

var errNoMethod = errors.New("jwt_signing_method: must say what the secrets of keys are, where jwt_source is empty")

// Reader returns the Reader of an API without a source of keys. The error names the
// member of the definition that is invalid.
func (t *Tokens) Reader(def *definition.API) (*Reader, error) {
	if def.JWT == nil || def.JWT.Method == "" {
		return nil, errNoMethod
	}
	return &Reader{tokens: t, salt: t.known.salt(), settings: *def.JWT, allowed: algorithms(def.JWT.Method)}, nil
}

// Read reads a token. A cached token does not allocate.
func (r *Reader) Read(text []byte) (*Signed, *pipeline.Rejection) {
	if len(text) > MaxToken {
		return nil, malformed
	}
	known := r.tokens.known
	if e := known.find(known.hash(text, r.salt), text, r.salt, 0); e != nil {
		return e.signed, nil
	}
	return r.parse(string(text))
}

// parse reads a token that is not cached.
func (r *Reader) parse(text string) (*Signed, *pipeline.Rejection) {
	jws, refused := parse(text, r.allowed)
	if refused != nil {
		return nil, refused
	}
	payload := jws.UnsafePayloadWithoutVerification()
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil || c == nil {
		return nil, malformed
	}
	s := &Signed{jws: jws, Claims: bytes.Clone(payload), From: "kid"}
	if s.window, refused = windowOf(&r.settings, c); refused != nil {
		return nil, refused
	}
	name := jws.Signatures[0].Header.KeyID
	if name == "" || r.settings.SkipKeyID {
		s.From = orElse(r.settings.IdentityField, "sub")
		name = c.text(s.From)
	}
	if name == "" {
		return nil, noIdentity
	}
	s.Name, s.means = []byte(name), checkOrigin(&r.settings, c)
	return s, nil
}

// Verify verifies a token with the secret of the key that it names, "" if the key has
// none, and returns why it is refused, or nil. A token that is cached with that secret
// does not allocate. With dry the result is not cached.
func (r *Reader) Verify(text []byte, s *Signed, secret string, now time.Time, dry bool) *pipeline.Rejection {
	if secret == "" {
		return UnknownSigner
	}
	if s.secret != secret {
		fresh, refused := r.check(string(text), s, secret)
		if refused != nil {
			return refused
		}
		if !dry {
			hash := r.tokens.known.hash(text, r.salt)
			r.tokens.known.tokens.Put(hash, &entry{text: bytes.Clone(text), salt: r.salt, signed: fresh})
		}
	}
	if s.means != nil {
		return s.means
	}
	return s.window.refuses(now)
}

// check checks the signature of a token, and returns what is cached of it.
func (r *Reader) check(text string, s *Signed, secret string) (*Signed, *pipeline.Rejection) {
	public, err := token.Public(secret, r.settings.Method)
	if err != nil {
		return nil, otherSecret
	}
	jws := s.jws
	if jws == nil { // it was verified with another secret
		var refused *pipeline.Rejection
		if jws, refused = parse(text, r.allowed); refused != nil {
			return nil, refused
		}
	}
	r.tokens.known.verified.Add(1)
	if _, err := jws.Verify(public); err != nil {
		return nil, badSignature
	}
	fresh := *s
	fresh.jws, fresh.secret = nil, secret
	return &fresh, nil
}

// Explain says what a token has to be, and what is wrong with the key that it names.
func (r *Reader) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	s := &r.settings
	f.Fact("jwt_signing_method", s.Method, "", "definition")
	explainClaims(s, f)
	switch ex.Rejection {
	case UnknownSigner:
		f.Fix = "have the token name a key that has jwt_data.secret, in its kid or else in the claim " + orElse(s.IdentityField, "sub") + "; with jwt_skip_kid its kid is not looked at"
	case otherSecret:
		f.Fix = "give the key a jwt_data.secret of the kind that jwt_signing_method asks for: a shared secret for hmac, a public key in PEM for the others"
	case badSignature:
		f.Fix = "sign the token with the secret of the key that it names"
	case wrongAlgorithm:
		f.Fix = "sign the token with an algorithm of jwt_signing_method"
	}
}
