package app

import (
	"bufio"
	"context"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/gateway/observe"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/wait"
	counted "github.com/sluicegate/sluice/internal/usage"
	"github.com/valyala/fasthttp"

	"github.com/fasthttp/websocket"
)

var update = flag.Bool("update", false, "write the scrapes that are expected")

// volatile are the label values that differ from run to run.
var volatile = regexp.MustCompile(`(version|goversion|revision|fingerprint|target)="[^"]*"`)

// shape reduces scrapes to what dashboards depend on: the help and the type of
// each metric of ours, and its series without their values.
func shape(scrapes ...string) string {
	var lines []string
	for line := range strings.Lines(strings.Join(scrapes, "")) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.Contains(line, "sluice_"):
			continue
		case !strings.HasPrefix(line, "#"):
			line = volatile.ReplaceAllString(line[:strings.LastIndexByte(line, ' ')], `$1="*"`)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n") + "\n"
}

// golden compares text with a file below testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	had, has := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for _, line := range had {
		if !slices.Contains(has, line) {
			t.Errorf("%s: missing: %s", name, line)
		}
	}
	for _, line := range has {
		if !slices.Contains(had, line) {
			t.Errorf("%s: unexpected: %s", name, line)
		}
	}
}

// scrapeOf returns what a telemetry handler answers to a scrape.
func scrapeOf(t *testing.T, handler fasthttp.RequestHandler) string {
	t.Helper()
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.SetRequestURI("/metrics")
	handler(ctx)
	if ctx.Response.StatusCode() != http.StatusOK {
		t.Fatalf("the scrape was answered with %d: %s", ctx.Response.StatusCode(), ctx.Response.Body())
	}
	return string(ctx.Response.Body())
}

func testConfig(t *testing.T) *config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	cfg.Gateway.Listen, cfg.Gateway.ControlListen, cfg.Telemetry.Listen = "127.0.0.1:0", "", ""
	cfg.Gateway.DrainTimeout = time.Second
	cfg.Log.Access, cfg.Log.AccessFile = "file", filepath.Join(cfg.DataDir, "access.log")
	cfg.Telemetry.Metrics = true
	return cfg
}

// startNode serves a gateway until the test ends.
func startNode(t *testing.T, cfg *config.Config, adminURL string) *node {
	t.Helper()
	base, err := newCommon(cfg, Options{Stdout: io.Discard, Stderr: io.Discard}, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	st, err := openStores(t.Context(), base, keysInFile)
	if err != nil {
		t.Fatal(err)
	}
	n, err := newNode(nodeParts{common: base, stores: st, adminURL: adminURL, token: secret.New("token")})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	skip := make(chan struct{})
	close(skip)
	go func() { done <- n.run(ctx, skip, st.close) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the gateway ended with %v", err)
		}
	})
	return n
}

// switching is an upstream that accepts every upgrade and keeps the connection.
func switching(t *testing.T) string {
	return testenv.RawOrigin(t, func(conn net.Conn, _ int) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
	})
}

// meterEverything has the observer meter a request for each kind of series of an
// API.
func meterEverything(t *testing.T, o *observe.Observer) {
	t.Helper()
	s, err := schema.Load(`type Query { me: String }`)
	if err != nil {
		t.Fatal(err)
	}
	m := o.NewMeter("metered")
	exchange := func(status int) *pipeline.Exchange {
		ex := pipeline.For(&wire.Call{Method: []byte("GET"), Path: []byte("/"), Started: time.Now()})
		ex.Answer.Status = status
		return ex
	}
	good := exchange(200)
	good.InGrace, good.Upstream.Address = true, "127.0.0.1:80"
	good.ReportOnly.Add(pipeline.ReasonRateLimit, "trial")
	m.Done(good)
	failed := exchange(504)
	failed.Reject(pipeline.NewRejection(pipeline.ReasonUpstreamTimeout, 504, "no"))
	m.Done(failed)
	graph := exchange(200)
	graph.API = &pipeline.API{Definition: &definition.API{ID: "metered"}, Schema: s}
	graph.Operations = []*validate.Facts{{Kind: syntax.Query, Name: "Me", Depth: 1}}
	m.Done(graph)
}

