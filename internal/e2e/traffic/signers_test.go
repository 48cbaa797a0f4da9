package traffic

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// signedToken is a token that names a key.
func signedToken(t testing.TB, algorithm jose.SignatureAlgorithm, key any, kid string, claims object) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", kid))
	if err != nil {
		t.Fatal(err)
	}
	if claims == nil {
		claims = object{}
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
	return rig.Plant(text)
}

// ownSecrets is an API whose keys verify their own tokens.
func ownSecrets(id, method, target string) object {
	api := rig.APIDef(id, target, false)
	api["enable_jwt"], api["jwt_signing_method"], api["enable_context_vars"] = true, method, true
	api["version_data"] = object{"not_versioned": true, "versions": object{"Default": object{
		"name": "Default", "global_headers": object{"X-Caller": "$svc_context.jwt_claims_sub"},
	}}}
	return api
}

func TestKeysVerifyTheirOwnTokens(t *testing.T) {
	onEveryStore(t, func(t *testing.T, with settings) {
		up, address := newScripted(t, noContent)
		target := "http://" + address
		g := newTraffic(t, rig.Merge(settings{"keys.min_own_length": "3"}, with), nil, ownSecrets("shared", "hmac", target), ownSecrets("public", "ecdsa", target), rig.APIDef("plain", target, false))
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
		secret := rig.Plant("the secret of an app, of enough bytes")
		rights := rig.AccessTo("shared", "public", "plain")
		app := g.newKey(object{"access_rights": rights, "quota_max": 2, "quota_renewal_rate": 3600, "jwt_data": object{"secret": secret}})
		for name, session := range map[string]object{
			"named": {"access_rights": rights, "jwt_data": object{"secret": public}},
			"plain": {"access_rights": rights},
			"off":   {"access_rights": rights, "is_inactive": true, "jwt_data": object{"secret": secret}},
		} {
			if got := g.ask(http.MethodPost, "/svc/keys/"+name, session); got.Status != 200 {
				t.Fatal(got)
			}
		}
		if got := g.ask(http.MethodPost, "/svc/keys", object{"access_rights": rights, "jwt_data": object{"secret": "short"}}); got.Status == 200 || !strings.Contains(got.Body, "jwt_data.secret") {
			t.Errorf("a short secret: %s", got)
		}
		if got := g.ask(http.MethodGet, "/svc/keys/"+app, nil); got.Status != 200 || strings.Contains(got.Body, secret) || !strings.Contains(got.Body, "jwt_data") {
			t.Errorf("the key is shown as %s", got)
		}
		hs := func(kid, secret string, claims object) string {
			return signedToken(t, jose.HS256, []byte(secret), kid, claims)
		}
		ask := func(api, token string) rig.Answer {
			return rig.Call(t, http.MethodGet, g.Traffic+"/"+api+"/x", nil, "Authorization", "Bearer "+token)
		}
		over := object{"exp": time.Now().Unix() - 1}
		for name, c := range map[string]struct {
			api, token string
			status     int
			reason     string
		}{
			"another secret":         {"shared", hs(app, secret+"x", nil), 401, "token_signature"},
			"nobody":                 {"shared", hs("nobody", secret, nil), 401, "token_signature"},
			"a key without a secret": {"shared", hs("plain", secret, nil), 401, "token_signature"},
			"a public key as secret": {"shared", hs("named", public, nil), 401, "token_signature"},
			"the same, for ecdsa":    {"public", hs("named", public, nil), 401, "token_signature"},
			"a secret for ecdsa":     {"public", signedToken(t, jose.ES256, private, app, nil), 401, "token_signature"},
			"a public key":           {"public", signedToken(t, jose.ES256, private, "named", object{"sub": "ann"}), 200, ""},
			"inactive":               {"shared", hs("off", secret, nil), 403, "auth_inactive"},
			"over":                   {"shared", hs(app, secret, over), 401, "auth_expired"},
			"the name by itself":     {"plain", app, 403, "auth_unknown"},
			"a plain key":            {"plain", "plain", 200, ""},
		} {
			if got := ask(c.api, c.token); got.Status != c.status || c.reason != "" && got.Reason() != c.reason {
				t.Errorf("%s: %s", name, got)
			}
		}
		token := hs(app, secret, object{"sub": "ann"})
		e := g.explained(object{"url": g.Traffic + "/shared/x", "headers": object{"Authorization": "Bearer " + token}})
		if !e.Outcome.Allowed || !strings.Contains(e.Said("auth"), "is known and in force") {
			t.Errorf("explained as %+v", e)
		}
		for _, text := range []string{"200", "200", "403"} { // the quota of the key
			g.want(text, 1, "GET", "/shared/x", "Authorization", "Bearer "+token)
		}
		if head := up.lastHead(); !strings.Contains(head, "X-Caller: ann\r\n") {
			t.Errorf("the upstream got %s", head)
		}
		if got := g.ask(http.MethodDelete, "/svc/keys/"+app, nil); got.Status != 200 {
			t.Fatal(got)
		}
		rig.Eventually(t, "the refusal of a deleted key", func() error {
			if got := ask("shared", token); got.Status != 401 || got.Reason() != "token_signature" {
				return fmt.Errorf("%s", got)
			}
			return nil
		})
	})
}
