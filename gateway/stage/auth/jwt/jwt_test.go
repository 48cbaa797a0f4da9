package jwt

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwks"
	"github.com/sluicegate/sluice/internal/definition"
	token "github.com/sluicegate/sluice/internal/definition/jwt"
	"github.com/sluicegate/sluice/internal/dialguard"
)

var now = time.Unix(1_800_000_000, 0)

// keyring has one key of each kind, made once: RSA keys take long.
var keyring = sync.OnceValue(func() map[string]crypto.Signer {
	r, err1 := rsa.GenerateKey(rand.Reader, 2048)
	e, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, ed, err3 := ed25519.GenerateKey(rand.Reader)
	if err1 != nil || err2 != nil || err3 != nil {
		panic("keys cannot be made")
	}
	return map[string]crypto.Signer{token.RSA: r, token.ECDSA: e, token.EdDSA: ed}
})

var secret = []byte("a secret of two and thirty bytes")

func sign(t testing.TB, algorithm jose.SignatureAlgorithm, key any, kid string, claims any) []byte {
	t.Helper()
	options := &jose.SignerOptions{}
	if kid != "" {
		options = options.WithHeader("kid", kid)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	payload, ok := claims.([]byte)
	if !ok {
		if payload, err = json.Marshal(claims); err != nil {
			t.Fatal(err)
		}
	}
	jws, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}

func pemOf(t testing.TB, key crypto.Signer) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func newTokens() *Tokens {
	return New(jwks.New(jwks.Options{
		Addresses: dialguard.Policy{Private: true}, Timeout: 30 * time.Second, Refresh: time.Minute,
		Retry: time.Nanosecond, Stale: time.Hour, Log: slog.New(slog.DiscardHandler),
	}), 1000)
}

func verifier(t testing.TB, tokens *Tokens, s token.Settings) *Verifier {
	t.Helper()
	if faults := s.Check(); len(faults) > 0 {
		t.Fatal(faults)
	}
	v, err := tokens.Compile(&definition.API{ID: "a", OrgID: "org", JWT: &s})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// withSecret verifies tokens with the secret.
func withSecret(t testing.TB, change func(*token.Settings)) *Verifier {
	s := token.Settings{Method: token.HMAC, Source: base64.StdEncoding.EncodeToString(secret), DefaultPolicies: []string{"default"}}
	if change != nil {
		change(&s)
	}
	return verifier(t, newTokens(), s)
}

type object map[string]any

func TestTokensOfEveryKindStandForTheirCaller(t *testing.T) {
	keys := keyring()
	for algorithm, method := range map[jose.SignatureAlgorithm]string{
		jose.HS256: token.HMAC, jose.RS256: token.RSA, jose.PS384: token.RSA, jose.ES256: token.ECDSA, jose.EdDSA: token.EdDSA,
	} {
		s := token.Settings{Method: method, DefaultPolicies: []string{"gold"}}
		var key any = secret
		if method == token.HMAC {
			s.Source = base64.StdEncoding.EncodeToString(secret)
		} else {
			key, s.Source = keys[method], pemOf(t, keys[method])
		}
		v := verifier(t, newTokens(), s)
		id, refused := v.Find(sign(t, algorithm, key, "", object{"sub": "ann", "exp": now.Unix() + 60}), now, false)
		if refused != nil {
			t.Errorf("%s: %s", algorithm, refused.Message)
			continue
		}
		if id.Session.Alias != "ann" || id.Session.OrgID != "org" || !reflect.DeepEqual(id.Session.ApplyPolicies, []string{"gold"}) ||
			!strings.HasPrefix(id.Hash, id.Name) || !strings.Contains(string(id.Claims), `"sub":"ann"`) {
			t.Errorf("%s: %+v %s", algorithm, id.Session, id.Claims)
		}
	}
}

// plain makes a token of parts that no library would make.
func plain(head, payload, signature string) []byte {
	encode := base64.RawURLEncoding.EncodeToString
	return []byte(encode([]byte(head)) + "." + encode([]byte(payload)) + "." + encode([]byte(signature)))
}

func TestForgedTokensAreRefused(t *testing.T) {
	keys := keyring()
	public := pemOf(t, keys[token.RSA])
	v := verifier(t, newTokens(), token.Settings{Method: token.RSA, Source: public, DefaultPolicies: []string{"gold"}})
	good := sign(t, jose.RS256, keys[token.RSA], "", object{"sub": "ann"})
	if _, refused := v.Find(good, now, false); refused != nil {
		t.Fatal(refused.Message)
	}
	parts := strings.Split(string(good), ".")
	other := strings.Split(string(sign(t, jose.RS256, keys[token.RSA], "", object{"sub": "eve"})), ".")
	for name, c := range map[string]struct {
		token []byte
		want  string
	}{
		"none":                      {plain(`{"alg":"none"}`, `{"sub":"ann"}`, ""), "algorithm"},
		"None":                      {plain(`{"alg":"None"}`, `{"sub":"ann"}`, ""), "algorithm"},
		"public key as the secret":  {sign(t, jose.HS256, []byte(public), "", object{"sub": "ann"}), "algorithm"},
		"key of another kind":       {sign(t, jose.ES256, keys[token.ECDSA], "", object{"sub": "ann"}), "algorithm"},
		"claims of another token":   {[]byte(parts[0] + "." + other[1] + "." + parts[2]), "signature"},
		"no signature":              {[]byte(parts[0] + "." + parts[1] + "."), "signature"},
		"key in the token":          {embedded(t), "signature"},
		"unknown critical header":   {plain(`{"alg":"RS256","crit":["x"],"x":1}`, `{"sub":"ann"}`, "s"), ""},
		"payload that is not coded": {plain(`{"alg":"RS256","b64":false,"crit":["b64"]}`, `{"sub":"ann"}`, "s"), "malformed"},
		"two parts":                 {[]byte(parts[0] + "." + parts[1]), "malformed"},
		"five parts":                {[]byte("a.b.c.d.e"), "malformed"},
		"nothing":                   {[]byte("."), "malformed"},
		"too long":                  {[]byte(strings.Repeat("a", MaxToken+1)), "malformed"},
		"JSON form":                 {[]byte(`{"payload":"e30","signatures":[]}`), "malformed"},
		"blanks":                    {[]byte(parts[0] + " ." + parts[1] + "." + parts[2]), "malformed"},
	} {
		id, refused := v.Find(c.token, now, false)
		if id != nil || refused == nil || refused.Status != 401 || !strings.HasPrefix(refused.Message, "Key not authorized: ") || !strings.Contains(refused.Message, c.want) {
			t.Errorf("%s: %v, %+v", name, id, refused)
		}
	}
}

// embedded is a token that brings the key along that verifies it.
func embedded(t *testing.T) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, &jose.SignerOptions{EmbedJWK: true})
	if err != nil {
		t.Fatal(err)
	}
	jws, err := signer.Sign([]byte(`{"sub":"ann"}`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}

func TestClaimsAreHeldAgainstTheDefinition(t *testing.T) {
	at := now.Unix()
	for name, c := range map[string]struct {
		claims any
		change func(*token.Settings)
		want   string // in the refusal; "": none
	}{
		"no times":           {object{"sub": "a"}, nil, ""},
		"good for a second":  {object{"sub": "a", "exp": at + 1}, nil, ""},
		"over":               {object{"sub": "a", "exp": at}, nil, "has expired"},
		"fractions":          {object{"sub": "a", "exp": float64(at) + 1.5}, nil, ""},
		"skew of exp":        {object{"sub": "a", "exp": at - 29}, func(s *token.Settings) { s.ExpiresAtSkew = 30 }, ""},
		"skew used up":       {object{"sub": "a", "exp": at - 30}, func(s *token.Settings) { s.ExpiresAtSkew = 30 }, "has expired"},
		"exp looked away":    {object{"sub": "a", "exp": 5}, func(s *token.Settings) { s.AnyExpiresAt = true }, ""},
		"exp zero":           {object{"sub": "a", "exp": 0}, nil, "has expired"},
		"exp negative":       {object{"sub": "a", "exp": -1e300}, nil, "has expired"},
		"exp far":            {object{"sub": "a", "exp": 1e300}, nil, ""},
		"exp is text":        {object{"sub": "a", "exp": "tomorrow"}, nil, "malformed"},
		"nbf":                {object{"sub": "a", "nbf": at + 1}, nil, "not valid yet"},
		"nbf now":            {object{"sub": "a", "nbf": at}, nil, ""},
		"nbf skew":           {object{"sub": "a", "nbf": at + 5}, func(s *token.Settings) { s.NotBeforeSkew = 5 }, ""},
		"iat":                {object{"sub": "a", "iat": at + 1}, nil, "in the future"},
		"iat skew":           {object{"sub": "a", "iat": at + 5}, func(s *token.Settings) { s.IssuedAtSkew = 5 }, ""},
		"iat looked away":    {object{"sub": "a", "iat": at + 5}, func(s *token.Settings) { s.AnyIssuedAt = true }, ""},
		"issuer":             {object{"sub": "a", "iss": "b"}, func(s *token.Settings) { s.Issuers = []string{"a", "b"} }, ""},
		"other issuer":       {object{"sub": "a", "iss": "c"}, func(s *token.Settings) { s.Issuers = []string{"a", "b"} }, "issuer"},
		"no issuer":          {object{"sub": "a"}, func(s *token.Settings) { s.Issuers = []string{"a"} }, "issuer"},
		"audience":           {object{"sub": "a", "aud": []string{"x", "y"}}, func(s *token.Settings) { s.Audiences = []string{"y"} }, ""},
		"audience as text":   {object{"sub": "a", "aud": "y"}, func(s *token.Settings) { s.Audiences = []string{"y"} }, ""},
		"other audience":     {object{"sub": "a", "aud": "z"}, func(s *token.Settings) { s.Audiences = []string{"y"} }, "audience"},
		"nobody":             {object{}, nil, "no identity"},
		"nobody by name":     {object{"sub": "a"}, func(s *token.Settings) { s.IdentityField = "email" }, "no identity"},
		"somebody by number": {object{"uid": 7}, func(s *token.Settings) { s.IdentityField = "uid" }, ""},
		"a list of people":   {object{"sub": []string{"a"}}, nil, "no identity"},
		"no object":          {[]byte(`"text"`), nil, "malformed"},
		"null":               {[]byte(`null`), nil, "malformed"},
		"no JSON":            {[]byte(`{`), nil, "malformed"},
		"policy is a number": {object{"sub": "a", "pol": 3}, func(s *token.Settings) { s.PolicyField = "pol" }, "malformed"},
		"no policy":          {object{"sub": "a"}, func(s *token.Settings) { s.PolicyField, s.DefaultPolicies = "pol", nil }, "no policy"},
		"too many policies":  {object{"sub": "a", "pol": strings.Split(strings.Repeat("p,", 60), ",")}, func(s *token.Settings) { s.PolicyField = "pol" }, "malformed"},
	} {
		v := withSecret(t, c.change)
		text := sign(t, jose.HS256, secret, "", c.claims)
		for range 2 { // the second time it is known
			_, refused := v.Find(text, now, false)
			switch {
			case (refused == nil) != (c.want == ""):
				t.Errorf("%s: %+v, want %q", name, refused, c.want)
			case refused != nil && !strings.Contains(refused.Message, c.want):
				t.Errorf("%s: %s, want %q", name, refused.Message, c.want)
			}
		}
	}
}

func TestPoliciesComeFromClaimsScopesOrTheDefinition(t *testing.T) {
	all := func(s *token.Settings) {
		s.PolicyField, s.ScopePolicies = "pol", map[string]string{"read": "reader", "write": "writer"}
	}
	for name, c := range map[string]struct {
		claims object
		want   []string
	}{
		"one":               {object{"pol": "gold"}, []string{"gold"}},
		"several":           {object{"pol": []string{"gold", "silver"}}, []string{"gold", "silver"}},
		"scopes":            {object{"scope": "write read other"}, []string{"writer", "reader"}},
		"scopes in a list":  {object{"scope": []string{"read", "write"}}, []string{"reader", "writer"}},
		"both":              {object{"pol": "gold", "scope": "read"}, []string{"gold", "reader"}},
		"twice the same":    {object{"pol": "reader", "scope": "read"}, []string{"reader"}},
		"neither":           {object{}, []string{"default"}},
		"empty":             {object{"pol": "", "scope": ""}, []string{"default"}},
		"scopes of no kind": {object{"scope": "other"}, []string{"default"}},
	} {
		c.claims["sub"] = "a"
		id, refused := withSecret(t, all).Find(sign(t, jose.HS256, secret, "", c.claims), now, false)
		if refused != nil || !reflect.DeepEqual(id.Session.ApplyPolicies, c.want) {
			t.Errorf("%s: %+v, %+v", name, id, refused)
		}
	}
}

func TestATokenThatWasGoodEndsInTime(t *testing.T) {
	v := withSecret(t, nil)
	text := sign(t, jose.HS256, secret, "", object{"sub": "a", "exp": now.Unix() + 10})
	if _, refused := v.Find(text, now, false); refused != nil {
		t.Fatal(refused.Message)
	}
	if _, refused := v.Find(text, now.Add(10*time.Second), false); refused == nil || !strings.Contains(refused.Message, "expired") {
		t.Errorf("%+v", refused)
	}
}

func TestCallersAreTheSameWhateverTokenTheyShow(t *testing.T) {
	v := withSecret(t, nil)
	find := func(claims object) string {
		id, refused := v.Find(sign(t, jose.HS256, secret, "", claims), now, false)
		if refused != nil {
			t.Fatal(refused.Message)
		}
		return id.Hash
	}
	ann := find(object{"sub": "ann", "jti": "1"})
	if find(object{"sub": "ann", "jti": "2"}) != ann {
		t.Error("two tokens of one caller are two callers")
	}
	if find(object{"sub": "bob"}) == ann || find(object{"sub": "ann", "iss": "another"}) == ann {
		t.Error("another caller is the same")
	}
}

func TestTokensEndWhenTheirIssuerTakesTheKeyBack(t *testing.T) {
	keys := keyring()
	jwk := func(id, method string) jose.JSONWebKey {
		return jose.JSONWebKey{Key: keys[method].Public(), KeyID: id}
	}
	var mu sync.Mutex
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{jwk("one", token.ECDSA)}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_ = json.NewEncoder(w).Encode(set)
	}))
	t.Cleanup(server.Close)
	v := verifier(t, newTokens(), token.Settings{KeySets: []token.Set{{URL: server.URL}}, DefaultPolicies: []string{"gold"}})
	first := sign(t, jose.ES256, keys[token.ECDSA], "one", object{"sub": "a"})
	for range 3 {
		if _, refused := v.Find(first, now, false); refused != nil {
			t.Fatal(refused.Message)
		}
	}
	if n := v.tokens.Stats(); n.Verified != 2 || n.Entries != 1 { // the set came with the first
		t.Errorf("%+v", n)
	}
	mu.Lock()
	set.Keys = []jose.JSONWebKey{jwk("two", token.RSA)}
	mu.Unlock()
	if _, refused := v.Find(sign(t, jose.RS256, keys[token.RSA], "two", object{"sub": "a"}), now, false); refused != nil {
		t.Errorf("a token of the new key: %s", refused.Message)
	}
	if _, refused := v.Find(first, now, false); refused == nil || !strings.Contains(refused.Message, "not known") {
		t.Errorf("a token of the key before: %+v", refused)
	}
	if _, refused := v.Find(sign(t, jose.HS256, secret, "two", object{"sub": "a"}), now, false); refused != wrongAlgorithm {
		t.Errorf("a token signed with a secret: %+v", refused)
	}
	server.Close()
	if _, refused := v.Find(sign(t, jose.ES256, keys[token.ECDSA], "three", object{"sub": "a"}), now, false); refused != unavailable {
		t.Errorf("a key that nobody can tell anything of: %+v", refused)
	}
}

