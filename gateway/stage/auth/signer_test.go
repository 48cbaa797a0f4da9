package auth

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwks"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwt"
	"github.com/sluicegate/sluice/internal/definition"
	token "github.com/sluicegate/sluice/internal/definition/jwt"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

const ownSecret = "a secret of two and thirty bytes"

// signer returns the session of a key that verifies its own tokens.
func signer(alias string, more func(*definition.Session)) *definition.Session {
	s := &definition.Session{OrgID: "org1", Alias: alias, Extra: &definition.Extra{JWT: &token.Key{Secret: ownSecret}}}
	if more != nil {
		more(s)
	}
	return s
}

// signedBy returns a token that names a key, whose secret signs it.
func signedBy(t testing.TB, kid, secret string, claims map[string]any) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithHeader("kid", kid)
	made, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: []byte(secret)}, options)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := made.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func signersOnly() *definition.API {
	return &definition.API{OrgID: "org1", EnableJWT: true, JWT: &token.Settings{Method: token.HMAC}}
}

func withTokens(st keystore.Store) *Auth {
	return New(NewSessions(options(st)), 3).WithTokens(jwt.New(jwks.New(jwks.Options{}), 100))
}

// putNamed stores a session under a name of an organisation.
func putNamed(t testing.TB, st *store, name string, s *definition.Session) {
	t.Helper()
	if err := st.Put(t.Context(), hasher.Hash("org1"+name), s); err != nil {
		t.Fatal(err)
	}
}

func TestATokenStandsForTheKeyThatItNames(t *testing.T) {
	st := newStore()
	generated := issue(t, st, signer("generated", nil))
	putNamed(t, st, "app", signer("app", nil))
	putNamed(t, st, "off", signer("off", func(s *definition.Session) { s.IsInactive = true }))
	putNamed(t, st, "past", signer("past", func(s *definition.Session) { s.Expires = 1 }))
	putNamed(t, st, "bound", signer("bound", func(s *definition.Session) { s.Extra.Certificate = strings.Repeat("0", 64) }))
	putNamed(t, st, "plain", &definition.Session{Alias: "plain"})
	enrol(t, st, "org1", "bob", "password", nil)
	s := compiled(t, withTokens(st), signersOnly())
	foreign := signersOnly()
	foreign.OrgID = "org2"
	other := compiled(t, withTokens(st), foreign)
	claims := map[string]any{"sub": "ann"}
	over := map[string]any{"exp": time.Now().Unix() - 1}
	for _, c := range []struct {
		name, value string
		stage       pipeline.Stage
		status      int
		reason      string
	}{
		{"none", "", s, 401, "auth_missing"},
		{"no token", "Bearer x", s, 401, "token_malformed"},
		{"another scheme", shows("bob", "password"), s, 401, "token_malformed"},
		{"a name", "Bearer " + signedBy(t, "app", ownSecret, claims), s, 0, "app"},
		{"a whole name", signedBy(t, "org1app", ownSecret, claims), s, 0, "app"},
		{"a generated key", signedBy(t, generated, ownSecret, claims), s, 0, "generated"},
		{"another secret", signedBy(t, "app", ownSecret+"x", claims), s, 401, "token_signature"},
		{"nobody", signedBy(t, "nobody", ownSecret, claims), s, 401, "token_signature"},
		{"a key without a secret", signedBy(t, "plain", ownSecret, claims), s, 401, "token_signature"},
		{"a user", signedBy(t, "bob", ownSecret, claims), s, 401, "token_signature"},
		{"a short name", signedBy(t, "ap", ownSecret, claims), s, 401, "token_signature"},
		{"another organisation", signedBy(t, "app", ownSecret, claims), other, 401, "token_signature"},
		{"a token that is over", signedBy(t, "app", ownSecret, over), s, 401, "auth_expired"},
		{"an inactive key", signedBy(t, "off", ownSecret, claims), s, 403, "auth_inactive"},
		{"an inactive key, another secret", signedBy(t, "off", ownSecret+"x", claims), s, 401, "token_signature"},
		{"a key that is over", signedBy(t, "past", ownSecret, claims), s, 401, "auth_expired"},
		{"a key that is bound", signedBy(t, "bound", ownSecret, claims), s, 401, "certificate_missing"},
	} {
		for _, again := range []string{"", " again"} {
			ex := exchange("Authorization", c.value)
			v := c.stage.Handle(ex)
			if c.status == 0 {
				if v != pipeline.Next || ex.Session.Alias != c.reason || ex.Claims == nil || len(ex.KeyHash) != 64 || string(ex.Token) != strings.TrimPrefix(c.value, "Bearer ") {
					t.Errorf("%s%s: verdict %d, %+v, session %+v", c.name, again, v, ex.Rejection, ex.Session)
				}
			} else if v != pipeline.Rejected || ex.Rejection.Status != c.status || ex.Rejection.Reason.String() != c.reason {
				t.Errorf("%s%s: verdict %d, %+v", c.name, again, v, ex.Rejection)
			}
			f := pipeline.Finding{Verdict: v}
			c.stage.(pipeline.Explainer).Explain(ex, &f)
			if (f.Fix == "") != (c.status == 0) || strings.Contains(f.Fix+f.Said, ownSecret) {
				t.Errorf("%s%s: explained as %+v", c.name, again, f)
			}
		}
	}
}

