package auth

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwks"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwt"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	token "github.com/sluicegate/sluice/internal/definition/jwt"
	"github.com/sluicegate/sluice/internal/testenv"
)

// of makes an exchange one that names a key by its hash.
func of(hash string, ex *pipeline.Exchange) *pipeline.Exchange {
	ex.DryRun, ex.KeyHash = &pipeline.DryRun{}, hash
	return ex
}

func TestAKeyThatIsNamedIsOneThatCredentialsOfTheAPIStandFor(t *testing.T) {
	st := newStore()
	key := hasher.Hash(issue(t, st, &definition.Session{Alias: "key"}))
	second := hasher.Hash(follow(t, st, issue(t, st, &definition.Session{Alias: "key"}), time.Now().Add(time.Hour)))
	signing := hasher.Hash(issue(t, st, signer("signer", nil)))
	enrol(t, st, "org1", "bob", "secret", nil)
	enrol(t, st, "org2", "ann", "secret", nil)
	user, foreign := hasher.Hash("org1bob"), hasher.Hash("org2ann")
	client := hasher.Hash(issue(t, st, &definition.Session{Alias: "app", Extra: &definition.Extra{OAuthClientID: "c1"}}))
	access := hasher.Hash(accessToken(t, st, client, time.Now().Add(time.Hour)))
	a := New(NewSessions(options(st)), 3).WithPasswords(verifier()).WithTokens(jwt.New(jwks.New(jwks.Options{}), 100))
	all := map[string]string{
		"key": key, "successor": second, "signer": signing, "user": user, "foreign user": foreign, "client": client, "access token": access,
		"nobody": hasher.Hash("nobody"), "organisation": credential.OrgIdentity("org1"),
	}
	for _, c := range []struct {
		name    string
		def     *definition.API
		reason  pipeline.Reason // of the refusal of all others
		takes   []string
		unfixed bool // it is no other key that would do
	}{
		{"tokens", &definition.API{OrgID: "org1"}, pipeline.ReasonAuthUnknown, []string{"key", "successor"}, false},
		{"users", usersOnly("users"), pipeline.ReasonAuthUnknown, []string{"user"}, false},
		{"signers", signersOnly(), pipeline.ReasonTokenSignature, []string{"signer"}, false},
		{"clients", &definition.API{OrgID: "org1", UseOAuth2: true}, pipeline.ReasonAuthUnknown, []string{"client", "access token"}, false},
		{
			"an issuer", &definition.API{OrgID: "org1", EnableJWT: true, JWT: &token.Settings{Method: token.HMAC, Source: "c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M="}},
			pipeline.ReasonAuthMissing, nil, true,
		},
		{
			"users with tokens", &definition.API{OrgID: "org1", UseBasicAuth: true, UseStandardAuth: true, BaseIdentity: "basic_auth_user"},
			pipeline.ReasonAuthUnknown,
			[]string{"user"},
			false,
		},
		{
			"tokens of users", &definition.API{OrgID: "org1", UseBasicAuth: true, UseStandardAuth: true, BaseIdentity: "auth_token"},
			pipeline.ReasonAuthUnknown,
			[]string{"key", "successor"},
			false,
		},
	} {
		s := compiled(t, a, c.def).(*stage)
		for name, hash := range all {
			ex := of(hash, exchange("", ""))
			v := s.Handle(ex)
			wanted := slices.Contains(c.takes, name)
			if wanted != (v == pipeline.Next) || wanted != (ex.Session != nil) || !wanted && ex.Rejection.Reason != c.reason {
				t.Errorf("%s: %s: %v %+v %+v", c.name, name, v, ex.Rejection, ex.Session)
				continue
			}
			f := &pipeline.Finding{}
			s.Explain(ex, f)
			if !wanted && (f.Fix == "" || strings.Contains(f.Fix, "key_hash") == c.unfixed) {
				t.Errorf("%s: %s: %q", c.name, name, f.Fix)
			}
		}
	}
}

// What is named in place of a credential needs the certificate that it would need.
func TestAKeyThatIsNamedNeedsItsCertificate(t *testing.T) {
	st, authority := newStore(), testenv.NewAuthority(t, "a")
	known, stranger := authority.Client("known"), authority.Client("stranger")
	put := func(name string, s *definition.Session) string {
		if err := st.Put(t.Context(), hasher.Hash(name), s); err != nil {
			t.Fatal(err)
		}
		return hasher.Hash(name)
	}
	own := put("org1"+sumOf(known), &definition.Session{OrgID: "org1"})
	plain := hasher.Hash(issue(t, st, &definition.Session{OrgID: "org1"}))
	bound := hasher.Hash(issue(t, st, &definition.Session{OrgID: "org1", Extra: &definition.Extra{CertificateBindings: []string{"org1" + sumOf(known)}}}))
	s := compiled(t, New(NewSessions(options(st)), 3), &definition.API{OrgID: "org1", Auth: &definition.Auth{UseCertificate: true}})
	for name, c := range map[string]struct {
		ex   *pipeline.Exchange
		want *pipeline.Rejection
	}{
		"no certificate":                         {of(own, over(nil, "")), noCertificate},
		"its certificate":                        {of(own, over(known, "")), nil},
		"another certificate":                    {of(own, over(stranger, "")), otherCertificate},
		"bound to the certificate":               {of(bound, over(known, "")), nil},
		"bound to another one":                   {of(bound, over(stranger, "")), otherCertificate},
		"bound to none":                          {of(plain, over(known, "")), otherCertificate},
		"nobody's":                               {of(hasher.Hash("nobody"), over(known, "")), unknownCertificate},
		"nobody's, with a certificate of nobody": {of(hasher.Hash("nobody"), over(stranger, "")), unknownCertificate},
	} {
		s.Handle(c.ex)
		if c.ex.Rejection != c.want {
			t.Errorf("%s: %+v, want %+v", name, c.ex.Rejection, c.want)
		}
	}
}
