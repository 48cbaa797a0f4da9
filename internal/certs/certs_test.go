package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv"
)

func TestParseReadsACertificateWithItsChainAndKeyInAnyOrder(t *testing.T) {
	authority := testenv.NewAuthority(t, "a")
	one := authority.Server("One.Example.", "*.two.example", "10.0.0.1")
	for name, text := range map[string]string{
		"certificate first": one.CertPEM + authority.PEM() + one.KeyPEM,
		"key first":         one.KeyPEM + one.CertPEM + authority.PEM(),
		"with remarks":      "subject=x\n" + one.CertPEM + "\nissuer\n" + authority.PEM() + one.KeyPEM + "bye",
	} {
		c, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !c.Leaf.Equal(one.Leaf) || len(c.Chain) != 2 || c.Key == nil || !c.MayServe() {
			t.Errorf("%s: leaf %v, chain of %d, key %v, may serve %v", name, c.Leaf.Subject, len(c.Chain), c.Key != nil, c.MayServe())
		}
		if want := []string{"one.example", "*.two.example", "10.0.0.1"}; !slices.Equal(c.Names(), want) {
			t.Errorf("%s: names %q, want %q", name, c.Names(), want)
		}
	}
	c, err := Parse([]byte(one.CertPEM))
	if err != nil || c.Key != nil || c.MayServe() {
		t.Errorf("without a key: %+v, %v", c, err)
	}
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	authority := testenv.NewAuthority(t, "a")
	one := authority.Server("one.example")
	c, err := Parse([]byte(one.CertPEM + authority.PEM() + one.KeyPEM))
	if err != nil {
		t.Fatal(err)
	}
	key, err := c.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(c.PublicPEM()), "PRIVATE") {
		t.Error("the public form has the key")
	}
	again, err := Parse(append(c.PublicPEM(), key...))
	if err != nil || again.Sum != c.Sum || len(again.Chain) != 2 || again.Key == nil {
		t.Errorf("read again: %+v, %v", again, err)
	}
	bare, err := Parse(c.PublicPEM())
	if err != nil {
		t.Fatal(err)
	}
	if key, err := bare.KeyPEM(); err != nil || key != nil {
		t.Errorf("the key of none: %q, %v", key, err)
	}
}

func TestParseTellsWhatIsWrong(t *testing.T) {
	authority := testenv.NewAuthority(t, "a")
	one, two := authority.Server("one.example"), authority.Server("two.example")
	block := func(kind, text string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte(text)}))
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "no certificate"},
		{"no PEM", "hello", "no certificate"},
		{"a key alone", one.KeyPEM, "no certificate"},
		{"broken certificate", block("CERTIFICATE", "x"), "certificate 1 is malformed"},
		{"broken chain", one.CertPEM + block("CERTIFICATE", "x"), "certificate 2 is malformed"},
		{"broken key", one.CertPEM + block("PRIVATE KEY", "planted-secret"), "malformed or of a kind"},
		{"another's key", one.CertPEM + two.KeyPEM, "does not belong"},
		{"two keys", one.CertPEM + one.KeyPEM + two.KeyPEM, "two private keys"},
		{"password", one.CertPEM + block("ENCRYPTED PRIVATE KEY", "x"), "password"},
		{"endless chain", strings.Repeat(one.CertPEM, maxChain+1), "more than 16"},
		{"too long", strings.Repeat("x", MaxPEM+1), "at most 65536"},
	} {
		_, err := Parse([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "planted") {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if _, err := Parse(nil); !errors.Is(err, ErrNoCertificate) {
		t.Errorf("nothing: %v", err)
	}
}

func TestKeysOfEveryFormAreRead(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Old.example"}, NotAfter: time.Now().Add(time.Hour)}
	ecDER, _ := x509.MarshalECPrivateKey(ec)
	for kind, c := range map[string]struct{ cert, key []byte }{
		"EC PRIVATE KEY":  {der(t, template, &ec.PublicKey, ec), ecDER},
		"RSA PRIVATE KEY": {der(t, template, &r.PublicKey, r), x509.MarshalPKCS1PrivateKey(r)},
	} {
		text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.cert}), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: c.key})...)
		got, err := Parse(text)
		if err != nil || got.Key == nil || !slices.Equal(got.Names(), []string{"old.example"}) {
			t.Errorf("%s: %v, %v", kind, got, err)
		}
	}
}

