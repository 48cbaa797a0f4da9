package jwt

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	token "github.com/sluicegate/sluice/internal/definition/jwt"
)

func reader(t testing.TB, tokens *Tokens, s token.Settings) *Reader {
	t.Helper()
	r, err := tokens.Reader(&definition.API{JWT: &s})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// verdict is what becomes of a token whose key has a secret.
func (r *Reader) verdict(text []byte, secret string) (*Signed, *pipeline.Rejection) {
	s, refused := r.Read(text)
	if refused == nil {
		refused = r.Verify(text, s, secret, now, false)
	}
	return s, refused
}

type some = map[string]any

func TestTokensNameTheirKeys(t *testing.T) {
	for name, c := range map[string]struct {
		settings   token.Settings
		kid        string
		claims     some
		want, from string
		refused    *pipeline.Rejection
	}{
		"key id":                        {token.Settings{}, "app", some{"sub": "ann"}, "app", "kid", nil},
		"no key id":                     {token.Settings{}, "", some{"sub": "ann"}, "ann", "sub", nil},
		"key id that does not count":    {token.Settings{SkipKeyID: true}, "app", some{"sub": "ann"}, "ann", "sub", nil},
		"a claim":                       {token.Settings{IdentityField: "client"}, "", some{"sub": "ann", "client": "app"}, "app", "client", nil},
		"a claim that is a number":      {token.Settings{IdentityField: "client"}, "", some{"client": 12}, "12", "client", nil},
		"a key id before a claim":       {token.Settings{IdentityField: "client"}, "app", some{"client": "other"}, "app", "kid", nil},
		"nothing":                       {token.Settings{}, "", some{"name": "ann"}, "", "", noIdentity},
		"a claim that is a list":        {token.Settings{}, "", some{"sub": []string{"ann"}}, "", "", noIdentity},
		"nothing but a skipped key id":  {token.Settings{SkipKeyID: true}, "app", some{}, "", "", noIdentity},
		"an end that is no time":        {token.Settings{}, "app", some{"exp": "soon"}, "", "", malformed},
		"an end that has passed":        {token.Settings{}, "app", some{"exp": now.Unix()}, "app", "kid", expired},
		"an end that has just passed":   {token.Settings{ExpiresAtSkew: 1}, "app", some{"exp": now.Unix()}, "app", "kid", nil},
		"a beginning to come":           {token.Settings{}, "app", some{"nbf": now.Unix() + 1}, "app", "kid", notYet},
		"an issuer that is not allowed": {token.Settings{Issuers: []string{"us"}}, "app", some{"iss": "them"}, "app", "kid", wrongIssuer},
		"another audience":              {token.Settings{Audiences: []string{"us"}}, "app", some{"aud": "them"}, "app", "kid", wrongAudience},
	} {
		c.settings.Method = token.HMAC
		r := reader(t, newTokens(), c.settings)
		text := sign(t, jose.HS256, secret, c.kid, c.claims)
		for _, again := range []string{"", " again"} {
			s, refused := r.verdict(text, string(secret))
			if refused != c.refused {
				t.Errorf("%s%s: %+v", name, again, refused)
			}
			if c.want != "" && (s == nil || string(s.Name) != c.want || s.From != c.from) {
				t.Errorf("%s%s: %+v", name, again, s)
			}
		}
	}
}

func TestTheMethodOfTheDefinitionAloneSaysWhatASecretIs(t *testing.T) {
	keys := keyring()
	public := pemOf(t, keys[token.RSA])
	claims := some{"sub": "app"}
	for name, c := range map[string]struct {
		method, secret string
		text           []byte
		want           *pipeline.Rejection
	}{
		"hmac":                            {token.HMAC, string(secret), sign(t, jose.HS512, append(secret, make([]byte, 32)...), "", claims), badSignature},
		"rsa":                             {token.RSA, public, sign(t, jose.RS256, keys[token.RSA], "", claims), nil},
		"ecdsa":                           {token.ECDSA, pemOf(t, keys[token.ECDSA]), sign(t, jose.ES256, keys[token.ECDSA], "", claims), nil},
		"eddsa":                           {token.EdDSA, pemOf(t, keys[token.EdDSA]), sign(t, jose.EdDSA, keys[token.EdDSA], "", claims), nil},
		"a public key as a shared secret": {token.RSA, public, sign(t, jose.HS256, []byte(public), "", claims), wrongAlgorithm},
		"the same, where hmac is asked":   {token.HMAC, public, sign(t, jose.HS256, []byte(public), "", claims), otherSecret},
		"a shared secret for rsa":         {token.RSA, string(secret), sign(t, jose.RS256, keys[token.RSA], "", claims), otherSecret},
		"a key of another kind":           {token.RSA, pemOf(t, keys[token.ECDSA]), sign(t, jose.RS256, keys[token.RSA], "", claims), otherSecret},
		"none":                            {token.HMAC, string(secret), []byte("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhcHAifQ."), wrongAlgorithm},
		"rsa for hmac":                    {token.HMAC, string(secret), sign(t, jose.RS256, keys[token.RSA], "", claims), wrongAlgorithm},
		"no secret":                       {token.HMAC, "", sign(t, jose.HS256, secret, "", claims), UnknownSigner},
		"no token":                        {token.HMAC, string(secret), []byte("x"), malformed},
		"too long":                        {token.HMAC, string(secret), bytes.Repeat([]byte("x"), MaxToken+1), malformed},
		"claims that are no object":       {token.HMAC, string(secret), sign(t, jose.HS256, secret, "", []byte(`"sub"`)), malformed},
	} {
		if _, refused := reader(t, newTokens(), token.Settings{Method: c.method}).verdict(c.text, c.secret); refused != c.want {
			t.Errorf("%s: %+v", name, refused)
		}
	}
	for _, def := range []*definition.API{{}, {JWT: &token.Settings{}}} {
		if _, err := newTokens().Reader(def); err == nil || !strings.HasPrefix(err.Error(), "jwt_signing_method: ") {
			t.Errorf("without a method: %v", err)
		}
	}
	// Who has no secret is not to learn which keys there are.
	for _, other := range []*pipeline.Rejection{UnknownSigner, otherSecret} {
		if other.Status != badSignature.Status || other.Message != badSignature.Message || other.Reason != badSignature.Reason || other.Event != badSignature.Event {
			t.Errorf("%+v is told from %+v", other, badSignature)
		}
	}
}

func TestATokenIsOfUseUnderTheSecretAlone(t *testing.T) {
	tokens := newTokens()
	r, other := reader(t, tokens, token.Settings{Method: token.HMAC}), reader(t, tokens, token.Settings{Method: token.HMAC})
	text := sign(t, jose.HS256, secret, "app", some{"exp": now.Unix() + 60})
	verified := func() uint64 { return tokens.Stats().Verified }
	s, _ := r.Read(text)
	if refused := r.Verify(text, s, string(secret), now, true); refused != nil || tokens.Stats().Entries != 0 {
		t.Fatalf("only thought of: %+v, %+v", refused, tokens.Stats())
	}
	before := verified()
	for range 3 {
		if _, refused := r.verdict(text, string(secret)); refused != nil {
			t.Fatal(refused)
		}
	}
	if n := verified() - before; n != 1 {
		t.Errorf("verified %d times", n)
	}
	if _, refused := r.verdict(text, strings.Repeat("x", 32)); refused != badSignature {
		t.Errorf("under a new secret: %+v", refused)
	}
	if _, refused := r.verdict(text, string(secret)); refused != nil {
		t.Errorf("under the old one again: %+v", refused)
	}
	if _, refused := r.verdict(text, ""); refused != UnknownSigner {
		t.Errorf("with the secret gone: %+v", refused)
	}
	before = verified()
	if _, refused := other.verdict(text, string(secret)); refused != nil || verified() == before {
		t.Errorf("at another API: %+v, verified %d times", refused, verified()-before)
	}
	s, _ = r.Read(text)
	if refused := r.Verify(text, s, string(secret), now.Add(time.Hour), false); refused != expired {
		t.Errorf("known, and at its end: %+v", refused)
	}
}

// FuzzReader holds what is verified against the signature alone: nothing is let
// in that the secret has not signed.
func FuzzReader(f *testing.F) {
	good := sign(f, jose.HS256, secret, "app", some{"sub": "ann"})
	f.Add(good)
	f.Add(sign(f, jose.HS512, append(secret, secret...), "", some{"sub": "ann"}))
	f.Add([]byte("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhcHAifQ."))
	f.Add([]byte("a.b.c"))
	r := reader(f, newTokens(), token.Settings{Method: token.HMAC})
	f.Fuzz(func(t *testing.T, text []byte) {
		s, refused := r.verdict(text, string(secret))
		if refused != nil {
			return
		}
		jws, err := jose.ParseSignedCompact(string(text), []jose.SignatureAlgorithm{jose.HS256, jose.HS384, jose.HS512})
		if err != nil {
			t.Fatal(err)
		}
		if payload, err := jws.Verify(secret); err != nil || !bytes.Equal(payload, s.Claims) || len(s.Name) == 0 {
			t.Fatalf("%q: %v, %q", text, err, s.Claims)
		}
	})
}
