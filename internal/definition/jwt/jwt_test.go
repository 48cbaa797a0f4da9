package jwt

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
)

func pemOf(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func base(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func TestSettingsAreChecked(t *testing.T) {
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("s", 32)
	policy := []string{"p"}
	for name, c := range map[string]struct {
		settings *Settings
		want     string // path and part of the message; "": nothing is wrong
	}{
		"nothing":            {nil, "jwt_signing_method: must be"},
		"own secrets":        {&Settings{Method: HMAC, IdentityField: "sub", SkipKeyID: true}, ""},
		"own of no method":   {&Settings{}, "jwt_signing_method: must be"},
		"own of any method":  {&Settings{Method: "none"}, "jwt_signing_method: must be"},
		"own with policies":  {&Settings{Method: HMAC, ScopePolicies: map[string]string{"a": "b"}}, "jwt_source: is needed with policies"},
		"own with skew":      {&Settings{Method: HMAC, ExpiresAtSkew: -1}, "jwt_expires_at_validation_skew: must be"},
		"empty":              {&Settings{DefaultPolicies: policy}, "jwt_source: is needed"},
		"secret":             {&Settings{Method: HMAC, Source: base(long), DefaultPolicies: policy}, ""},
		"secret as it is":    {&Settings{Method: HMAC, Source: "no base64!", DefaultPolicies: policy}, "jwt_source: must be base64"},
		"short secret":       {&Settings{Method: HMAC, Source: base("short"), DefaultPolicies: policy}, "jwt_source: a secret must have 32 bytes"},
		"key":                {&Settings{Method: ECDSA, Source: pemOf(t, &curve.PublicKey), DefaultPolicies: policy}, ""},
		"key in base64":      {&Settings{Method: ECDSA, Source: base(pemOf(t, &curve.PublicKey)), DefaultPolicies: policy}, ""},
		"key without method": {&Settings{Source: pemOf(t, &curve.PublicKey), DefaultPolicies: policy}, "jwt_source: is no key for"},
		"key of other kind":  {&Settings{Method: RSA, Source: pemOf(t, &curve.PublicKey), DefaultPolicies: policy}, "jwt_source: is no key for jwt_signing_method rsa"},
		"short key":          {&Settings{Method: RSA, Source: pemOf(t, &short.PublicKey), DefaultPolicies: policy}, "jwt_source: is an RSA key of 1024 bits"},
		"small curve":        {&Settings{Method: ECDSA, Source: pemOf(t, &small.PublicKey), DefaultPolicies: policy}, "jwt_source: is a key on the curve P-224"},
		"private key":        {&Settings{Method: RSA, Source: "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n", DefaultPolicies: policy}, "jwt_source: is a private key"},
		"address":            {&Settings{Source: "https://issuer.example/keys", DefaultPolicies: policy}, ""},
		"address in base64":  {&Settings{Source: base("https://issuer.example/keys"), DefaultPolicies: policy}, ""},
		"user in address":    {&Settings{Source: "https://u:p@issuer.example/", DefaultPolicies: policy}, "jwt_source: must be an http or https address"},
		"sets":               {&Settings{KeySets: []Set{{URL: "https://a.example/"}}, DefaultPolicies: policy}, ""},
		"no address":         {&Settings{KeySets: []Set{{URL: "a.example"}}, DefaultPolicies: policy}, "jwt_jwks_uris[0].url: must be"},
		"set with issuer":    {&Settings{KeySets: []Set{{URL: "https://a.example/", Issuer: "a"}}, Issuers: []string{"a"}, DefaultPolicies: policy}, ""},
		"set without issuer": {&Settings{KeySets: []Set{{URL: "https://a.example/", Issuer: "a"}, {URL: "https://b.example/"}}, DefaultPolicies: policy}, "jwt_jwks_uris[1].issuer: is needed with several"},
		"issuer not allowed": {&Settings{KeySets: []Set{{URL: "https://a.example/", Issuer: "a"}}, Issuers: []string{"b"}, DefaultPolicies: policy}, "jwt_jwks_uris[0].issuer: is not in"},
		"exp needed and not": {&Settings{Method: HMAC, NeedsExpiresAt: true, AnyExpiresAt: true}, "jwt_require_expires_at: contradicts"},
		"set with secret":    {&Settings{Method: HMAC, Source: "https://a.example/", DefaultPolicies: policy}, "jwt_signing_method: must not be hmac"},
		"method":             {&Settings{Method: "none", Source: base(long), DefaultPolicies: policy}, "jwt_signing_method: must be"},
		"no policy":          {&Settings{Method: HMAC, Source: base(long)}, "jwt_policy_field_name: is needed"},
		"skew":               {&Settings{Method: HMAC, Source: base(long), DefaultPolicies: policy, NotBeforeSkew: -1}, "jwt_not_before_validation_skew: must be"},
		"too many":           {&Settings{Method: HMAC, Source: base(long), DefaultPolicies: make([]string, maxList+1)}, "jwt_default_policies: has 1001"},
	} {
		faults := c.settings.Check()
		switch {
		case c.want == "" && len(faults) > 0:
			t.Errorf("%s: %v", name, faults)
		case c.want != "" && (len(faults) != 1 || !strings.HasPrefix(faults[0].Path+": "+faults[0].Message, c.want)):
			t.Errorf("%s: %v, want %s", name, faults, c.want)
		}
	}
}

func TestSecretsOfKeysAreChecked(t *testing.T) {
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public := pemOf(t, &curve.PublicKey)
	long := strings.Repeat("s", 32)
	for name, c := range map[string]struct {
		key  *Key
		user bool
		want string
	}{
		"nothing":         {nil, false, ""},
		"empty":           {&Key{}, true, ""},
		"secret":          {&Key{Secret: long}, false, ""},
		"of a user":       {&Key{Secret: long}, true, "must be left out"},
		"short":           {&Key{Secret: long[1:]}, false, "must have 32 bytes"},
		"too long":        {&Key{Secret: strings.Repeat("s", maxSecret+1)}, false, "has 16385 bytes"},
		"public key":      {&Key{Secret: public}, false, ""},
		"private key":     {&Key{Secret: "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"}, false, "is a private key"},
		"broken PEM":      {&Key{Secret: "-----BEGIN PUBLIC KEY-----\nthis is long enough to be a secret"}, false, "must be a public key in PEM"},
		"PEM of no key":   {&Key{Secret: "-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----\n"}, false, "cannot be read"},
		"space before it": {&Key{Secret: "\n " + public}, false, ""},
	} {
		faults := c.key.Check(c.user)
		switch {
		case c.want == "" && len(faults) > 0:
			t.Errorf("%s: %v", name, faults)
		case c.want != "" && (len(faults) != 1 || faults[0].Path != "secret" || !strings.HasPrefix(faults[0].Message, c.want)):
			t.Errorf("%s: %v, want %s", name, faults, c.want)
		}
	}
}

func TestASecretIsOfTheKindThatTheMethodAsksFor(t *testing.T) {
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, shared := pemOf(t, &curve.PublicKey), strings.Repeat("s", 32)
	for _, c := range []struct {
		secret, method string
		fits           bool
	}{
		{shared, HMAC, true},
		{public, HMAC, false},
		{" " + public, HMAC, false},
		{shared[1:], HMAC, false},
		{"", HMAC, false},
		{public, ECDSA, true},
		{public, RSA, false},
		{public, EdDSA, false},
		{shared, RSA, false},
		{shared, ECDSA, false},
		{"", EdDSA, false},
		{public, "", false},
		{shared, "", false},
	} {
		key, err := Public(c.secret, c.method)
		if (err == nil) != c.fits || c.fits && key == nil {
			t.Errorf("%q for %q: %v, %v", c.secret, c.method, key, err)
		}
	}
}