// Two issuers that an API trusts are not trusted with each other's callers.
func TestAKeyOfASetVerifiesTokensOfItsOwnIssuerAlone(t *testing.T) {
	keys := keyring()
	var asked [2]atomic.Int32
	publish := func(i int, id, method string) string {
		set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: keys[method].Public(), KeyID: id}}}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked[i].Add(1)
			_ = json.NewEncoder(w).Encode(set)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	v := verifier(t, newTokens(), token.Settings{DefaultPolicies: []string{"gold"}, KeySets: []token.Set{
		{URL: publish(0, "one", token.ECDSA), Issuer: "https://a.example"}, {URL: publish(1, "two", token.RSA), Issuer: "https://b.example"},
	}})
	for _, c := range []struct {
		name, kid, method string
		algorithm         jose.SignatureAlgorithm
		iss               any
		want              *pipeline.Rejection
	}{
		{"the first", "one", token.ECDSA, jose.ES256, "https://a.example", nil},
		{"the key of the second in the name of the first", "two", token.RSA, jose.RS256, "https://a.example", unknownKey},
		{"likewise without a key id", "", token.RSA, jose.RS256, "https://a.example", badSignature},
		{"nobody", "one", token.ECDSA, jose.ES256, nil, wrongIssuer},
		{"another", "one", token.ECDSA, jose.ES256, "https://c.example", wrongIssuer},
	} {
		_, refused := v.Find(sign(t, c.algorithm, keys[c.method], c.kid, object{"sub": "ann", "iss": c.iss}), now, false)
		if refused != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, refused, c.want)
		}
	}
	if asked[1].Load() != 0 {
		t.Error("the second issuer was asked for keys of the first")
	}
	if _, refused := v.Find(sign(t, jose.RS256, keys[token.RSA], "two", object{"sub": "ann", "iss": "https://b.example"}), now, false); refused != nil {
		t.Errorf("the second: %+v", refused)
	}
	if _, err := newTokens().Compile(&definition.API{JWT: &token.Settings{KeySets: []token.Set{{URL: "https://a.example", Issuer: "a"}, {URL: "https://b.example"}}}}); err != errNoIssuer {
		t.Errorf("a set without an issuer beside another: %v", err)
	}
}