// The name of such a key is in every token that it signs, for all to read.
func TestTheNameOfAKeyWithASecretOpensNothing(t *testing.T) {
	st := newStore()
	generated := issue(t, st, signer("generated", nil))
	putNamed(t, st, "app", signer("app", nil))
	a := withTokens(st).WithPasswords(verifier())
	for name, def := range map[string]*definition.API{
		"token": {OrgID: "org1"}, "user": {OrgID: "org1", UseBasicAuth: true},
	} {
		s := compiled(t, a, def)
		for _, key := range []string{generated, "app", "org1app"} {
			value := key
			if def.UseBasicAuth {
				value = shows(key, ownSecret)
			}
			ex := exchange("Authorization", value)
			if s.Handle(ex) == pipeline.Next {
				t.Errorf("%s: %q opens it", name, key)
			}
		}
	}
}

func TestAKeyWithASecretLivesAsOthersDo(t *testing.T) {
	st := newStore()
	first := issue(t, st, signer("it", nil))
	second := follow(t, st, first, time.Now().Add(time.Hour))
	sessions := watched(t, st, nil)
	s := compiled(t, New(sessions, 3).WithTokens(jwt.New(jwks.New(jwks.Options{}), 100)), signersOnly())
	ask := func(kid, secret string) (*pipeline.Exchange, pipeline.Verdict) {
		ex := exchange("Authorization", signedBy(t, kid, secret, map[string]any{}))
		return ex, s.Handle(ex)
	}
	for kid, retiring := range map[string]bool{first: true, second: false} {
		if ex, v := ask(kid, ownSecret); v != pipeline.Next || ex.InGrace != retiring || ex.KeyHash != hasher.Hash(first) {
			t.Errorf("verdict %d, %+v, retiring %t", v, ex.Rejection, ex.InGrace)
		}
	}
	change := func(f func(*definition.Session)) {
		t.Helper()
		old, err := st.Get(t.Context(), hasher.Hash(first))
		if err != nil {
			t.Fatal(err)
		}
		fresh := old.Clone()
		f(fresh)
		if err := st.Put(t.Context(), hasher.Hash(first), fresh); err != nil {
			t.Fatal(err)
		}
	}
	newSecret := rand.Text() + rand.Text()
	change(func(s *definition.Session) { s.Extra.JWT = &token.Key{Secret: newSecret} })
	if ex, v := ask(second, ownSecret); v != pipeline.Rejected || ex.Rejection.Reason != pipeline.ReasonTokenSignature {
		t.Errorf("under the old secret: verdict %d, %+v", v, ex.Rejection)
	}
	if ex, v := ask(second, newSecret); v != pipeline.Next {
		t.Errorf("under the new secret: %+v", ex.Rejection)
	}
	if err := st.Delete(t.Context(), hasher.Hash(first)); err != nil {
		t.Fatal(err)
	}
	if ex, v := ask(second, newSecret); v != pipeline.Rejected || ex.Rejection != jwt.UnknownSigner {
		t.Errorf("deleted: verdict %d, %+v", v, ex.Rejection)
	}
	st.set(func() { st.err = keystore.ErrUnavailable })
	if ex, _ := ask("another", ownSecret); ex.Rejection != unavailable || ex.RetryAfter != 1 {
		t.Errorf("with the store away: %+v", ex.Rejection)
	}
}

func TestSkippedKeyIDsLeaveTheClaim(t *testing.T) {
	st := newStore()
	putNamed(t, st, "app", signer("app", nil))
	def := signersOnly()
	def.JWT.SkipKeyID, def.JWT.IdentityField = true, "client"
	s := compiled(t, withTokens(st), def)
	ex := exchange("Authorization", signedBy(t, "a fingerprint", ownSecret, map[string]any{"client": "app"}))
	if s.Handle(ex) != pipeline.Next || ex.Session.Alias != "app" {
		t.Errorf("%+v", ex.Rejection)
	}
	f := pipeline.Finding{}
	s.(pipeline.Explainer).Explain(ex, &f)
	for _, fact := range f.Facts {
		if fact.Rule == "client" && fact.Value == "app" {
			return
		}
	}
	t.Errorf("%+v", f)
}

func TestAWarmTokenOfAKeyDoesNotAllocate(t *testing.T) {
	st := newStore()
	putNamed(t, st, "app", signer("app", nil))
	s := compiled(t, withTokens(st), signersOnly())
	call := exchange("Authorization", "Bearer "+signedBy(t, "app", ownSecret, map[string]any{"exp": time.Now().Unix() + 600})).Call
	run := func() {
		ex := pipeline.For(call)
		if s.Handle(ex) != pipeline.Next {
			t.Fatal(ex.Rejection)
		}
		ex.Release()
	}
	run()
	if n := testing.AllocsPerRun(1000, run); n != 0 && !race.Enabled { // with the race detector on, pools drop what they hold at random
		t.Errorf("%v allocations", n)
	}
}
