package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
)

// write writes a file with a time of change that no earlier one had.
func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	written.Lock()
	defer written.Unlock()
	written.at = written.at.Add(time.Second)
	if err := os.Chtimes(path, written.at, written.at); err != nil {
		t.Fatal(err)
	}
}

var written = struct {
	sync.Mutex
	at time.Time
}{at: time.Unix(1_000_000_000, 0)}

func pairOf(t testing.TB, dir, name string, id *testenv.Identity) certs.Pair {
	t.Helper()
	p := certs.Pair{Cert: filepath.Join(dir, name+".crt"), Key: filepath.Join(dir, name+".key")}
	write(t, p.Cert, id.CertPEM)
	write(t, p.Key, id.KeyPEM)
	return p
}

func parsed(t testing.TB, id *testenv.Identity, withKey bool) *certs.Certificate {
	t.Helper()
	text := id.CertPEM
	if withKey {
		text += id.KeyPEM
	}
	c, err := certs.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newServer(t testing.TB, o ServerOptions) *Server {
	t.Helper()
	if o.Store == nil {
		o.Store = new(Store)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.MinVersion = max(o.MinVersion, tls.VersionTLS12)
	s, err := NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// connected returns both ends of a connection.
func connected() (a, b net.Conn, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer ln.Close()
	if b, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		return nil, nil, err
	}
	if a, err = ln.Accept(); err != nil {
		return nil, nil, err
	}
	by := time.Now().Add(10 * time.Second)
	return a, b, errors.Join(a.SetDeadline(by), b.SetDeadline(by))
}

// shakeHands makes a handshake with s, and returns what both saw.
func shakeHands(s *Server, client *tls.Config) (server, seen tls.ConnectionState, err error) {
	a, b, err := connected()
	if err != nil {
		return server, seen, err
	}
	defer a.Close()
	defer b.Close()
	one, two := tls.Server(a, s.Config()), tls.Client(b, client)
	done := make(chan error, 1)
	go func() {
		err := one.Handshake()
		if err == nil {
			_, err = one.Write([]byte("x")) // brings the client its tickets
		}
		if err != nil {
			_ = a.Close()
		}
		done <- err
	}()
	if err = two.Handshake(); err == nil {
		_, err = io.ReadFull(two, make([]byte, 1))
	}
	if err != nil {
		_ = b.Close()
	}
	if serverErr := <-done; err == nil {
		err = serverErr
	}
	return one.ConnectionState(), two.ConnectionState(), err
}

func insecure(name string) *tls.Config {
	return &tls.Config{ServerName: name, InsecureSkipVerify: true}
}

// shownTo returns the names of the certificate that a client gets which asks for a
// name.
func shownTo(t testing.TB, s *Server, name string) string {
	t.Helper()
	_, seen, err := shakeHands(s, insecure(name))
	if err != nil {
		return err.Error()
	}
	return strings.Join(seen.PeerCertificates[0].DNSNames, " ")
}

func TestTheCertificateMatchesTheServerName(t *testing.T) {
	dir, authority := t.TempDir(), testenv.NewAuthority(t, "a")
	store := new(Store)
	s := newServer(t, ServerOptions{Store: store, Files: []certs.Pair{
		pairOf(t, dir, "first", authority.Server("first.example")),
		pairOf(t, dir, "wild", authority.Server("*.wild.example", "wild.example")),
		pairOf(t, dir, "exact", authority.Server("exact.wild.example")),
	}})
	stored := parsed(t, authority.ServerUntil(time.Now().Add(20*time.Hour), "stored.example", "first.example"), true)
	store.Put(stored.ID("org"), stored)
	client := parsed(t, authority.Client("client.example"), true)
	store.Put(client.ID("org"), client)
	public := parsed(t, authority.Server("public.example"), false)
	store.Put(public.ID("org"), public)
	for name, want := range map[string]string{
		"first.example":      "first.example", // files go before the store
		"FIRST.example":      "first.example",
		"a.wild.example":     "*.wild.example wild.example",
		"wild.example":       "*.wild.example wild.example",
		"exact.wild.example": "exact.wild.example",
		"a.b.wild.example":   "first.example", // a star stands for one label
		"stored.example":     "stored.example first.example",
		"unknown.example":    "first.example",
		"public.example":     "first.example", // no key
		"":                   "first.example",
	} {
		if got := shownTo(t, s, name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	store.Delete(stored.ID("org"))
	if got := shownTo(t, s, "stored.example"); got != "first.example" {
		t.Errorf("after its deletion: %s", got)
	}
}

// Issued certificates come after those of files and of the store, also if they expire later.
// A handshake that validates a name gets its own.
func TestIssuedCertificatesComeLast(t *testing.T) {
	dir, authority := t.TempDir(), testenv.NewAuthority(t, "a")
	store, issued := new(Store), new(Store)
	validation := authority.Server("validation.example")
	s := newServer(t, ServerOptions{
		Store: store, Issued: issued, Files: []certs.Pair{pairOf(t, dir, "file", authority.ServerUntil(time.Now().Add(time.Hour), "file.example"))},
		Challenge: func(hello *tls.ClientHelloInfo) *tls.Config {
			if hello.ServerName != "validated.example" {
				return nil
			}
			return &tls.Config{Certificates: []tls.Certificate{validation.TLS}}
		},
	})
	stored := parsed(t, authority.ServerUntil(time.Now().Add(time.Hour), "stored.example"), true)
	store.Put(stored.ID("org"), stored)
	for _, name := range []string{"file.example", "stored.example", "issued.example"} {
		issued.Put(name, parsed(t, authority.Server(name, "by-acme.example"), true))
	}
	for name, want := range map[string]string{
		"file.example":      "file.example",
		"stored.example":    "stored.example",
		"issued.example":    "issued.example by-acme.example",
		"validated.example": "validation.example",
	} {
		if got := shownTo(t, s, name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

func TestTheCertificateThatExpiresLaterIsPreferred(t *testing.T) {
	authority, store := testenv.NewAuthority(t, "a"), new(Store)
	s := newServer(t, ServerOptions{Store: store})
	if got := shownTo(t, s, "a.example"); !strings.Contains(got, "internal error") {
		t.Errorf("without any: %s", got)
	}
	for _, end := range []time.Duration{time.Hour, 3 * time.Hour, 2 * time.Hour} {
		c := parsed(t, authority.ServerUntil(time.Now().Add(end), "a.example", fmt.Sprint(end.Hours(), "h.example")), true)
		store.Put(c.ID(""), c)
	}
	if got := shownTo(t, s, "a.example"); got != "a.example 3h.example" {
		t.Errorf("shown: %s", got)
	}
}

func TestChangedFilesAreReloadedUnlessTheyAreInvalid(t *testing.T) {
	dir, authority := t.TempDir(), testenv.NewAuthority(t, "a")
	pair := pairOf(t, dir, "x", authority.Server("one.example"))
	s := newServer(t, ServerOptions{Files: []certs.Pair{pair}})
	look := func() error { return s.reload(false) }
	two, expired := authority.Server("two.example"), authority.ServerUntil(time.Now().Add(-time.Minute), "old.example")
	for _, step := range []struct {
		name  string
		do    func()
		wrong string
		shown string
	}{
		{"nothing", func() {}, "", "one.example"},
		{"certificate before its key", func() { write(t, pair.Cert, two.CertPEM) }, "does not belong", "one.example"},
		{"the same again", func() { write(t, pair.Cert, two.CertPEM) }, "", "one.example"},
		{"then its key", func() { write(t, pair.Key, two.KeyPEM) }, "", "two.example"},
		{"junk", func() { write(t, pair.Cert, "junk") }, "no certificate in PEM form", "two.example"},
		{"gone", func() { _ = os.Remove(pair.Cert) }, "no such file", "two.example"},
		{"expired", func() { write(t, pair.Key, expired.KeyPEM); write(t, pair.Cert, expired.CertPEM) }, "has expired on", "two.example"},
		{"good again", func() { write(t, pair.Cert, two.CertPEM); write(t, pair.Key, two.KeyPEM) }, "", "two.example"},
	} {
		step.do()
		err := look()
		if (err == nil) != (step.wrong == "") || err != nil && !strings.Contains(err.Error(), step.wrong) {
			t.Errorf("%s: %v, want %q", step.name, err, step.wrong)
		}
		if got := shownTo(t, s, ""); got != step.shown {
			t.Errorf("%s: shown %s, want %s", step.name, got, step.shown)
		}
	}
}

func TestRunReloadsFilesAndReportsAFaultOnce(t *testing.T) {
	dir, authority := t.TempDir(), testenv.NewAuthority(t, "a")
	pair := pairOf(t, dir, "x", authority.Server("one.example"))
	two := authority.Server("two.example")
	synctest.Test(t, func(t *testing.T) {
		said := new(testenv.Log)
		s := newServer(t, ServerOptions{Files: []certs.Pair{pair}, Log: said.Logger()})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.Run(ctx); close(done) }()
		write(t, pair.Cert, "junk")
		time.Sleep(5 * lookEvery) // of the bubble's clock
		synctest.Wait()
		if n := strings.Count(said.String(), "cannot be used"); n != 1 || s.Stats().Broken != 1 {
			t.Errorf("said %d times, counted %d", n, s.Stats().Broken)
		}
		write(t, pair.Cert, two.CertPEM)
		write(t, pair.Key, two.KeyPEM)
		time.Sleep(2 * lookEvery)
		synctest.Wait()
		if st := s.Stats(); len(st.Expires) != 1 || st.Expires[0].Name != "two.example" {
			t.Errorf("stats %+v", st)
		}
		cancel()
		<-done
	})
}

func TestAServerDoesNotStartWithInvalidFiles(t *testing.T) {
	dir, authority := t.TempDir(), testenv.NewAuthority(t, "a")
	good := pairOf(t, dir, "x", authority.Server("one.example"))
	write(t, filepath.Join(dir, "empty.pem"), "")
	for want, o := range map[string]ServerOptions{
		"missing.pem: no such file":     {Files: []certs.Pair{good, {Cert: filepath.Join(dir, "missing.pem")}}},
		"x.crt: has no private key":     {Files: []certs.Pair{{Cert: good.Cert}}},
		"empty.pem: holds no certifica": {Files: []certs.Pair{good}, ClientCA: filepath.Join(dir, "empty.pem")},
	} {
		o.Store, o.Log = new(Store), slog.New(slog.DiscardHandler)
		if _, err := NewServer(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func api(change func(*definition.API)) *pipeline.API {
	def := &definition.API{UseKeyless: true}
	change(def)
	return &pipeline.API{Definition: def}
}

func TestClientsAreAskedForACertificateWhereAnAPIUsesIt(t *testing.T) {
	dir, authority := t.TempDir(), testenv.NewAuthority(t, "a")
	client := insecure("b.example")
	client.Certificates = []tls.Certificate{testenv.NewAuthority(t, "any").Client("me").TLS}
	pair := pairOf(t, dir, "x", authority.Server("b.example"))
	isAsked := func(s *Server) bool {
		t.Helper()
		server, _, err := shakeHands(s, client)
		if err != nil {
			t.Fatal(err)
		}
		return len(server.PeerCertificates) > 0
	}
	plain := api(func(*definition.API) {})
	mutualA := api(func(a *definition.API) { a.UseMutualTLS, a.Domain = true, "A.example" })
	mutualB := api(func(a *definition.API) { a.UseMutualTLS, a.Domain = true, "B.example" })
	token := api(func(a *definition.API) { a.UseKeyless, a.Auth = false, &definition.Auth{UseCertificate: true} })
	open := api(func(a *definition.API) { a.Auth = &definition.Auth{UseCertificate: true} })
	for _, c := range []struct {
		name    string
		domains bool
		always  bool
		apis    []*pipeline.API
		want    bool
	}{
		{"nobody wants one", true, false, []*pipeline.API{plain, open}, false},
		{"another domain", true, false, []*pipeline.API{plain, mutualA}, false},
		{"its domain", true, false, []*pipeline.API{mutualB}, true},
		{"domains have no effect", false, false, []*pipeline.API{mutualA}, true},
		{"everywhere", true, false, []*pipeline.API{token}, true},
		{"always", true, true, nil, true},
	} {
		s := newServer(t, ServerOptions{Files: []certs.Pair{pair}, Domains: c.domains, AlwaysAsk: c.always})
		s.Came(c.apis)
		if got := isAsked(s); got != c.want {
			t.Errorf("%s: asked %t", c.name, got)
		}
		s.Came(c.apis)
		s.Gone(c.apis)
		if got := isAsked(s); got != c.want {
			t.Errorf("%s, another one like it gone: asked %t", c.name, got)
		}
		s.Gone(c.apis)
		if got := isAsked(s); got != c.always {
			t.Errorf("%s, gone: asked %t", c.name, got)
		}
	}
}

func TestASessionWithoutACertificateIsNotResumedOnceAnAPIUsesIt(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		dir, authority := t.TempDir(), testenv.NewAuthority(t, "a")
		s := newServer(t, ServerOptions{Files: []certs.Pair{pairOf(t, dir, "x", authority.Server("b.example"))}})
		client := insecure("b.example")
		client.MaxVersion, client.ClientSessionCache = version, tls.NewLRUClientSessionCache(2)
		client.Certificates = []tls.Certificate{authority.Client("me").TLS}
		shake := func(resumed, certificate bool) {
			t.Helper()
			server, _, err := shakeHands(s, client)
			if err != nil || server.DidResume != resumed || len(server.PeerCertificates) > 0 != certificate {
				t.Errorf("%x: resumed %t, certificates %d, %v", version, server.DidResume, len(server.PeerCertificates), err)
			}
		}
		shake(false, false)
		shake(true, false)
		mutual := []*pipeline.API{api(func(a *definition.API) { a.UseMutualTLS = true })}
		s.Came(mutual)
		shake(false, true)
		shake(true, true)
		s.Gone(mutual)
		shake(false, false)
	}
}

func TestCertificatesOfOtherAuthoritiesAreRefused(t *testing.T) {
	dir, ours, theirs := t.TempDir(), testenv.NewAuthority(t, "ours"), testenv.NewAuthority(t, "theirs")
	file := filepath.Join(dir, "clients.pem")
	write(t, file, ours.PEM())
	s := newServer(t, ServerOptions{Files: []certs.Pair{pairOf(t, dir, "x", ours.Server("b.example"))}, ClientCA: file})
	with := func(certificates ...tls.Certificate) error {
		c := insecure("b.example")
		c.Certificates = certificates
		_, _, err := shakeHands(s, c)
		return err
	}
	if err := with(); err != nil {
		t.Errorf("without one: %v", err)
	}
	if err := with(ours.Client("me").TLS); err != nil {
		t.Errorf("ours: %v", err)
	}
	// A client that got to know the authorities shows no other certificate of its
	// own accord: this one is made to.
	stubborn := insecure("b.example")
	other := theirs.Client("me").TLS
	stubborn.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &other, nil }
	if _, _, err := shakeHands(s, stubborn); err == nil {
		t.Error("theirs: accepted")
	}
	resuming := insecure("b.example")
	resuming.Certificates, resuming.ClientSessionCache = []tls.Certificate{ours.Client("me").TLS}, tls.NewLRUClientSessionCache(1)
	for i := range 2 {
		if server, _, err := shakeHands(s, resuming); err != nil || server.DidResume != (i > 0) || len(server.PeerCertificates) != 1 {
			t.Errorf("ours, connection %d: resumed %t, %v", i, server.DidResume, err)
		}
	}
	write(t, file, theirs.PEM())
	if err := s.reload(false); err != nil {
		t.Fatal(err)
	}
	if server, _, err := shakeHands(s, resuming); err == nil && len(server.PeerCertificates) > 0 {
		t.Error("ours is let in by a ticket although its authority is not trusted any more")
	}
	if _, _, err := shakeHands(s, stubborn); err != nil {
		t.Errorf("theirs, once they are trusted: %v", err)
	}
}

func TestALongChainIsRefused(t *testing.T) {
	dir, authority := t.TempDir(), testenv.NewAuthority(t, "a")
	s := newServer(t, ServerOptions{Files: []certs.Pair{pairOf(t, dir, "x", authority.Server("b.example"))}, AlwaysAsk: true})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		shown := authority.Client("me").TLS
		for size := len(shown.Certificate[0]); size <= maxShown; size += len(authority.Certificate().Raw) {
			shown.Certificate = append(shown.Certificate, authority.Certificate().Raw)
		}
		client := insecure("b.example")
		client.MaxVersion, client.Certificates = version, []tls.Certificate{shown}
		if server, _, err := shakeHands(s, client); err == nil {
			t.Errorf("%x: %d certificates are kept", version, len(server.PeerCertificates))
		}
		shown.Certificate = shown.Certificate[:len(shown.Certificate)-1]
		client.Certificates = []tls.Certificate{shown}
		if _, _, err := shakeHands(s, client); err != nil {
			t.Errorf("%x: the most that is looked at: %v", version, err)
		}
	}
}

func TestOldVersionsAndOtherProtocolsAreRefused(t *testing.T) {
	dir, authority := t.TempDir(), testenv.NewAuthority(t, "a")
	pair := pairOf(t, dir, "x", authority.Server("b.example"))
	s := newServer(t, ServerOptions{Files: []certs.Pair{pair}})
	newest := newServer(t, ServerOptions{Files: []certs.Pair{pair}, MinVersion: tls.VersionTLS13})
	old, two, h2 := insecure("b.example"), insecure("b.example"), insecure("b.example")
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	two.MaxVersion = tls.VersionTLS12
	h2.NextProtos = []string{"h2", "http/1.1"}
	if _, _, err := shakeHands(s, old); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %v", err)
	}
	if _, _, err := shakeHands(newest, two); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.2 where 1.3 is asked for: %v", err)
	}
	if _, seen, err := shakeHands(s, h2); err != nil || seen.NegotiatedProtocol != "http/1.1" {
		t.Errorf("a client that would rather speak HTTP/2 speaks %q, %v", seen.NegotiatedProtocol, err)
	}
}

func TestCertificatesThatExpireSoonAreLogged(t *testing.T) {
	dir, authority, said := t.TempDir(), testenv.NewAuthority(t, "a"), new(testenv.Log)
	newServer(t, ServerOptions{Files: []certs.Pair{pairOf(t, dir, "x", authority.Server("soon.example"))}, Log: said.Logger()})
	if !strings.Contains(said.String(), "expires soon") || !strings.Contains(said.String(), "soon.example") {
		t.Errorf("said %q", said)
	}
}

func TestFailedHandshakesAreLoggedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := new(testenv.Log)
		s := newServer(t, ServerOptions{Log: said.Logger()})
		peer := netip.MustParseAddr("192.0.2.1")
		for range 2 {
			for range 100 {
				s.Failed(peer, errors.New("no common version"))
			}
			s.Failed(peer, io.EOF)
			time.Sleep(time.Second)
		}
		s.Failed(peer, errors.New("no common version"))
		if n := strings.Count(said.String(), "TLS handshake failed"); n != 3 || !strings.Contains(said.String(), "failed=100") {
			t.Errorf("said %d times: %s", n, said)
		}
	})
}