func TestATokenWithoutExpiryIsRefusedWhereOneIsRequired(t *testing.T) {
	v := withSecret(t, func(s *token.Settings) { s.NeedsExpiresAt = true })
	for _, c := range []struct {
		claims object
		want   *pipeline.Rejection
	}{
		{object{"sub": "ann"}, endless},
		{object{"sub": "ann", "exp": nil}, endless},
		{object{"sub": "ann", "exp": now.Unix() + 60}, nil},
		{object{"sub": "ann", "exp": now.Unix() - 60}, expired},
	} {
		if _, refused := v.Find(sign(t, jose.HS256, secret, "", c.claims), now, false); refused != c.want {
			t.Errorf("%v: %+v, want %+v", c.claims, refused, c.want)
		}
	}
	own, err := newTokens().Reader(&definition.API{JWT: &token.Settings{Method: token.HMAC, NeedsExpiresAt: true}})
	if err != nil {
		t.Fatal(err)
	}
	if _, refused := own.Read(sign(t, jose.HS256, secret, "key", object{"sub": "ann"})); refused != endless {
		t.Errorf("a token that a key signed: %+v", refused)
	}
}

func TestTokensOfOneAPIAreNothingToAnother(t *testing.T) {
	tokens := newTokens()
	s := token.Settings{Method: token.HMAC, Source: base64.StdEncoding.EncodeToString(secret), DefaultPolicies: []string{"gold"}}
	one := verifier(t, tokens, s)
	s.Source = base64.StdEncoding.EncodeToString([]byte("another secret of so many bytes!"))
	other := verifier(t, tokens, s)
	text := sign(t, jose.HS256, secret, "", object{"sub": "a"})
	if _, refused := one.Find(text, now, false); refused != nil {
		t.Fatal(refused.Message)
	}
	if _, refused := other.Find(text, now, false); refused != badSignature {
		t.Errorf("%+v", refused)
	}
}

