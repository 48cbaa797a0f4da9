package certs

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/testenv"
)

func parsed(t *testing.T, pem ...string) *Certificate {
	t.Helper()
	c, err := Parse([]byte(strings.Join(pem, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestANameIsOneOrganisations(t *testing.T) {
	a := testenv.NewAuthority(t, "a")
	server := func(names string) *Certificate {
		id := a.Server(strings.Fields(names)...)
		return parsed(t, id.CertPEM, id.KeyPEM)
	}
	for _, c := range []struct{ first, second, taken string }{
		{"a.example", "b.example", ""},
		{"a.example", "a.example", "a.example"},
		{"a.example", "A.EXAMPLE", "a.example"},
		{"a.example", "b.example a.example", "a.example"},
		{"*.example", "a.example", "a.example"},
		{"a.example", "*.example", "*.example"},
		{"*.example", "*.example", "*.example"},
		{"*.example", "example", ""},
		{"*.example", "a.b.example", ""},
		{"a.b.example", "*.example", ""},
		{"*.b.example", "*.example", ""},
		{"example", "*.example", ""},
		{"10.0.0.1", "10.0.0.1", "10.0.0.1"},
		{"10.0.0.1", "10.0.0.2", ""},
		{"localhost", "localhost", "localhost"},
	} {
		err := server(c.second).Taken(server(c.first).Claims(true))
		taken, ok := errors.AsType[*TakenError](err)
		if ok != (c.taken != "") || ok && taken.Name != c.taken {
			t.Errorf("%s, then %s: %v", c.first, c.second, err)
		}
		overlap := false
		claims := server(c.first).Claims(true)
		for _, rival := range server(c.second).Rivals() {
			overlap = overlap || strings.Contains(" "+strings.Join(claims, " ")+" ", " "+rival+" ")
		}
		if overlap != (c.taken != "") {
			t.Errorf("%s, then %s: claims %q, rivals %q", c.first, c.second, claims, server(c.second).Rivals())
		}
	}
}

func TestWhatNoServerShowsClaimsNothing(t *testing.T) {
	a := testenv.NewAuthority(t, "a")
	id, client := a.Server("a.example"), a.Client("a.example")
	for name, c := range map[string]*Certificate{
		"without its key": parsed(t, id.CertPEM), "of a client": parsed(t, client.CertPEM, client.KeyPEM), "of an authority": parsed(t, a.PEM()),
	} {
		if claims := c.Claims(c.Key != nil); claims == nil || len(claims) > 0 || len(c.Rivals()) > 0 || c.Taken([]string{"a.example"}) != nil {
			t.Errorf("%s: %q", name, claims)
		}
	}
}

func TestAnOrganisationHasSoManyCertificates(t *testing.T) {
	for _, c := range []struct {
		count int
		bytes int64
		size  int
		want  string
	}{
		{0, 0, MaxPEM, ""},
		{MaxPerOrg - 1, 0, 1, ""},
		{MaxPerOrg, 0, 1, "5000 certificates"},
		{1, MaxBytesPerOrg - 10, 10, ""},
		{1, MaxBytesPerOrg - 10, 11, "32 MiB of certificates"},
	} {
		err := CheckCapacity(c.count, c.bytes, c.size)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
