package traffic

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/valyala/fasthttp"
)

// newEcho starts an upstream that speaks WebSocket: it says everything once more.
func newEcho(t testing.TB) (url string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	upgrader := websocket.FastHTTPUpgrader{CheckOrigin: func(*fasthttp.RequestCtx) bool { return true }}
	server := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		err := upgrader.Upgrade(ctx, func(c *websocket.Conn) {
			for {
				kind, text, err := c.ReadMessage()
				if err != nil || c.WriteMessage(kind, text) != nil {
					return
				}
			}
		})
		if err != nil {
			ctx.Error(err.Error(), fasthttp.StatusBadRequest)
		}
	}}
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(func() { _ = ln.Close() })
	return "http://" + ln.Addr().String()
}

// speak opens a WebSocket through the gateway and says something.
func (g *traffic) speak(path string, headers ...string) *websocket.Conn {
	g.T.Helper()
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	dialer := websocket.Dialer{HandshakeTimeout: rig.Patience}
	c, resp, err := dialer.Dial("ws://"+g.addr+path, h)
	if err != nil {
		g.T.Fatalf("%s: %v, %v", path, err, resp)
	}
	g.T.Cleanup(func() { c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(rig.Patience))
	g.hear(c, "hello")
	return c
}

// hear says something and waits for its echo.
func (g *traffic) hear(c *websocket.Conn, text string) {
	g.T.Helper()
	if err := c.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		g.T.Fatal(err)
	}
	if _, got, err := c.ReadMessage(); err != nil || string(got) != text {
		g.T.Fatalf("got %q, %v", got, err)
	}
}

// isCut waits until a tunnel ends, and returns when it did.
func isCut(t testing.TB, c *websocket.Conn) time.Time {
	t.Helper()
	if _, got, err := c.ReadMessage(); err == nil {
		t.Fatalf("got %q", got)
	} else if fault, ok := err.(net.Error); ok && fault.Timeout() {
		t.Fatal("it was not cut")
	}
	return time.Now()
}

func (g *traffic) cutsSoon(c *websocket.Conn, what string, since time.Time) {
	g.T.Helper()
	g.T.Logf("%s: cut after %v", what, isCut(g.T, c).Sub(since).Round(time.Millisecond))
}

// showsTunnels waits until the metrics say how many tunnels an API has.
func (g *traffic) showsTunnels(api string, n int) {
	g.T.Helper()
	want := fmt.Sprintf("sluice_tunnels{api=%q} %d\n", api, n)
	rig.Eventually(g.T, want, func() error {
		text := rig.Call(g.T, "GET", g.Telemetry+"/metrics", nil).Body
		if n == 0 && !strings.Contains(text, fmt.Sprintf("sluice_tunnels{api=%q}", api)) {
			return nil
		}
		return rig.Lacks(text, want)
	})
}

