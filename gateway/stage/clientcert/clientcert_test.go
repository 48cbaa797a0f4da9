package clientcert

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
)

// shelf is a store of certificates.
type shelf struct {
	byID       map[string]*certs.Certificate
	generation uint64
}

func (s *shelf) Find(id string) *certs.Certificate { return s.byID[id] }
func (s *shelf) Generation() uint64                { return s.generation }

func (s *shelf) put(t testing.TB, org, text string) (id string) {
	t.Helper()
	c, err := certs.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if s.byID == nil {
		s.byID = make(map[string]*certs.Certificate)
	}
	s.byID[c.ID(org)] = c
	s.generation++
	return c.ID(org)
}

func (s *shelf) remove(id string) {
	delete(s.byID, id)
	s.generation++
}

func compile(t testing.TB, store Certificates, list ...string) *stage {
	t.Helper()
	made, err := Compile(&definition.API{OrgID: "acme", UseMutualTLS: true, ClientCertificates: list}, store)
	if err != nil {
		t.Fatal(err)
	}
	return made.(*stage)
}

// from is an exchange whose client shows a chain.
func from(chain ...*x509.Certificate) *pipeline.Exchange {
	call := &wire.Call{TLS: true, Started: time.Now()}
	if len(chain) > 0 {
		call.Cert = wire.NewCertificate(chain)
	}
	return pipeline.For(call)
}

// outcome is what a client is told, "" when it passes.
func outcome(s *stage, ex *pipeline.Exchange) string {
	if s.Handle(ex) == pipeline.Next {
		return ""
	}
	return fmt.Sprint(ex.Rejection.Status, " ", ex.Rejection.Reason, " ", ex.Rejection.Message)
}

func TestEveryClientGetsItsAnswer(t *testing.T) {
	ours, theirs, store := testenv.NewAuthority(t, "ours"), testenv.NewAuthority(t, "theirs"), &shelf{}
	listed, unlisted, signed := theirs.Client("listed"), theirs.Client("unlisted"), ours.Client("signed")
	old, oldSigned := theirs.ClientUntil("old", time.Now().Add(-time.Second)), ours.ClientUntil("old", time.Now().Add(-time.Second))
	young := ours.ClientUntil("young", time.Now().Add(2*time.Hour)) // valid in an hour
	server := ours.Server("not.a.client")
	s := compile(t, store, store.put(t, "acme", listed.CertPEM), store.put(t, "acme", ours.PEM()), store.put(t, "acme", old.CertPEM))
	bare := pipeline.For(&wire.Call{Started: time.Now()})
	denied := func(i *testenv.Identity) string {
		return "403 certificate_denied Certificate with SHA256 " + certs.SumOf(i.Leaf.Raw) + " not allowed"
	}
	for _, c := range []struct {
		name string
		ex   *pipeline.Exchange
		want string
	}{
		{"plain HTTP", bare, "403 tls_required TLS not enabled"},
		{"no certificate", from(), "403 certificate_missing Client TLS certificate is required"},
		{"listed", from(listed.Leaf), ""},
		{"signed by a listed authority", from(signed.Leaf), ""},
		{"another one of an authority that is not listed", from(unlisted.Leaf), denied(unlisted)},
		{"another one that claims the authority", from(unlisted.Leaf, ours.Certificate()), denied(unlisted)},
		{"listed and expired", from(old.Leaf), "403 certificate_expired Certificate has expired"},
		{"signed and expired", from(oldSigned.Leaf), "403 certificate_expired Certificate has expired"},
		{"signed and not valid yet", from(young.Leaf), "403 certificate_expired Certificate is not valid yet"},
		{"signed, for servers", from(server.Leaf), denied(server)},
	} {
		if got := outcome(s, c.ex); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if closes := c.ex.Answer.Close; closes != (c.name == "no certificate") {
			t.Errorf("%s: the connection ends: %t", c.name, closes)
		}
	}
}

func TestAnEmptyListLetsNobodyIn(t *testing.T) {
	client := testenv.NewAuthority(t, "a").Client("me")
	if got := outcome(compile(t, &shelf{}), from(client.Leaf)); !strings.Contains(got, "not allowed") {
		t.Error(got)
	}
}

func TestADeletedCertificateIsRefusedAtOnceOnTheSameConnection(t *testing.T) {
	authority, store := testenv.NewAuthority(t, "a"), &shelf{}
	client := authority.Client("me")
	for name, text := range map[string]string{"the certificate": client.CertPEM, "its authority": authority.PEM()} {
		id := store.put(t, "acme", text)
		s, ex := compile(t, store, id), from(client.Leaf)
		if got := outcome(s, ex); got != "" {
			t.Errorf("%s is there: %s", name, got)
		}
		store.remove(id)
		if got := outcome(s, ex); !strings.Contains(got, "not allowed") {
			t.Errorf("%s is gone: %s", name, got)
		}
		store.put(t, "acme", text)
		if got := outcome(s, ex); got != "" {
			t.Errorf("%s is back: %s", name, got)
		}
		store.remove(id)
	}
}