func TestKnownTokensAreBoundedAndDryOnesAreNotKept(t *testing.T) {
	tokens := New(jwks.New(jwks.Options{}), 128)
	v := verifier(t, tokens, token.Settings{Method: token.HMAC, Source: base64.StdEncoding.EncodeToString(secret), DefaultPolicies: []string{"p"}})
	text := sign(t, jose.HS256, secret, "", object{"sub": "a"})
	if _, refused := v.Find(text, now, true); refused != nil || tokens.Stats().Entries != 0 {
		t.Errorf("%+v, %d entries", refused, tokens.Stats().Entries)
	}
	for i := range 1000 {
		if _, refused := v.Find(sign(t, jose.HS256, secret, "", object{"sub": i}), now, false); refused != nil {
			t.Fatal(refused.Message)
		}
	}
	if n := tokens.Stats().Entries; n > 128 {
		t.Errorf("%d entries", n)
	}
}

func TestAKnownTokenCostsNoAllocation(t *testing.T) {
	v := withSecret(t, nil)
	text := sign(t, jose.HS256, secret, "", object{"sub": "a", "exp": now.Unix() + 10})
	if _, refused := v.Find(text, now, false); refused != nil {
		t.Fatal(refused.Message)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if _, refused := v.Find(text, now, false); refused != nil {
			t.Fatal(refused.Message)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFind(b *testing.B) {
	v := withSecret(b, nil)
	text := sign(b, jose.HS256, secret, "", object{"sub": "a", "exp": now.Unix() + 10})
	b.ReportAllocs()
	for b.Loop() {
		if _, refused := v.Find(text, now, false); refused != nil {
			b.Fatal(refused.Message)
		}
	}
}

func FuzzFind(f *testing.F) {
	v := withSecret(f, func(s *token.Settings) { s.PolicyField, s.ScopePolicies = "pol", map[string]string{"read": "reader"} })
	f.Add(sign(f, jose.HS256, secret, "", object{"sub": "a", "pol": []string{"x"}, "scope": "read", "exp": 1e12}))
	f.Add(plain(`{"alg":"none"}`, `{}`, ""))
	f.Fuzz(func(t *testing.T, text []byte) {
		if id, refused := v.Find(text, now, false); (id == nil) == (refused == nil) {
			t.Errorf("%v, %v", id, refused)
		}
	})
}

// FuzzClaims reads claims that an issuer did sign.
func FuzzClaims(f *testing.F) {
	v := withSecret(f, func(s *token.Settings) {
		s.PolicyField, s.ScopePolicies, s.Audiences = "pol", map[string]string{"read": "reader"}, []string{"x"}
	})
	f.Add([]byte(`{"sub":"a","aud":["x"],"exp":1e400,"nbf":-1,"pol":["a","b"],"scope":"read"}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		if id, refused := v.read(payload); (id == nil) == (refused == nil) {
			t.Errorf("%v, %v", id, refused)
		}
	})
}
