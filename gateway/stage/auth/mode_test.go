package auth

import (
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwks"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwt"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	token "github.com/sluicegate/sluice/internal/definition/jwt"
)

// signed returns a JSON Web Token.
func signed(t *testing.T, secret []byte, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: secret}, nil)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestTheModeThatCountsLeavesNothingOfTheOneBefore(t *testing.T) {
	secret := []byte("a secret of two and thirty bytes")
	st := newStore()
	first := issue(t, st, &definition.Session{Alias: "key"})
	follow(t, st, first, time.Now().Add(time.Hour))
	def := &definition.API{
		EnableJWT: true, UseStandardAuth: true, BaseIdentity: "jwt_claim",
		AuthConfigs: map[string]*definition.Auth{"authToken": {HeaderName: "X-Key"}, "jwt": {HeaderName: "Authorization"}},
		JWT:         &token.Settings{Method: token.HMAC, Source: base64.StdEncoding.EncodeToString(secret), DefaultPolicies: []string{"gold"}},
	}
	s := compiled(t, New(NewSessions(options(st)), 3).WithTokens(jwt.New(jwks.New(jwks.Options{}), 10)), def)
	ex := exchange("", "")
	ex.Call.SetLines([]byte("X-Key: " + first + "\r\nAuthorization: Bearer " + signed(t, secret, map[string]any{"sub": "ann"}) + "\r\n"))
	if v := s.Handle(ex); v != pipeline.Next || ex.Session.Alias != "ann" || ex.Claims == nil {
		t.Fatalf("verdict %d, %+v, %+v", v, ex.Rejection, ex.Session)
	}
	if ex.InGrace {
		t.Error("the caller of the token has a key that ends before long")
	}
}

// What an organisation is stored under is nobody's key, however it is put
// together.
func TestOrganisationsAreNoKeys(t *testing.T) {
	st := newStore()
	if err := st.Put(t.Context(), credential.OrgIdentity("acme"), &definition.Session{OrgID: "acme"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ org, token string }{{"", "org:acme"}, {"org", ":acme"}, {"or", "g:acme"}} {
		o := options(st)
		o.Hasher = &credential.Hasher{Algorithm: credential.None, Prefix: hasher.Prefix}
		s := NewSessions(o)
		sc := s.scope(definition.KeyCredential, c.org)
		if e, err := s.find(&sc, []byte(c.token), time.Now()); err == nil {
			t.Errorf("%q in organisation %q is %q", c.token, c.org, e.identity())
		}
	}
	s := NewSessions(options(st))
	sc := s.scope(definition.KeyCredential, "acme")
	if _, err := s.named(&sc, credential.OrgIdentity("acme"), time.Now()); err == nil {
		t.Error("an explanation takes an organisation for a key")
	}
}

// A user has a password and no keys, also not those that a session had before it
// became a user's.
func TestAUserHasNoSuccessors(t *testing.T) {
	st := newStore()
	first := issue(t, st, &definition.Session{Alias: "it"})
	second := follow(t, st, first, time.Now().Add(time.Hour))
	session, err := st.Get(t.Context(), hasher.Hash(first))
	if err != nil {
		t.Fatal(err)
	}
	session = session.Clone()
	session.BasicAuth = &definition.BasicAuth{Password: "hashed"}
	if err := st.Put(t.Context(), hasher.Hash(first), session); err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]string{"first": first, "second": second} {
		if _, err := find(NewSessions(options(st)), key); err == nil {
			t.Errorf("the %s key opens what asks for a password", name)
		}
	}
}
