package certs_test

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/testenv"
)

// files writes what a certificate is read from.
func files(t *testing.T, dir, name string, id *testenv.Identity, at time.Time) certs.Pair {
	t.Helper()
	p := certs.Pair{Cert: filepath.Join(dir, name+".crt"), Key: filepath.Join(dir, name+".key")}
	save(t, p.Cert, id.CertPEM, at)
	save(t, p.Key, id.KeyPEM, at)
	return p
}

func save(t *testing.T, path, text string, at time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// over serves a listener, and returns its URL with a host that certificates have.
func over(t *testing.T, l *certs.Listener) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler:  http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") }),
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = server.Serve(l.Over(ln)) }()
	t.Cleanup(func() { _ = server.Close() })
	return "https://" + ln.Addr().String()
}

// call calls a server by a new caller, and returns what it says or the error.
func call(t *testing.T, url string, o certs.CallerOptions) string {
	t.Helper()
	c, err := certs.NewCaller(o)
	if err != nil {
		t.Fatal(err)
	}
	transport := c.Transport()
	defer transport.CloseIdleConnections()
	return get(transport, url)
}

func get(over http.RoundTripper, url string) string {
	client := http.Client{Transport: over, Timeout: time.Minute}
	resp, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}

// A listener with authorities of clients refuses those without a certificate of theirs, and
// says so.
func TestListenersAuthenticateTheirClients(t *testing.T) {
	dir, at := t.TempDir(), time.Unix(1_000_000_000, 0)
	ours, others := testenv.NewAuthority(t, "ours"), testenv.NewAuthority(t, "others")
	ca, otherCA := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "other.pem")
	save(t, ca, ours.PEM(), at)
	save(t, otherCA, others.PEM(), at)
	said := new(testenv.Log)
	l, err := certs.NewListener(certs.ListenerOptions{
		Setting: "admin.tls", Pair: files(t, dir, "server", ours.Server("127.0.0.1"), at), ClientCA: ca, MinVersion: tls.VersionTLS13, Log: said.Logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	url := over(t, l)
	good, bad := files(t, dir, "good", ours.Client("gateway"), at), files(t, dir, "bad", others.Client("gateway"), at)
	for _, c := range []struct {
		name string
		o    certs.CallerOptions
		want string
	}{
		{"its own", certs.CallerOptions{CA: ca, Pair: good}, "ok"},
		{"none", certs.CallerOptions{CA: ca}, "certificate required"},
		{"of another authority", certs.CallerOptions{CA: ca, Pair: bad}, "unknown certificate authority"},
		{"a server that is not trusted", certs.CallerOptions{CA: otherCA, Pair: good}, "certificate signed by unknown authority"},
		{"a server of another name", certs.CallerOptions{CA: ca, Pair: good, Name: "admin.example"}, "wanted to match admin.example"},
	} {
		if got := call(t, url, c.o); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	if text := said.String(); !strings.Contains(text, "TLS handshake failed") || !strings.Contains(text, "setting=admin.tls") {
		t.Error("said", text)
	}
}

// Files that change are read for the next handshake; a faulty one leaves what was there.
func TestListenersTakeNewCertificates(t *testing.T) {
	dir, at := t.TempDir(), time.Unix(1_000_000_000, 0)
	authority := testenv.NewAuthority(t, "ours")
	pair := files(t, dir, "server", authority.Server("one.example"), at)
	synctest.Test(t, func(t *testing.T) {
		said := new(testenv.Log)
		l, err := certs.NewListener(certs.ListenerOptions{Setting: "portal.tls", Pair: pair, MinVersion: tls.VersionTLS12, Log: said.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		served := func() string {
			conf, err := l.Config().GetConfigForClient(nil)
			if err != nil {
				t.Fatal(err)
			}
			return conf.Certificates[0].Leaf.DNSNames[0]
		}
		next := authority.Server("two.example")
		for _, c := range []struct {
			name   string
			change func()
			want   string
		}{
			{"nothing", func() {}, "one.example"},
			{"the certificate before its key", func() { save(t, pair.Cert, next.CertPEM, at.Add(time.Second)) }, "one.example"},
			{"its key", func() { save(t, pair.Key, next.KeyPEM, at.Add(time.Second)) }, "two.example"},
			{"no certificate", func() { save(t, pair.Cert, "junk", at.Add(2*time.Second)) }, "two.example"},
		} {
			c.change()
			time.Sleep(3 * time.Second) // on the clock of the test
			if got := served(); got != c.want {
				t.Errorf("%s: %s", c.name, got)
			}
		}
		if n := strings.Count(said.String(), "cannot be used"); n != 2 {
			t.Errorf("said %d times: %s", n, said)
		}
	})
}

// Callers take new files for their next connection.
func TestCallersTakeNewAuthorities(t *testing.T) {
	dir, at := t.TempDir(), time.Unix(1_000_000_000, 0)
	ours, others := testenv.NewAuthority(t, "ours"), testenv.NewAuthority(t, "others")
	ca := filepath.Join(dir, "ca.pem")
	save(t, ca, others.PEM(), at)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") }))
	own, err := files(t, dir, "server", ours.Server("127.0.0.1"), at).Read()
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{*own.TLS()}}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	defer server.Close()
	c, err := certs.NewCaller(certs.CallerOptions{CA: ca})
	if err != nil {
		t.Fatal(err)
	}
	transport := c.Transport()
	defer transport.CloseIdleConnections()
	if got := get(transport, server.URL); !strings.Contains(got, "unknown authority") {
		t.Error(got)
	}
	save(t, ca, ours.PEM(), at.Add(time.Second))
	if got := get(transport, server.URL); got != "ok" {
		t.Error(got)
	}
	save(t, ca, "junk", at.Add(2*time.Second))
	transport.CloseIdleConnections()
	if got := get(transport, server.URL); got != "ok" {
		t.Error("with a faulty file:", got)
	}
	for what, o := range map[string]certs.CallerOptions{
		"no such file":                {CA: filepath.Join(dir, "none.pem")},
		"holds no certificate in PEM": {CA: ca},
		"has no private key":          {Pair: certs.Pair{Cert: filepath.Join(dir, "server.crt")}},
	} {
		if _, err := certs.NewCaller(o); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
