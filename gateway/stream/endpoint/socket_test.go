package endpoint

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

func wantMessage(t *testing.T, conn *websocket.Conn, kind int, want string) {
	t.Helper()
	if got, text, err := conn.ReadMessage(); got != kind || string(text) != want || err != nil {
		t.Errorf("message %d %.200q, %v; want %d %.200q", got, text, err, kind, want)
	}
}

// wantClose reads until the connection is closed.
func wantClose(t *testing.T, conn *websocket.Conn, code int) {
	t.Helper()
	for {
		_, _, err := conn.ReadMessage()
		if err == nil {
			continue
		}
		if !websocket.IsCloseError(err, code) {
			t.Errorf("closed by %v, want %d", err, code)
		}
		return
	}
}

func TestSocketsGetMessages(t *testing.T) {
	o := output(t)
	r := newRig(t, o)
	conn := r.socketTo("/get/ws", nil)
	ready(t, o, 1)
	var settled outcomes
	for _, body := range []string{"text", "\xff", strings.Repeat("m", 500), strings.Repeat("l", 200_000), ""} {
		o.Write(message(body), settled.settle)
		kind := websocket.TextMessage
		if body == "\xff" {
			kind = websocket.BinaryMessage
		}
		wantMessage(t, conn, kind, body)
	}
	settled.until(t, 5, 0)
	o.Close(t.Context())
	wantClose(t, conn, closeRestart)
	if n := clients(o); n > 0 {
		t.Errorf("%d clients are left", n)
	}
}

func TestSocketsSendMessages(t *testing.T) {
	in := NewSocketInput(&streams.WebSocket{Path: "/in", Heartbeat: 30 * time.Second, MaxPending: 16, Ack: true, Subprotocols: []string{"b", "c"}}, site("in"))
	r := newRig(t, in)
	in.Start(flowOf(func(m *stream.Message, settle stream.Settle) bool {
		switch string(m.Body) {
		case "bad":
			settle(&stream.Failure{Class: stream.Refused, By: "check", Err: errors.New("detail")})
		case "later":
			settle(errors.New("detail"))
		default:
			settle(nil)
		}
		return true
	}))
	conn := r.socketTo("/in", http.Header{"Sec-Websocket-Protocol": {"a, c, b"}})
	if conn.Subprotocol() != "c" {
		t.Errorf("subprotocol %q", conn.Subprotocol())
	}
	for i, c := range []struct{ sent, want string }{
		{"good", `{"ack":1}`},
		{"bad", `{"nack":2,"error":"message refused by processor \"check\""}`},
		{"later", `{"nack":3,"error":"` + notPassed.Message + `"}`},
	} {
		if err := conn.WriteMessage(websocket.TextMessage, []byte(c.sent)); err != nil {
			t.Fatal(i, err)
		}
		wantMessage(t, conn, websocket.TextMessage, c.want)
	}
	in.Stop(t.Context())
	in.Close()
	wantClose(t, conn, closeRestart)
}

func TestSocketsAreClosedForWhatTheySend(t *testing.T) {
	in, o := input(t), output(t)
	in.site.MaxMessageBytes = 1000
	r := newRig(t, in, o)
	in.Start(flowOf(func(m *stream.Message, settle stream.Settle) bool {
		class := stream.Transient
		if string(m.Body) == "bad" {
			class = stream.Refused
		}
		settle(&stream.Failure{Class: class, Err: errors.New("detail")})
		return true
	}))
	for name, c := range map[string]struct {
		path, sent string
		times      int
		code       int
	}{
		"a refused message":      {"/post/ws", "bad", 1, closePolicy},
		"one that is not passed": {"/post/ws", "x", 1, closeTryLater},
		"one too large":          {"/post/ws", strings.Repeat("x", 1001), 1, websocket.CloseMessageTooBig},
		"one that is no UTF-8":   {"/post/ws", "\xff", 1, websocket.CloseInvalidFramePayloadData},
		"a flood":                {"/get/ws", "x", 2000, closePolicy},
	} {
		conn := r.socketTo(c.path, nil)
		go func() {
			for range c.times {
				if conn.WriteMessage(websocket.TextMessage, []byte(c.sent)) != nil {
					return
				}
			}
		}()
		t.Run(name, func(t *testing.T) { wantClose(t, conn, c.code) })
	}
}

func TestASocketIsNotReadWithoutDemand(t *testing.T) {
	in := input(t)
	r := newRig(t, in)
	var got kept
	f := got.flow()
	f.demand.Set(false)
	in.Start(f)
	conn := r.socketTo("/post/ws", nil)
	for i := range 5 {
		if err := conn.WriteMessage(websocket.BinaryMessage, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	f.demand.Set(true)
	wait.Until(t, "all messages are taken", func() bool { return len(got.messages()) == 5 })
	for i, m := range got.messages() {
		if string(m.Body) != fmt.Sprint(i) || len(m.ID) != 36 || m.Value("http_server_request_path") != "/post/ws" {
			t.Errorf("message %d: %+v", i, m)
		}
	}
}

func TestAnInputAndAnOutputShareASocket(t *testing.T) {
	conf := &streams.WebSocket{Path: "/chat", Heartbeat: 30 * time.Second, MaxPending: 16}
	in, o := NewSocketInput(conf, site("in")), NewSocketOutput(conf, site("out"))
	if !in.Join(o) || in.Join(output(t)) {
		t.Fatal("joined wrongly")
	}
	r := newRig(t, in)
	in.Start(flowOf(func(m *stream.Message, settle stream.Settle) bool { o.Write(m, settle); return true }))
	conn := r.socketTo("/chat", nil)
	ready(t, o, 1)
	for _, text := range []string{"a", "b"} {
		if err := conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			t.Fatal(err)
		}
		wantMessage(t, conn, websocket.TextMessage, text)
	}
	r.mu.Lock()
	cut := r.cuts[0]
	r.mu.Unlock()
	cut(errors.New("the key was revoked"))
	wantClose(t, conn, closePolicy)
}

func TestHandshakes(t *testing.T) {
	in := NewSocketInput(&streams.WebSocket{Path: "/in", Heartbeat: 30 * time.Second, AllowedOrigins: []string{"https://app.example"}}, site("in"))
	r := newRig(t, in)
	var got kept
	in.Start(got.flow())
	good := []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="}
	for _, c := range []struct {
		change string
		status int
	}{
		{"Sec-WebSocket-Version: 8", 400},
		{"Sec-WebSocket-Key: short", 400},
		{"Origin: https://other.example", 403},
	} {
		if resp, _ := r.do("GET", "/in", "", append(good[:len(good):len(good)], c.change)...); resp.StatusCode != c.status {
			t.Errorf("%s: %d", c.change, resp.StatusCode)
		}
	}
	for _, origin := range []string{"https://app.example", "http://" + r.addr} {
		r.socketTo("/in", http.Header{"Origin": {origin}})
	}
}
