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
		"nothing":            {nil, "jwt_source: is needed"},
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
