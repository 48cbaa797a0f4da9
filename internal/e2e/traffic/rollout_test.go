package traffic

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// balancer spreads calls over gateways, and asks each of them once a second whether it
// is ready. It repeats no call.
type balancer struct {
	members []*member
	next    atomic.Uint64
	failed  atomic.Int64 // calls without an answer of a gateway
}

type member struct {
	gateway *rig.Server
	proxy   *httputil.ReverseProxy
	ready   atomic.Bool
}

func newBalancer(t *testing.T, gateways ...*rig.Server) (b *balancer, address string) {
	t.Helper()
	b = new(balancer)
	for _, g := range gateways {
		to, err := url.Parse(g.Traffic)
		if err != nil {
			t.Fatal(err)
		}
		m := &member{gateway: g, proxy: httputil.NewSingleHostReverseProxy(to)}
		transport := &http.Transport{MaxIdleConnsPerHost: 16}
		t.Cleanup(transport.CloseIdleConnections)
		m.proxy.Transport = transport
		m.proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) {
			b.failed.Add(1)
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
		m.look()
		b.members = append(b.members, m)
	}
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	go b.watch(done)
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	return b, server.URL
}

func (b *balancer) watch(done <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			for _, m := range b.members {
				m.look()
			}
		}
	}
}

func (m *member) look() {
	got, err := rig.Send("GET", m.gateway.Traffic+"/ready", nil)
	m.ready.Store(err == nil && got.Status == http.StatusOK)
}

// ServeHTTP implements http.Handler.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for range b.members {
		if m := b.members[b.next.Add(1)%uint64(len(b.members))]; m.ready.Load() {
			m.proxy.ServeHTTP(w, r)
			return
		}
	}
	b.failed.Add(1)
	http.Error(w, "no gateway is ready", http.StatusServiceUnavailable)
}

// Gateways behind a balancer are replaced one after the other, and no call fails.
func TestARollOutFailsNoCall(t *testing.T) {
	t.Parallel()
	target := "http://" + testenv.Origin(t, rig.Echo)
	gateways := make([]*rig.Server, 3)
	for i := range gateways {
		gateways[i] = newTraffic(t, settings{"gateway.drain_delay": "3s"}, nil, rig.APIDef("orders", target, true)).Server
	}
	b, address := newBalancer(t, gateways...)
	load := rig.StartLoad(t, 4, func(client *http.Client, _ int) error {
		got, err := rig.SendBy(client, "POST", address+"/orders/x", "body")
		return rig.Want(200, got, err)
	})
	for i, g := range gateways {
		load.AwaitMore(50)
		g.Signal(syscall.SIGTERM)
		g.AwaitLog("not ready any more")
		if got := rig.Call(t, "GET", g.Traffic+"/ready", nil); got.Status != 503 {
			t.Errorf("gateway %d is to stop, and says on a new connection: %s", i+1, got)
		}
		if code := g.Wait(); code != 0 {
			t.Errorf("gateway %d ended with code %d", i+1, code)
		}
		g.StartReady()
		rig.Eventually(t, "the balancer to use the gateway again", func() error {
			if !b.members[i].ready.Load() {
				return errors.New("it does not yet")
			}
			return nil
		})
	}
	load.AwaitMore(50)
	calls := load.Stop()
	t.Logf("%d calls while three gateways were replaced, %d failed", calls, b.failed.Load())
	if n := b.failed.Load(); n != 0 {
		t.Errorf("%d of %d calls failed", n, calls)
	}
}

// Each connection ends with its next answer once a stop has begun, and a second signal
// ends the delay.
func TestConnectionsMoveOnBeforeAStop(t *testing.T) {
	t.Parallel()
	target := "http://" + testenv.Origin(t, rig.Echo)
	g := newTraffic(t, settings{"gateway.drain_delay": (2 * rig.Patience).String()}, nil, rig.APIDef("a", target, true))
	client := &http.Client{Transport: new(http.Transport)}
	call := func() bool {
		t.Helper()
		resp, err := client.Get(g.Traffic + "/a/x")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
			t.Errorf("%d, %v", resp.StatusCode, err)
		}
		return resp.Close
	}
	if call() {
		t.Error("a connection ends with an answer before the stop")
	}
	g.Signal(syscall.SIGTERM)
	g.AwaitLog("not ready any more")
	for range 2 { // the second on a new connection
		if !call() {
			t.Error("a connection goes on after an answer during the stop")
		}
	}
	g.Signal(syscall.SIGTERM)
	if code := g.Wait(); code != 0 {
		t.Errorf("ended with code %d", code)
	}
}

// Health needs no secret on any port, and an API keeps its own /health.
func TestHealthPathsOfAGateway(t *testing.T) {
	t.Parallel()
	target := "http://" + testenv.Origin(t, rig.Echo)
	def := rig.APIDef("a", target, true)
	for _, secret := range []string{"", "a-secret-of-the-gateway-api"} {
		g := newTraffic(t, settings{"secret": secret}, nil, def)
		for _, path := range []string{"/live", "/ready", "/health"} {
			for _, at := range []string{g.Traffic, g.Telemetry} {
				if got := rig.Call(t, "GET", at+path, nil); got.Status != 200 || got.Header.Get("Content-Type") != "application/json" {
					t.Errorf("secret %q: GET %s%s: %s", secret, at, path, got)
				}
			}
		}
		if got := rig.Call(t, "GET", g.Traffic+"/svc/apis", nil); got.Status == 200 {
			t.Errorf("secret %q: the gateway API is open: %s", secret, got)
		}
	}
	root := rig.APIDef("all", target, true)
	root["proxy"].(object)["listen_path"] = "/"
	g := newTraffic(t, nil, nil, root)
	for path, want := range map[string]string{"/health": "origin /health", "/x": "origin /x"} {
		if got := rig.Call(t, "GET", g.Traffic+path, nil); got.Body != want {
			t.Errorf("GET %s: %s", path, got)
		}
	}
	if got := rig.Call(t, "GET", g.Traffic+"/ready", nil); got.Status != 200 || got.Body == "origin /ready" {
		t.Errorf("GET /ready: %s", got)
	}
}