func TestTunnelsEndWithWhatAllowedThem(t *testing.T) {
	onEveryStore(t, func(t *testing.T, with settings) {
		url := newEcho(t)
		g := newTraffic(t, rig.Merge(settings{"gateway.websockets": "true"}, with), object{
			"gold": object{"id": "gold", "name": "gold", "org_id": "", "state": "active", "active": true, "access_rights": rig.AccessTo("keyed"), "rate": 100, "per": 1},
		}, rig.APIDef("keyed", url, false), rig.APIDef("open", url, true), rig.APIDef("other", url, true))
		session := object{"access_rights": rig.AccessTo("keyed"), "rate": 100, "per": 1}
		stays := g.newKey(session)
		staying, open := g.speak("/keyed/x", "Authorization", stays), g.speak("/open/x")

		revoked := g.newKey(session)
		first, second := g.speak("/keyed/x", "Authorization", revoked), g.speak("/keyed/y", "Authorization", revoked)
		g.showsTunnels("keyed", 3)
		since := time.Now()
		if got := g.ask(http.MethodDelete, "/svc/keys/"+revoked, nil); got.Status != 200 {
			t.Fatal(got)
		}
		g.cutsSoon(first, "revoked", since)
		g.cutsSoon(second, "revoked", since)
		g.showsTunnels("keyed", 1)

		off := g.newKey(session)
		c := g.speak("/keyed/x", "Authorization", off)
		since = time.Now()
		if got := g.ask(http.MethodPut, "/svc/keys/"+off, object{"access_rights": rig.AccessTo("keyed"), "is_inactive": true}); got.Status != 200 {
			t.Fatal(got)
		}
		g.cutsSoon(c, "made inactive", since)

		moved := g.newKey(session)
		c = g.speak("/keyed/x", "Authorization", moved)
		since = time.Now()
		if got := g.ask(http.MethodPut, "/svc/keys/"+moved, object{"access_rights": rig.AccessTo("other")}); got.Status != 200 {
			t.Fatal(got)
		}
		g.cutsSoon(c, "without access", since)

		ends := time.Now().Add(2 * time.Second).Unix()
		c = g.speak("/keyed/x", "Authorization", g.newKey(object{"access_rights": rig.AccessTo("keyed"), "expires": ends}))
		g.cutsSoon(c, "expired", time.Unix(ends, 0))

		// Nothing of it concerns the others.
		g.hear(staying, "still here")
		g.hear(open, "still here")
	})
}

func TestTunnelsEndWithKeysThatAnotherGatewayDeletes(t *testing.T) {
	t.Parallel()
	with := settings{"gateway.websockets": "true", "valkey.url": "redis://" + testenv.Valkey(t).Addr, "valkey.timeout": "5s"}
	api := rig.APIDef("keyed", newEcho(t), false)
	one, two := newTraffic(t, with, nil, api), newTraffic(t, with, nil, api)
	key := one.newKey(object{"access_rights": rig.AccessTo("keyed"), "rate": 100, "per": 1})
	here, there := one.speak("/keyed/x", "Authorization", key), two.speak("/keyed/x", "Authorization", key)
	since := time.Now()
	if got := one.ask(http.MethodDelete, "/svc/keys/"+key, nil); got.Status != 200 {
		t.Fatal(got)
	}
	one.cutsSoon(here, "where it was deleted", since)
	two.cutsSoon(there, "at the other gateway", since)
}

func TestTunnelsEndWithReloads(t *testing.T) {
	t.Parallel()
	url := newEcho(t)
	policy := object{"id": "gold", "name": "gold", "active": true, "access_rights": rig.AccessTo("keyed"), "rate": 100, "per": 1}
	g := newTraffic(t, settings{"gateway.websockets": "true"}, object{"gold": policy}, rig.APIDef("keyed", url, false), rig.APIDef("open", url, true), rig.APIDef("leaves", url, true))
	byPolicy := g.speak("/keyed/x", "Authorization", g.newKey(object{"apply_policies": []string{"gold"}}))
	open, leaves := g.speak("/open/x"), g.speak("/leaves/x")
	policy["access_rights"] = rig.AccessTo("open")
	writeJSON(t, g.Settings["gateway.policies_file"], object{"gold": policy})
	if err := os.Remove(filepath.Join(g.Settings["gateway.apps_dir"], "leaves.json")); err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	if got := g.ask(http.MethodGet, "/svc/reload?block=true", nil); got.Status != 200 {
		t.Fatal(got)
	}
	g.cutsSoon(byPolicy, "a policy without the right", since)
	g.cutsSoon(leaves, "an API that left", since)
	g.hear(open, "still here")
	rig.Eventually(t, "the number of tunnels that were cut", func() error {
		return rig.Lacks(rig.Call(t, "GET", g.Telemetry+"/metrics", nil).Body, "sluice_tunnels_cut_total 2\n")
	})
}

