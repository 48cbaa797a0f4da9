package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/config"
)

func TestTheServerOfThisMachineSaysThatItLives(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/live" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	env := []string{"SLUICE_ADMIN_LISTEN=" + server.Listener.Addr().String()}
	if text := run("doctor --live", env, nil); !strings.Contains(text, "exit 0") || !strings.Contains(text, server.URL+"/live answers") {
		t.Error(text)
	}
	status = http.StatusServiceUnavailable
	if text := run("doctor --live", env, nil); !strings.Contains(text, "exit 1") || !strings.Contains(text, "it answers 503 Service Unavailable") {
		t.Error(text)
	}
	server.Close()
	if text := run("doctor --live", env, nil); !strings.Contains(text, "exit 1") || !strings.Contains(text, "connection refused") {
		t.Error(text)
	}
}

func TestWhereTheServerOfThisMachineIs(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*config.Config)
	}{
		{"http://127.0.0.1:8081/live", func(*config.Config) {}},
		{"https://127.0.0.1:8081/live", func(c *config.Config) { c.Admin.TLS.Cert = "x" }},
		{"http://127.0.0.1:8082/live", func(c *config.Config) { c.Gateway.AppsDir = "apps" }},
		{"https://127.0.0.1:8082/live", func(c *config.Config) { c.Gateway.AdminURL, c.Telemetry.TLS.Cert = "https://a", "x" }},
		{"http://127.0.0.1:8080/live", func(c *config.Config) { c.Gateway.AppsDir, c.Telemetry.Listen = "apps", "" }},
		{"https://127.0.0.1:8443/live", func(c *config.Config) {
			c.Gateway.AppsDir, c.Telemetry.Listen, c.Gateway.Listen, c.Gateway.TLS.Listen = "apps", "", "", ":8443"
		}},
	} {
		cfg := config.Default()
		c.change(cfg)
		if got := liveURL(cfg); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