func TestAnAuthorityThatExpiresTakesItsClientsAlong(t *testing.T) {
	authority, store := testenv.NewAuthority(t, "a"), &shelf{} // for a day
	client := authority.ClientUntil("me", time.Now().Add(48*time.Hour))
	client.Leaf.NotBefore = time.Now().Add(-time.Hour)
	s, ex := compile(t, store, store.put(t, "acme", authority.PEM())), from(client.Leaf)
	if got := outcome(s, ex); got != "" {
		t.Error(got)
	}
	ex.Started = authority.Certificate().NotAfter.Add(time.Second)
	if got := outcome(s, ex); !strings.Contains(got, "not allowed") {
		t.Errorf("on the same connection, a day later: %s", got)
	}
}

func TestFilesAreListsToo(t *testing.T) {
	dir, ours, theirs := t.TempDir(), testenv.NewAuthority(t, "ours"), testenv.NewAuthority(t, "theirs")
	pinned := theirs.Client("pinned")
	file := filepath.Join(dir, "clients.pem")
	if err := os.WriteFile(file, []byte(ours.PEM()+pinned.CertPEM+pinned.KeyPEM), 0o600); err != nil {
		t.Fatal(err)
	}
	s := compile(t, &shelf{}, file)
	for _, i := range []*testenv.Identity{pinned, ours.Client("any")} {
		if got := outcome(s, from(i.Leaf)); got != "" {
			t.Errorf("%s: %s", i.Leaf.Subject, got)
		}
	}
	if got := outcome(s, from(theirs.Client("any").Leaf)); got == "" {
		t.Error("another of their authority is let in")
	}
}

func TestWhatIsNoListIsRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for want, entry := range map[string]string{
		"client_certificates[0]: \"acme\" is neither": "acme",
		"client_certificates[0]: open ":               filepath.Join(dir, "missing.pem"),
		"is not a regular file":                       "/dev/zero",
		"holds no certificate in PEM form":            write("empty.pem", "x"),
		"certificate 1 is malformed":                  write("broken.pem", "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n"),
	} {
		_, err := Compile(&definition.API{UseMutualTLS: true, ClientCertificates: []string{entry}}, &shelf{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", entry, err, want)
		}
	}
	if s, err := Compile(&definition.API{ClientCertificates: []string{"acme"}}, &shelf{}); s != nil || err != nil {
		t.Errorf("without mutual TLS there is a stage: %v, %v", s, err)
	}
}

func TestAnExplanationNamesWhatTheStoreLacks(t *testing.T) {
	client, store := testenv.NewAuthority(t, "a").Client("me"), &shelf{}
	id := "acme" + strings.Repeat("0", 64)
	s, ex := compile(t, store, id), from(client.Leaf)
	ex.API = &pipeline.API{Definition: &definition.API{ClientCertificates: []string{id}}}
	f := pipeline.Finding{Verdict: s.Handle(ex)}
	s.Explain(ex, &f)
	if !strings.Contains(f.Fix, id) || !strings.Contains(f.Said, "not allowed") || len(f.Facts) != 1 || !strings.Contains(f.Facts[0].Seen, certs.SumOf(client.Leaf.Raw)) {
		t.Errorf("%+v", f)
	}
	store.put(t, "acme", client.CertPEM)
	f = pipeline.Finding{}
	s.Explain(ex, &f)
	if f.Fix != "" {
		t.Errorf("of one that is let in: %+v", f)
	}
}

func TestFurtherRequestsOfAConnectionCostNothing(t *testing.T) {
	authority, store := testenv.NewAuthority(t, "a"), &shelf{}
	s := compile(t, store, store.put(t, "acme", authority.PEM()))
	for name, ex := range map[string]*pipeline.Exchange{
		"let in":         from(authority.Client("me").Leaf),
		"refused":        from(testenv.NewAuthority(t, "b").Client("you").Leaf),
		"no certificate": from(),
	} {
		s.Handle(ex)
		if n := testing.AllocsPerRun(100, func() { s.Handle(ex) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkHandle(b *testing.B) {
	authority, store := testenv.NewAuthority(b, "a"), &shelf{}
	s, ex := compile(b, store, store.put(b, "acme", authority.PEM())), from(authority.Client("me").Leaf)
	b.ReportAllocs()
	for b.Loop() {
		if s.Handle(ex) != pipeline.Next {
			b.Fatal(ex.Rejection.Message)
		}
	}
}