func TestTunnelsOutliveWhatIsNoEndOfTheirRights(t *testing.T) {
	t.Parallel()
	url := newEcho(t)
	g := newTraffic(t, settings{"gateway.websockets": "true", "gateway.tunnel_recheck": "50ms"}, nil, rig.APIDef("keyed", url, false))
	key := g.newKey(object{"access_rights": rig.AccessTo("keyed"), "rate": 1, "per": 60, "quota_max": 1, "quota_renewal_rate": 3600})
	c := g.speak("/keyed/x", "Authorization", key) // which is all that the limits allow
	for i := range 5 {
		other := g.newKey(object{"access_rights": rig.AccessTo("keyed"), "rate": 100, "per": 1})
		if got := g.ask(http.MethodDelete, "/svc/keys/"+other, nil); got.Status != 200 {
			t.Fatal(got)
		}
		if got := g.ask(http.MethodGet, "/svc/reload?block=true", nil); got.Status != 200 {
			t.Fatal(got)
		}
		g.hear(c, fmt.Sprint("still here ", i))
	}
	g.want("429", 1, "GET", "/keyed/x", "Authorization", key)
}

func TestTunnelsGoOnWhereNobodyLooks(t *testing.T) {
	t.Parallel()
	g := newTraffic(t, settings{"gateway.websockets": "true", "gateway.tunnel_recheck": "0s"}, nil, rig.APIDef("keyed", newEcho(t), false))
	key := g.newKey(object{"access_rights": rig.AccessTo("keyed"), "rate": 100, "per": 1})
	c := g.speak("/keyed/x", "Authorization", key)
	if got := g.ask(http.MethodDelete, "/svc/keys/"+key, nil); got.Status != 200 {
		t.Fatal(got)
	}
	g.want("403", 1, "GET", "/keyed/x", "Authorization", key)
	g.hear(c, "still here")
	g.showsTunnels("keyed", 1)
}

func TestTunnelsEndOnTheOtherSideToo(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	address := testenv.RawOrigin(t, func(c net.Conn, _ int) {
		var none seen
		br := bufio.NewReader(c)
		if _, err := none.readRequest(br); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		_, err := io.Copy(io.Discard, br) // says nothing, and does not mind an end of the other side's
		ended <- err
	})
	g := newTraffic(t, settings{"gateway.websockets": "true"}, nil, rig.APIDef("keyed", "http://"+address, false))
	key := g.newKey(object{"access_rights": rig.AccessTo("keyed"), "rate": 100, "per": 1})
	if _, resp := upgrade(t, connect(t, g.addr), "/keyed/x", "Authorization: "+key+"\r\n"); resp.StatusCode != 101 {
		t.Fatal(resp)
	}
	if got := g.ask(http.MethodDelete, "/svc/keys/"+key, nil); got.Status != 200 {
		t.Fatal(got)
	}
	select {
	case <-ended:
	case <-time.After(rig.Patience):
		t.Error("the upstream is still held")
	}
}

func TestTunnelsOutliveAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	store := testenv.Valkey(t)
	g := newTraffic(t, settings{
		"gateway.websockets": "true", "gateway.tunnel_recheck": "50ms", "valkey.url": "redis://" + store.Addr, "valkey.timeout": "1s",
		"keys.cache_ttl": "100ms", "keys.stale_ttl": "0s", "keys.on_store_error": "refuse",
	}, nil, rig.APIDef("keyed", newEcho(t), false))
	key := g.newKey(object{"access_rights": rig.AccessTo("keyed"), "rate": 100, "per": 1})
	c := g.speak("/keyed/x", "Authorization", key)
	store.Stop()
	rig.Eventually(t, "the store to be missed", func() error {
		if got := rig.Call(t, "GET", g.Traffic+"/keyed/x", nil, "Authorization", key); got.Status != 503 {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
	for range 3 { // reloads have it looked at again
		if got := g.ask(http.MethodGet, "/svc/reload?block=true", nil); got.Status != 200 {
			t.Fatal(got)
		}
		g.hear(c, "still here")
	}
	store.Cont()
	since := time.Now()
	rig.Eventually(t, "the store to be back", func() error {
		since = time.Now()
		if got := g.ask(http.MethodDelete, "/svc/keys/"+key, nil); got.Status != 200 {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
	g.cutsSoon(c, "revoked once the store was back", since)
}
