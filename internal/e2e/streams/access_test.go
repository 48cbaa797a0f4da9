package streams

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// direct is an API whose clients get what others post, without a broker between them.
func direct(id string, keyless bool) object {
	return streamAPI(id, keyless, object{
		"direct": flow(posted("/in"), served("/out")),
		"talk":   flow(object{"websocket_server": object{"path": "/talk"}}, object{"websocket_server": object{"path": "/talk"}}),
	})
}

// handshake asks for a WebSocket connection, and returns the answer.
func handshake(t testing.TB, g *gateway, path, key string) (*websocket.Conn, int) {
	t.Helper()
	header := http.Header{}
	if key != "" {
		header.Set("Authorization", key)
	}
	conn, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(g.Traffic, "http")+path, header)
	if err != nil && resp == nil {
		t.Fatal(err)
	}
	if conn != nil {
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetReadDeadline(time.Now().Add(rig.Patience))
	}
	return conn, resp.StatusCode
}

// TestStreamsHaveTheRightsAndLimitsOfOtherAPIs: of requests, event streams and WebSocket,
// each counted once.
func TestStreamsHaveTheRightsAndLimitsOfOtherAPIs(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, direct("open", false), direct("other", false))
	rights := rig.AccessTo("open")
	key := g.newKey(object{"access_rights": rights})
	foreign := g.newKey(object{"access_rights": rig.AccessTo("other")})
	spent := g.newKey(object{"access_rights": rights, "quota_max": 2, "quota_renewal_rate": 3600})
	slow := g.newKey(object{"access_rights": rights, "rate": 2, "per": 3600})
	l := g.listen("/open/out", "Authorization", key)
	for range 2 {
		g.post(200, "/open/in", "x", "Authorization", spent)
	}
	g.listen("/open/out", "Authorization", slow).cancel()
	if _, status := handshake(t, g, "/open/talk", slow); status != 101 {
		t.Fatalf("a handshake is answered with %d", status)
	}
	for _, c := range []struct {
		key    string
		status int
	}{{"", 401}, {"unknown", 403}, {foreign, 403}, {spent, 403}, {slow, 429}} {
		var headers []string
		if c.key != "" {
			headers = []string{"Authorization", c.key}
		}
		g.post(c.status, "/open/in", "x", headers...)
		if _, status, err := listenAt(t, g.Traffic+"/open/out", nil, headers...); status != c.status || err != nil {
			t.Errorf("events with %q: %d %v, want %d", c.key, status, err, c.status)
		}
		if _, status := handshake(t, g, "/open/talk", c.key); status != c.status {
			t.Errorf("a handshake with %q: %d, want %d", c.key, status, c.status)
		}
	}
	for range 2 {
		l.next()
	}
	select {
	case e := <-l.events:
		t.Errorf("a message that was refused came all the same: %+v", e)
	default:
	}
}

// TestAKeyThatIsRevokedEndsWhatItHasOpen: the client is not to wait for its next request.
func TestAKeyThatIsRevokedEndsWhatItHasOpen(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, direct("open", false))
	session := object{"access_rights": rig.AccessTo("open")}
	revoked, kept := g.newKey(session), g.newKey(session)
	ends, stays := g.listen("/open/out", "Authorization", revoked), g.listen("/open/out", "Authorization", kept)
	conn, status := handshake(t, g, "/open/talk", revoked)
	if conn == nil {
		t.Fatal(status)
	}
	if got := rig.Call(t, http.MethodDelete, g.Control+"/svc/keys/"+revoked, nil, "X-Svc-Authorization", testSecret); got.Status != 200 {
		t.Fatal(got)
	}
	began := time.Now()
	ends.awaitEnd()
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
		t.Errorf("the WebSocket connection ended with %v", err)
	}
	t.Logf("both ended %s after the revocation", time.Since(began).Round(time.Millisecond))
	g.post(200, "/open/in", "x", "Authorization", kept)
	if e := stays.next(); e.data != "x" {
		t.Errorf("event %+v", e)
	}
}

func TestRoutesOfStreams(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, direct("open", true))
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/open/in", 405, "POST"},
		{"DELETE", "/open/out", 405, "GET"},
		{"POST", "/open/nothing", 404, ""},
		{"GET", "/open/", 404, ""},
		{"GET", "/open/talk", 426, ""},
		{"HEAD", "/open/out", 200, ""},
	} {
		got := rig.Call(t, c.method, g.Traffic+c.path, nil)
		if got.Status != c.status || got.Header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %s, want %d and Allow %q", c.method, c.path, got, c.status, c.allow)
		}
	}
	got := rig.Call(t, http.MethodPost, g.Control+"/svc/explain", object{"method": "POST", "url": "/open/in"}, "X-Svc-Authorization", testSecret)
	if got.Status != 200 || !strings.Contains(got.Body, `stream \"direct\", input`) {
		t.Errorf("explained: %s", got)
	}
	got = rig.Call(t, http.MethodPost, g.Control+"/svc/explain", object{"method": "GET", "url": "/open/nothing"}, "X-Svc-Authorization", testSecret)
	if got.Status != 200 || !strings.Contains(got.Body, "call one of /in, /out, /talk") {
		t.Errorf("explained: %s", got)
	}
}