// openAndClose opens a GraphQL connection, on which nothing is said, and closes it.
func openAndClose(t *testing.T, n *node) {
	t.Helper()
	wait.Until(t, "the GraphQL API is served", func() bool { return n.live.API("graph") != nil })
	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}}
	client, _, err := dialer.Dial("ws://"+n.traffic.Addr().String()+"/graph/", nil) //nolint:bodyclose // the connection has it
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := client.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Fatal(err)
	}
	wait.Until(t, "the connection has ended", func() bool {
		return strings.Contains(scrapeOf(t, n.telemetry()), "sluice_ws_closed_total{")
	})
}

func TestTheScrapeOfAGatewayIsAsDashboardsExpectIt(t *testing.T) {
	pair := testenv.NewAuthority(t, "authority").Server("gateway.example")
	cfg := testConfig(t)
	cert, key := filepath.Join(cfg.DataDir, "cert.pem"), filepath.Join(cfg.DataDir, "key.pem")
	cfg.Gateway.TLS.Listen, cfg.Gateway.TLS.Cert, cfg.Gateway.TLS.Key = "127.0.0.1:0", cert, key
	cfg.Gateway.ACME.Domains, cfg.Gateway.ACME.Directory = []string{"api.example.com"}, "https://127.0.0.1:1/directory"
	cfg.Gateway.Websockets, cfg.Telemetry.OTLP.Endpoint = true, "http://127.0.0.1:1"
	cfg.Gateway.AppsDir = filepath.Join(cfg.DataDir, "apps")
	upstream, second := "http://"+switching(t), "http://"+switching(t)
	for path, text := range map[string]string{
		cert: pair.CertPEM, key: pair.KeyPEM,
		filepath.Join(cfg.Gateway.AppsDir, "sample.json"): `{"api_id": "sample", "name": "Sample", "use_keyless": true, "proxy": {
			"listen_path": "/sample/", "target_url": "` + upstream + `", "enable_load_balancing": true, "target_list": ["` + upstream + `", "` + second + `"],
			"ejection": {"failures": 1}, "circuit_breaker": {"threshold_percent": 1, "samples": 4}}}`,
		filepath.Join(cfg.Gateway.AppsDir, "graph.json"): `{"api_id": "graph", "name": "Graph", "use_keyless": true, "proxy": {"listen_path": "/graph/", "target_url": "` + upstream + `"},
			"graphql": {"enabled": true, "execution_mode": "proxyOnly", "schema": "type Query { a: Int }"}}`,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := startNode(t, cfg, "")
	wait.Until(t, "the API is served", func() bool { return n.live.API("sample") != nil })
	client, err := net.Dial("tcp", n.traffic.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := io.WriteString(client, "GET /sample/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the upgrade was answered with %v, %v", answer, err)
	}
	wait.Until(t, "the tunnel is known", func() bool { return n.plane.tunnels.Stats().Open["sample"] == 1 })
	meterEverything(t, n.plane.observer)
	openAndClose(t, n)

	withAdmin := testConfig(t)
	m := startNode(t, withAdmin, "http://127.0.0.1:1")
	golden(t, "scrape-gateway.txt", shape(scrapeOf(t, n.telemetry()), scrapeOf(t, m.telemetry())))
}

func TestTheScrapeOfAnAdminIsAsDashboardsExpectIt(t *testing.T) {
	url := testenv.Database(t, func(ctx context.Context, url string) error {
		_, err := store.Migrate(ctx, url)
		return err
	}, "admin")
	cfg := testConfig(t)
	base, err := newCommon(cfg, Options{Stdout: io.Discard, Stderr: io.Discard}, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	base.log = slog.New(slog.DiscardHandler)
	st, err := openStores(t.Context(), base, keysFromAdmin)
	if err != nil {
		t.Fatal(err)
	}
	watch := watchAdmin(base, st)
	scrape := watch.Handler(observe.HandlerOptions{Metrics: true})
	m, err := newManagement(t.Context(), managementParts{
		cfg: cfg, database: secret.New(url), stores: st, token: secret.New("token"), log: base.log, events: base.events, metrics: watch.Registry(), scrape: scrape,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.stop(time.Second); err != nil {
			t.Error(err)
		}
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = m.server.Serve(ln) }() // ends with m
	resp, err := http.Get("http://" + ln.Addr().String() + "/api/apis")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	now := time.Now().Unix() / 60 * 60
	batch := &counted.Batch{Gateway: "gw", Boot: "b", Sequence: 1, Rows: []counted.Row{{Minute: now, Org: "one", API: "a", Status: 200, Hits: 1}}}
	if _, err := m.server.ReceiveUsage(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	golden(t, "scrape-admin.txt", shape(scrapeOf(t, scrape)))
}
