package explain

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestADescriptionMayShowACertificate(t *testing.T) {
	client := testenv.NewAuthority(t, "a").Client("me")
	describe := func(with map[string]any) []byte {
		text, err := json.Marshal(with)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	r, err := Parse(describe(map[string]any{"url": "/x", "certificate": client.CertPEM}))
	if err != nil || !r.Secure() || r.Shown() == nil || string(r.Shown().Sum) != certs.SumOf(client.Leaf.Raw) {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err := Parse(describe(map[string]any{"url": "/x"})); err != nil || r.Shown() != nil {
		t.Errorf("without: %+v, %v", r, err)
	}
	for want, with := range map[string]map[string]any{
		"certificate: is shown over TLS only": {"url": "/x", "certificate": client.CertPEM, "tls": false},
		"certificate: holds no certificate":   {"url": "/x", "certificate": "junk"},
		"id: stands alone":                    {"id": strings.Repeat("0", 32), "certificate": client.CertPEM},
	} {
		if _, err := Parse(describe(with)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
