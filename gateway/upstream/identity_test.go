package upstream

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
)

type shelf map[string]*certs.Certificate

func (s shelf) Find(id string) *certs.Certificate { return s[id] }

func (s shelf) put(t *testing.T, text string) (id string) {
	t.Helper()
	c, err := certs.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s[c.ID("acme")] = c
	return c.ID("acme")
}

func TestCertificatesForUpstreamsComeFromTheStoreByTheirIDs(t *testing.T) {
	authority, store := testenv.NewAuthority(t, "a"), shelf{}
	one, two := authority.Client("one"), authority.Client("two")
	first, second := store.put(t, one.CertPEM+one.KeyPEM), store.put(t, two.CertPEM+two.KeyPEM)
	bare := store.put(t, authority.PEM())
	target, err := match.CompileTarget("https://up.example:444")
	if err != nil {
		t.Fatal(err)
	}
	compile := func(byHost map[string]string, store Certificates) (Identity, error) {
		return new(Files).Compile(&definition.API{UpstreamCertificates: byHost}, target, Given{Certificates: store})
	}
	id, err := compile(map[string]string{"*": second, "up.example:444": first}, store)
	if err != nil || len(id.Config.Certificates) != 1 || !id.Config.Certificates[0].Leaf.Equal(one.Leaf) {
		t.Errorf("the first: %v, %v", id.Config, err)
	}
	other, err := compile(map[string]string{"*": second}, store)
	if err != nil || other.Sum == id.Sum {
		t.Errorf("connections with different certificates are the same ones: %v", err)
	}
	none, err := compile(nil, store)
	if err != nil || none.Sum == id.Sum || len(none.Config.Certificates) != 0 {
		t.Errorf("without: %v", err)
	}
	for want, c := range map[string]struct {
		id    string
		store Certificates
	}{
		`upstream_certificates["*"]: there is no certificate `: {"acme" + strings.Repeat("0", 64), store},
		`in the store without its private key`:                 {bare, store},
		`there is no certificate ` + first + ` in the store`:   {first, nil},
	} {
		if _, err := compile(map[string]string{"*": c.id}, c.store); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestFilesThatNeverEndAreAnErrorOfTheDefinition(t *testing.T) {
	target, err := match.CompileTarget("https://up.example:444")
	if err != nil {
		t.Fatal(err)
	}
	for want, own := range map[string]*definition.Transport{
		"proxy.transport.ssl_ca_file: /dev/zero: is not a regular file":          {CAFile: "/dev/zero"},
		"proxy.transport.ssl_certificate_file: /dev/zero: is not a regular file": {CertificateFile: "/dev/zero", KeyFile: "/dev/zero"},
	} {
		def := &definition.API{}
		def.Proxy.Transport = own
		if _, err := new(Files).Compile(def, target, Given{}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
