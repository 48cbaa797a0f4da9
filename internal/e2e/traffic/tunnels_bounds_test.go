package traffic

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/fasthttp/websocket"
	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// tries opens a tunnel, or returns the answer that it gets instead.
func (g *traffic) tries(path, key string) (*websocket.Conn, rig.Answer) {
	g.T.Helper()
	dialer := websocket.Dialer{HandshakeTimeout: rig.Patience}
	c, resp, err := dialer.Dial("ws://"+g.addr+path, http.Header{"Authorization": {key}})
	switch {
	case err == nil:
		g.T.Cleanup(func() { c.Close() })
		return c, rig.Answer{}
	case errors.Is(err, websocket.ErrBadHandshake):
		body := make([]byte, 1024) // all that the dialer keeps of it
		n, _ := resp.Body.Read(body)
		return nil, rig.Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(body[:n])}
	}
	g.T.Fatalf("%s: %v", path, err)
	return nil, rig.Answer{}
}

func TestTunnelsOfAKeyAndOfAnAPIAreBounded(t *testing.T) {
	t.Parallel()
	with := settings{"gateway.websockets": "true", "gateway.max_tunnels_per_key": "2", "gateway.max_tunnels_per_api": "3"}
	g := newTraffic(t, with, nil, rig.APIDef("keyed", newEcho(t), false), rig.APIDef("open", newEcho(t), true))
	session := object{"access_rights": rig.AccessTo("keyed"), "quota_max": 100, "quota_renewal_rate": 3600}
	ann, bob := g.newKey(session), g.newKey(session)
	first, second := g.speak("/keyed/x", "Authorization", ann), g.speak("/keyed/x", "Authorization", ann)
	refused := func(key string, status int) rig.Answer {
		t.Helper()
		c, got := g.tries("/keyed/x", key)
		if c != nil {
			t.Fatal("there was room for one more")
		}
		if got.Status != status || got.Reason() != "tunnel_limit" || (got.Header.Get("Retry-After") != "") != (status == 503) {
			t.Errorf("%s", got)
		}
		return got
	}
	left := g.quotaLeft(ann)
	got := refused(ann, 429)
	if now := g.quotaLeft(ann); now != left {
		t.Errorf("a refusal took %d of the quota", left-now)
	}
	if g.speak("/keyed/x", "Authorization", bob); refused(bob, 503).Status != 503 {
		t.Error("the API takes more")
	}
	// What leaves no HTTP, and other APIs, are not concerned.
	if got := rig.Call(t, http.MethodGet, g.Traffic+"/keyed/x", nil, "Authorization", ann); got.Reason() == "tunnel_limit" {
		t.Errorf("a plain request: %s", got)
	}
	g.speak("/open/x")

	headers := object{"Authorization": ann, "Connection": "Upgrade", "Upgrade": "websocket"}
	e := g.explained(object{"url": g.Traffic + "/keyed/x", "headers": headers})
	if e.Outcome.Allowed || e.Outcome.Stage != "tunnels" || e.Outcome.Reason != "tunnel_limit" {
		t.Errorf("explained as %+v", e.Outcome)
	}
	if e := g.explained(object{"id": got.Header.Get("X-Request-Id")}); e.Refusal == nil || e.Refusal.Stage != "tunnels" || e.Refusal.Reason != "tunnel_limit" {
		t.Errorf("by its id: %+v", e.Refusal)
	}

	// However a tunnel ends, there is room for another.
	if tcp, ok := first.NetConn().(*net.TCPConn); !ok || tcp.SetLinger(0) != nil || tcp.Close() != nil { // a reset
		t.Fatal("the connection cannot be reset")
	}
	g.showsTunnels("keyed", 2)
	first = g.speak("/keyed/x", "Authorization", ann)
	refused(ann, 429)
	_ = first.Close()
	_ = second.Close()
	g.showsTunnels("keyed", 1)
	g.speak("/keyed/x", "Authorization", ann)
	if got := g.ask(http.MethodDelete, "/svc/keys/"+bob, nil); got.Status != 200 {
		t.Fatal(got)
	}
	g.showsTunnels("keyed", 1)
	g.speak("/keyed/x", "Authorization", ann)
	refused(ann, 429)
}

func TestTunnelsThatBeginTogetherAreNotMoreThanTheyMayBe(t *testing.T) {
	t.Parallel()
	g := newTraffic(t, settings{"gateway.websockets": "true", "gateway.max_tunnels_per_key": "3"}, nil, rig.APIDef("keyed", newEcho(t), false))
	for round := range 5 {
		key := g.newKey(object{"access_rights": rig.AccessTo("keyed")})
		var mu sync.Mutex
		var open []*websocket.Conn
		var others []string
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() {
				c, got := g.tries("/keyed/x", key)
				mu.Lock()
				defer mu.Unlock()
				if c != nil {
					open = append(open, c)
				} else {
					others = append(others, fmt.Sprint(got.Status, " ", got.Reason()))
				}
			})
		}
		all.Wait()
		if len(open) != 3 || strings.Count(strings.Join(others, ","), "429 tunnel_limit") != 9 {
			t.Errorf("round %d: %d open, others %q", round, len(open), others)
		}
		for _, c := range open {
			g.hear(c, "hello")
			_ = c.Close()
		}
		g.showsTunnels("keyed", 0)
	}
}