func TestKeysThatWouldCostSecondsForEveryHandshakeAreRefused(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	modulus := func(bits uint) *rsa.PublicKey {
		n := new(big.Int).Lsh(big.NewInt(1), bits)
		return &rsa.PublicKey{N: n.Sub(n, big.NewInt(1)), E: 65537}
	}
	for bits, refused := range map[uint]bool{maxRSA: false, maxRSA + 1: true} {
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der(t, template, modulus(bits), ec)})
		if _, err := Parse(text); (err != nil) != refused || refused && !strings.Contains(err.Error(), "an RSA key of 8193 bits") {
			t.Errorf("%d bits: %v", bits, err)
		}
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der(t, template, &ec.PublicKey, ec)})
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: make([]byte, maxKeyDER+1)})...)
	if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), "the private key is 8193 bytes long") {
		t.Errorf("a huge private key: %v", err)
	}
}

func der(t *testing.T, template *x509.Certificate, public, by any) []byte {
	t.Helper()
	b, err := x509.CreateCertificate(rand.Reader, template, template, public, by)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestIDsAreToldFromPaths(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	for _, c := range []struct {
		text, org string
		ok        bool
	}{
		{sum, "", true},
		{"acme" + sum, "acme", true},
		{"5e9d9544a1dcd60001d0ed20" + sum, "5e9d9544a1dcd60001d0ed20", true},
		{"/etc/" + sum, "", false},
		{"certs/" + sum, "", false},
		{"./" + sum, "", false},
		{strings.ToUpper(sum), "", false},
		{sum[1:], "", false},
		{sum + ".pem", "", false},
		{"", "", false},
	} {
		org, got, ok := SplitID(c.text)
		if ok != c.ok || org != c.org || ok && got != sum {
			t.Errorf("%s: %q, %q, %v", c.text, org, got, ok)
		}
	}
}

func TestCertificatesOfAuthoritiesAndClientsServeNobody(t *testing.T) {
	authority := testenv.NewAuthority(t, "a")
	client := authority.Client("me")
	c, err := Parse([]byte(client.CertPEM + client.KeyPEM))
	if err != nil || c.MayServe() {
		t.Errorf("a client's may serve: %v, %v", c.MayServe(), err)
	}
	a, err := Parse([]byte(authority.PEM()))
	if err != nil || !a.Leaf.IsCA || a.MayServe() {
		t.Errorf("the authority's: %v", err)
	}
	if info := a.Info("acme", true); !info.IsCA || info.MayServe {
		t.Errorf("info of the authority with its key: %+v", info)
	}
	info := c.Info("acme", true)
	if info.ID != "acme"+c.Sum || info.Subject != "CN=me" || info.Issuer != "CN=a" || !info.HasPrivate || info.IsCA || info.MayServe || info.NotAfter.Location() != time.UTC {
		t.Errorf("info %+v", info)
	}
}

func FuzzParse(f *testing.F) {
	authority := testenv.NewAuthority(f, "a")
	one := authority.Server("one.example")
	f.Add([]byte(one.CertPEM + one.KeyPEM))
	f.Add([]byte(authority.PEM()))
	f.Add([]byte(one.KeyPEM))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text)
		if err != nil {
			return
		}
		key, err := c.KeyPEM()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(append(c.PublicPEM(), key...))
		if err != nil || again.Sum != c.Sum || (again.Key == nil) != (c.Key == nil) {
			t.Fatalf("%v is read again as %v, %v", c.Info("", c.Key != nil), again, err)
		}
	})
}
