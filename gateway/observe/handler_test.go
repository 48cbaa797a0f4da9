package observe

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

func get(t *testing.T, o *Observer, opts HandlerOptions, method, path, auth string) (int, string) {
	t.Helper()
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.Header.SetMethod(method)
	ctx.Request.SetRequestURI(path)
	if auth != "" {
		ctx.Request.Header.Set("Authorization", auth)
	}
	o.Handler(opts)(ctx)
	return ctx.Response.StatusCode(), string(ctx.Response.Body())
}

func TestTelemetryPaths(t *testing.T) {
	notReady := func() (bool, string) { return false, `no "configuration" yet` }
	degraded := func() (bool, string) { return true, "2 definitions" }
	for _, c := range []struct {
		name, method, path, auth string
		opts                     HandlerOptions
		status                   int
		says                     string
	}{
		{"live", "GET", "/live", "", HandlerOptions{Ready: notReady}, 200, "live"},
		{"livez", "HEAD", "/livez", "", HandlerOptions{Ready: notReady}, 200, "live"},
		{"ready", "GET", "/ready", "", HandlerOptions{}, 200, "ready"},
		{"ready but degraded", "GET", "/readyz", "", HandlerOptions{Ready: degraded}, 200, "ready, degraded: 2 definitions"},
		{"healthy", "GET", "/health", "", HandlerOptions{}, 200, "ready"},
		{"not ready", "GET", "/healthz", "", HandlerOptions{Ready: notReady}, 503, `not ready: no "configuration" yet`},
		{"wrong method", "POST", "/ready", "", HandlerOptions{}, 405, "use GET"},
		{"unknown path", "GET", "/", "", HandlerOptions{}, 404, "here are /metrics, /live and /ready"},
		{"metrics off", "GET", "/metrics", "", HandlerOptions{}, 404, "metrics are off: see telemetry.metrics"},
		{"metrics without the token", "GET", "/metrics", "", HandlerOptions{Metrics: true, Token: "t0k"}, 401, "show telemetry.token as a bearer token"},
		{"metrics with another token", "GET", "/metrics", "Bearer t0k2", HandlerOptions{Metrics: true, Token: "t0k"}, 401, "show telemetry.token as a bearer token"},
		{"metrics with the token alone", "GET", "/metrics", "t0k", HandlerOptions{Metrics: true, Token: "t0k"}, 401, "show telemetry.token as a bearer token"},
	} {
		status, body := get(t, New(Options{Log: quiet()}), c.opts, c.method, c.path, c.auth)
		var got struct{ Status string }
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Errorf("%s: %v in %q", c.name, err, body)
		}
		if status != c.status || got.Status != c.says {
			t.Errorf("%s: %d %q, want %d %q", c.name, status, got.Status, c.status, c.says)
		}
	}
}

func TestMetricsNeedTheToken(t *testing.T) {
	o := New(Options{Version: "9", Log: quiet()})
	status, body := get(t, o, HandlerOptions{Metrics: true, Token: "t0k"}, "GET", "/metrics", "bearer t0k")
	if status != 200 || !strings.Contains(body, "sluice_build_info") || !strings.Contains(body, "go_goroutines") || !strings.Contains(body, "process_cpu_seconds_total") {
		t.Errorf("%d\n%s", status, body)
	}
}
