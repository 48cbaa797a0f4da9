package config

import (
	"strings"
	"testing"
)

func TestACMEIsRefusedByNameWithoutWhatItNeeds(t *testing.T) {
	good := []string{"SLUICE_GATEWAY_ACME_DOMAINS=a.example.com,b.example.com", "SLUICE_GATEWAY_ACME_ACCEPT_TERMS=true", "SLUICE_GATEWAY_TLS_LISTEN=:8443"}
	for _, c := range []struct{ with, want string }{
		{"", ""},
		{"SLUICE_GATEWAY_ADMIN_URL=http://127.0.0.1:8081", ""},
		{"SLUICE_GATEWAY_ADMIN_URL=https://admin.example.com", ""},
		{"SLUICE_GATEWAY_ADMIN_URL=http://admin.example.com:8081", "needs https in gateway.admin_url"},
		{"SLUICE_GATEWAY_ACME_ACCEPT_TERMS=false", "gateway.acme.accept_terms: is not true"},
		{"SLUICE_GATEWAY_TLS_LISTEN=", "no effect without gateway.tls.listen"},
		{"SLUICE_GATEWAY_ACME_CHALLENGES=dns-01", "gateway.acme.challenges"},
		{"SLUICE_GATEWAY_ACME_CHALLENGES=", "gateway.acme.challenges: is empty"},
		{"SLUICE_GATEWAY_ACME_DIRECTORY=http://a/dir", "gateway.acme.directory"},
		{"SLUICE_GATEWAY_ACME_EMAIL=Ann <a@example.com>", "gateway.acme.email"},
		{"SLUICE_GATEWAY_ACME_DOMAINS=*.example.com", "is a wildcard"},
		{"SLUICE_GATEWAY_ACME_DOMAINS=127.0.0.1", "is not a domain"},
		{"SLUICE_GATEWAY_ACME_DOMAINS=a.example.com,a.example.com", "lists a domain twice"},
	} {
		env := append(append([]string{}, good...), strings.Fields(c.with)...)
		if strings.Contains(c.with, " ") {
			env = append(append([]string{}, good...), c.with)
		}
		_, _, err := load(t, Sources{Env: env})
		if err == nil && c.want != "" || err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.with, err, c.want)
		}
	}
}
