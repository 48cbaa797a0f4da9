package traffic

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// issuer signs tokens, and publishes its keys as long as it is there.
type issuer struct {
	t    testing.TB
	url  string
	mu   sync.Mutex
	keys []jose.JSONWebKey // with their private parts, the newest last
	away bool
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	i := &issuer{t: t}
	i.addKey("one")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var set jose.JSONWebKeySet
		for _, k := range i.keys {
			set.Keys = append(set.Keys, k.Public())
		}
		_ = json.NewEncoder(w).Encode(set)
	}))
	t.Cleanup(server.Close)
	i.url = server.URL
	return i
}

func (i *issuer) addKey(id string) {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = append(i.keys, jose.JSONWebKey{Key: key, KeyID: id, Algorithm: "ES256", Use: "sig"})
}

func (i *issuer) setAway(away bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.away = away
}

// token signs claims with the newest key.
func (i *issuer) token(claims object) string {
	i.t.Helper()
	i.mu.Lock()
	key := i.keys[len(i.keys)-1]
	i.mu.Unlock()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		i.t.Fatal(err)
	}
	jws, err := signer.Sign(payload)
	if err != nil {
		i.t.Fatal(err)
	}
	text, err := jws.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return rig.Plant(text)
}

func TestCallersShowTokensOfAnIssuer(t *testing.T) {
	t.Parallel()
	iss := newIssuer(t)
	up, address := newScripted(t, noContent)
	api := rig.APIDef("jwt", "http://"+address, false)
	api["enable_jwt"], api["enable_context_vars"], api["strip_auth_data"] = true, true, true
	api["jwt_jwks_uris"] = []object{{"url": iss.url}}
	api["jwt_policy_field_name"] = "pol"
	api["jwt_allowed_audiences"] = []string{"api"}
	api["version_data"] = object{"not_versioned": true, "versions": object{"Default": object{
		"name": "Default", "global_headers": object{"X-Caller": "$svc_context.jwt_claims_sub"},
	}}}
	g := newTraffic(t, settings{"jwt.keys_retry": "100ms"}, object{
		"few":  object{"id": "few", "quota_max": 2, "quota_renewal_rate": 3600, "access_rights": rig.AccessTo("jwt")},
		"many": object{"id": "many", "rate": 1000, "per": 1, "access_rights": rig.AccessTo("jwt")},
	}, api)
	url := g.Traffic + "/jwt/x"
	with := func(claims object) rig.Answer {
		for name, value := range (object{"aud": "api", "exp": time.Now().Unix() + 600}) {
			if _, said := claims[name]; !said {
				claims[name] = value
			}
		}
		return rig.Call(t, http.MethodGet, url, nil, "Authorization", "Bearer "+iss.token(claims))
	}
	if a := with(object{"sub": "ann", "pol": "few", "jti": 1}); a.Status != 200 {
		t.Errorf("%s", a)
	}
	if head := up.lastHead(); !strings.Contains(head, "X-Caller: ann\r\n") || strings.Contains(head, "Authorization") {
		t.Errorf("the upstream got %s", head)
	}
	if a := with(object{"sub": "ann", "pol": "few", "jti": 2}); a.Status != 200 || a.Header.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("another token of the same caller: %s", a)
	}
	if a := with(object{"sub": "ann", "pol": "few", "jti": 3}); a.Status != 403 || a.Reason() != "quota_exceeded" {
		t.Errorf("beyond the caller's quota: %s", a)
	}
	for name, c := range map[string]struct {
		claims         object
		status         int
		reason, detail string
	}{
		"over":             {object{"sub": "bob", "pol": "many", "exp": time.Now().Unix() - 1}, 401, "auth_expired", "token has expired"},
		"for another":      {object{"sub": "bob", "pol": "many", "aud": "web"}, 401, "token_claims", "audience"},
		"nobody":           {object{"pol": "many"}, 401, "token_claims", "identity"},
		"without a policy": {object{"sub": "bob"}, 403, "token_claims", "no policy"},
		"unknown policy":   {object{"sub": "bob", "pol": "gone"}, 403, "access_denied", "disallowed"},
	} {
		if a := with(c.claims); a.Status != c.status || a.Reason() != c.reason || !strings.Contains(a.Body, c.detail) {
			t.Errorf("%s: %s", name, a)
		}
	}
	for name, c := range map[string]struct{ token, reason string }{
		"none":        {"Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.", "token_signature"},
		"no token":    {"Bearer x", "token_malformed"},
		"other words": {"Basic YTpi", "token_malformed"},
	} {
		if a := rig.Call(t, http.MethodGet, url, nil, "Authorization", c.token); a.Status != 401 || a.Reason() != c.reason {
			t.Errorf("%s: %s", name, a)
		}
	}
	if a := rig.Call(t, http.MethodGet, url, nil); a.Status != 401 || a.Reason() != "auth_missing" {
		t.Errorf("without a token: %s", a)
	}
	iss.addKey("two")
	rig.Eventually(t, "a new key", func() error { // which is not asked for right after the last one
		if a := with(object{"sub": "bob", "pol": "many"}); a.Status != 200 {
			return fmt.Errorf("%s", a)
		}
		return nil
	})
	iss.setAway(true)
	if a := with(object{"sub": "eve", "pol": "many"}); a.Status != 200 {
		t.Errorf("with the issuer away: %s", a)
	}
	iss.addKey("three")
	rig.Eventually(t, "the refusal of a key that cannot be asked for", func() error {
		if a := with(object{"sub": "eve", "pol": "many"}); a.Status != 503 || a.Reason() != "key_store_unavailable" {
			return fmt.Errorf("%s", a)
		}
		return nil
	})
}
