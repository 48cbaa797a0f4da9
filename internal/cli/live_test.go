package cli

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestTheServerOfThisMachineAnswersProbes(t *testing.T) {
	status, asked := http.StatusOK, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		w.WriteHeader(status)
	}))
	defer server.Close()
	env := []string{"SLUICE_ADMIN_LISTEN=" + server.Listener.Addr().String()}
	for _, probe := range []string{"live", "ready"} {
		status = http.StatusOK
		if text := run("doctor --"+probe, env, nil); asked != "/"+probe || !strings.Contains(text, "exit 0") || !strings.Contains(text, server.URL+"/"+probe+" answers") {
			t.Errorf("asked for %s: %s", asked, text)
		}
		status = http.StatusServiceUnavailable
		if text := run("doctor --"+probe, env, nil); !strings.Contains(text, "exit 1") || !strings.Contains(text, "it answers 503 Service Unavailable") {
			t.Error(text)
		}
	}
	server.Close()
	if text := run("doctor --live", env, nil); !strings.Contains(text, "exit 1") || !strings.Contains(text, "connection refused") {
		t.Error(text)
	}
	if text := run("doctor --live --ready", env, nil); !strings.Contains(text, "exit 2") || !strings.Contains(text, "keep one") {
		t.Error(text)
	}
}

// A server that requires client certificates lives, and is ready for a client that has one.
func TestAServerThatRequiresCertificatesAnswersProbes(t *testing.T) {
	dir, authority := t.TempDir(), testenv.NewAuthority(t, "ours")
	file := func(name string, id *testenv.Identity) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(id.CertPEM+id.KeyPEM), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{authority.Server("admin.example").TLS}, ClientCAs: authority.Pool(), ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	defer server.Close()
	env := []string{"SLUICE_ADMIN_LISTEN=" + server.Listener.Addr().String(), "SLUICE_ADMIN_TLS_CERT=x"}
	ours, theirs := file("ours.pem", authority.Client("probe")), file("theirs.pem", testenv.NewAuthority(t, "theirs").Client("probe"))
	for _, c := range []struct{ line, cert, want string }{
		{"doctor --live", "", "exit 0"},
		{"doctor --live", theirs, "exit 0"},
		{"doctor --live", ours, "exit 0"},
		{"doctor --ready", "", "exit 1"},
		{"doctor --ready", theirs, "exit 1"},
		{"doctor --ready", ours, "exit 0"},
		{"doctor --ready", dir + "/none", "SLUICE_CLIENT_CERT: "},
	} {
		with := env
		if c.cert != "" {
			with = append(with[:len(with):len(with)], "SLUICE_CLIENT_CERT="+c.cert)
		}
		if text := run(c.line, with, nil); !strings.Contains(text, c.want) {
			t.Errorf("with %q: %s, want %s", c.cert, text, c.want)
		}
	}
}

func TestWhereTheServerOfThisMachineIs(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*config.Config)
	}{
		{"http://127.0.0.1:8081", func(*config.Config) {}},
		{"https://127.0.0.1:8081", func(c *config.Config) { c.Admin.TLS.Cert = "x" }},
		{"http://127.0.0.1:8082", func(c *config.Config) { c.Gateway.AppsDir = "apps" }},
		{"https://127.0.0.1:8082", func(c *config.Config) { c.Gateway.AdminURL, c.Telemetry.TLS.Cert = "https://a", "x" }},
		{"http://127.0.0.1:8080", func(c *config.Config) { c.Gateway.AppsDir, c.Telemetry.Listen = "apps", "" }},
		{"https://127.0.0.1:8443", func(c *config.Config) {
			c.Gateway.AppsDir, c.Telemetry.Listen, c.Gateway.Listen, c.Gateway.TLS.Listen = "apps", "", "", ":8443"
		}},
	} {
		cfg := config.Default()
		c.change(cfg)
		if got := probedURL(cfg); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestAGatewayWithoutListenersTakesNoCalls(t *testing.T) {
	cfg := config.Default()
	cfg.Gateway.Listen = ""
	if got := trafficURL(cfg); got != "" {
		t.Errorf("%s", got)
	}
}