func TestClientsTakeTurns(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, direct("open", true))
	const clients, each = 5, 20
	var all []*listener
	for range clients {
		all = append(all, g.listen("/open/out"))
	}
	g.await(`sluice_stream_clients{api="open",connector="output",side="output",stream="direct"}`, clients)
	for i := range clients * each {
		g.post(200, "/open/in", fmt.Sprint(i))
	}
	for i, l := range all {
		last := -1
		for range each {
			var n int
			if _, err := fmt.Sscan(l.next().data, &n); err != nil || n <= last {
				t.Errorf("client %d got %d after %d", i, n, last)
			}
			last = n
		}
	}
}

func TestWithoutStreamingThePathsAreNotFound(t *testing.T) {
	t.Parallel()
	g := newGateway(t, settings{"streaming.enabled": "false"}, direct("open", true))
	for _, path := range []string{"/open/in", "/open/out", "/open/other"} {
		if got := rig.Call(t, http.MethodGet, g.Traffic+path, nil); got.Status != 404 {
			t.Errorf("%s: %s", path, got)
		}
	}
	g.post(404, "/open/in", "x")
	got := rig.Call(t, http.MethodPost, g.Control+"/svc/explain", object{"method": "POST", "url": "/open/in"}, "X-Svc-Authorization", testSecret)
	if !strings.Contains(got.Body, "set streaming.enabled to true") {
		t.Errorf("explained: %s", got)
	}
}

// await waits until a metric has a value.
func (g *gateway) await(line string, want float64) {
	g.T.Helper()
	rig.Eventually(g.T, fmt.Sprint(line, " ", want), func() error {
		got, err := g.metricNow(line)
		if err == nil && got != want {
			err = fmt.Errorf("it is %v", got)
		}
		return err
	})
}

// resident returns the memory of a process that is in use, in bytes.
func (g *gateway) resident() float64 { return g.metric("process_resident_memory_bytes") }

// TestClientsThatSendTooMuchAreBounded: too much at once, half a message, and messages that
// nothing takes.
func TestClientsThatSendTooMuchAreBounded(t *testing.T) {
	t.Parallel()
	g := newGateway(t, settings{"gateway.read_timeout": "1s"}, streamAPI("open", true, object{
		"post":  flow(posted("/in"), served("/out")),
		"speak": flow(object{"websocket_server": object{"path": "/speak", "ack": "json"}}, served("/heard")),
	}))
	before := g.resident()
	const large = 100 << 20
	for _, c := range []struct{ name, head string }{
		{"announced", fmt.Sprintf("Content-Length: %d", large)},
		{"in chunks", "Transfer-Encoding: chunked"},
	} {
		conn := dial(t, g)
		fmt.Fprintf(conn, "POST /open/in HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n", c.head)
		go func() { // until the gateway ends the connection
			part := bytes.Repeat([]byte("x"), 64<<10)
			for range large / len(part) {
				if c.name == "in chunks" {
					fmt.Fprintf(conn, "%x\r\n", len(part))
				}
				if _, err := conn.Write(part); err != nil {
					return
				}
				if c.name == "in chunks" {
					_, _ = io.WriteString(conn, "\r\n")
				}
			}
		}()
		if status := statusOf(conn); status != 413 {
			t.Errorf("100 MiB, %s: %d", c.name, status)
		}
	}
	half := dial(t, g)
	_, _ = io.WriteString(half, "POST /open/in HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nhalf")
	if status := statusOf(half); status != 408 {
		t.Errorf("half a message: %d", status)
	}
	// Nothing takes what the flood sends: its client has to wait.
	flood := g.socket("/open/speak", nil)
	sent := make(chan int, 1)
	go func() {
		_ = flood.SetWriteDeadline(time.Now().Add(3 * time.Second))
		text, n := bytes.Repeat([]byte("x"), 64<<10), 0
		for flood.WriteMessage(websocket.TextMessage, text) == nil {
			n += len(text)
		}
		sent <- n
	}()
	if n := <-sent; n > 64<<20 {
		t.Errorf("%d bytes were taken that nothing takes", n)
	}
	long := g.socket("/open/speak", nil)
	if err := long.WriteMessage(websocket.BinaryMessage, make([]byte, 2<<20)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := long.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseMessageTooBig) {
		t.Errorf("a message of 2 MiB: %v", err)
	}
	if more := g.resident() - before; more > 128<<20 {
		t.Errorf("the gateway has %.0f MiB more than before", more/(1<<20))
	}
}

func dial(t testing.TB, g *gateway) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.Traffic, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(rig.Patience))
	return conn
}

// statusOf returns the status of the answer on a connection, 0 for none.
func statusOf(conn net.Conn) int {
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	return resp.StatusCode
}
