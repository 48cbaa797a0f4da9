package acme

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	shown "github.com/sluicegate/sluice/gateway/certs"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
)

const domainOne = "a.example.com"

// newManager returns a Manager whose authority does not answer.
func newManager(t *testing.T, v Vault, held *Folder) *Manager {
	t.Helper()
	return New(Options{
		Domains: []string{domainOne}, Directory: "https://127.0.0.1:1/dir", Challenges: []string{"tls-alpn-01"}, Transport: http.DefaultTransport,
		Vault: v, Copy: held, Issued: new(shown.Store), Log: slog.New(slog.DiscardHandler),
	})
}

func newFolder(t *testing.T) *Folder {
	return NewFolder(filepath.Join(t.TempDir(), "acme"), secret.NewKey())
}

func put(t *testing.T, m *Manager, to Vault, kind, name string, id *testenv.Identity) {
	t.Helper()
	if err := to.Put(t.Context(), m.entry(kind, name), []byte(id.CertPEM+id.KeyPEM), 0); err != nil {
		t.Fatal(err)
	}
}

// While the renewal fails the certificate stays, the failure is counted, and the next attempt
// waits for the lease.
func TestTheLastCertificateIsServedWhileTheRenewalFails(t *testing.T) {
	vault := newFolder(t)
	m := newManager(t, vault, nil)
	put(t, m, vault, "certificate", domainOne, testenv.NewAuthority(t, "former").ServerUntil(time.Now().Add(time.Hour), domainOne))
	for range 3 {
		m.look(t.Context(), domainOne)
	}
	if without, failing := m.Status(); without != 0 || failing != 1 || m.failed.Load() != 1 || m.opts.Issued.Find(domainOne) == nil {
		t.Errorf("%d domains without a certificate, %d failing, %d attempts failed, served %v", without, failing, m.failed.Load(), m.opts.Issued.Find(domainOne))
	}
}

// A vault that has lost a valid certificate, or holds junk, gets it back without an order.
func TestAValidCertificateIsStoredAgainWithoutAnOrder(t *testing.T) {
	vault, held := newFolder(t), newFolder(t)
	put(t, newManager(t, vault, nil), held, "certificate", domainOne, testenv.NewAuthority(t, "own").Server(domainOne))
	m := newManager(t, vault, held)
	if m.opts.Issued.Find(domainOne) == nil {
		t.Fatal("the copy is not served")
	}
	if err := vault.Put(t.Context(), m.entry("certificate", domainOne), []byte("junk"), 0); err != nil {
		t.Fatal(err)
	}
	m.look(t.Context(), domainOne)
	if c, err := m.read(t.Context(), vault, domainOne); err != nil || c.Sum != m.opts.Issued.Find(domainOne).Sum || m.failed.Load() != 0 {
		t.Errorf("stored are %v, %v after %d failed orders", c, err, m.failed.Load())
	}
}

// A gateway answers the challenges that another one has begun, for its domains alone, and
// while their certificate is due.
func TestChallengesOfOthersAreAnswered(t *testing.T) {
	vault := newFolder(t)
	m := newManager(t, vault, nil)
	if err := vault.Put(t.Context(), m.entry("http", "token"), []byte("token.print"), 0); err != nil {
		t.Fatal(err)
	}
	authority := testenv.NewAuthority(t, "own")
	for _, name := range []string{domainOne, "other.example.com"} {
		put(t, m, vault, "alpn", name, authority.Server(name))
	}
	validates := func(name string) bool {
		hello := &tls.ClientHelloInfo{ServerName: name, SupportedProtos: []string{"acme-tls/1"}}
		cert, err := m.Handshake(hello).GetCertificate(hello)
		return err == nil && cert.Leaf.VerifyHostname(name) == nil
	}
	if got := string(m.Answer([]byte("A.example.com:80"), []byte("token"))); got != "token.print" || !validates(domainOne) {
		t.Errorf("the answer is %q", got)
	}
	if m.Answer([]byte(domainOne), []byte("other")) != nil || m.Answer([]byte(domainOne), []byte("../token")) != nil ||
		m.Answer([]byte("other.example.com"), []byte("token")) != nil || validates("other.example.com") {
		t.Error("another token or domain is answered")
	}
	if m.Handshake(&tls.ClientHelloInfo{ServerName: domainOne, SupportedProtos: []string{"http/1.1", "acme-tls/1"}}) != nil {
		t.Error("a client's handshake is taken for a validation")
	}
	put(t, m, vault, "certificate", domainOne, authority.Server(domainOne))
	m.look(t.Context(), domainOne)
	if m.Answer([]byte(domainOne), []byte("token")) != nil || validates(domainOne) {
		t.Error("challenges are answered although the certificate is not due")
	}
}
