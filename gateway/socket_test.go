package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/stage/auth"
	"github.com/sluicegate/sluice/gateway/stage/graphql"
	"github.com/sluicegate/sluice/gateway/stage/tunnels"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/gatewaytest"
)

const socketSchema = `type Query { a: Int secret: Int } type Mutation { set(to: Int): Int } type Subscription { count(to: Int): Int secret: Int }`

// counts is an upstream whose subscriptions count to three.
type counts struct {
	*httptest.Server
	left chan struct{} // receives when a subscription without end is given up
	last atomic.Pointer[http.Header]
}

var upstreamSockets = websocket.Upgrader{Subprotocols: []string{"graphql-transport-ws", "graphql-ws"}}

func newCounting(t *testing.T) *counts {
	c := &counts{left: make(chan struct{}, 10)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.last.Store(&r.Header)
		switch {
		case websocket.IsWebSocketUpgrade(r):
			c.sockets(w, r)
		case strings.Contains(r.Header.Get("Accept"), "event-stream") && (r.Method == "GET" || strings.Contains(string(body), "subscription")):
			w.Header().Set("Content-Type", "text/event-stream")
			if strings.Contains(string(body)+r.URL.RawQuery, "forever") {
				c.endless(r, func() { io.WriteString(w, "data: {\"data\":{\"count\":1}}\n\n"); w.(http.Flusher).Flush() })
				return
			}
			for n := 1; n <= 3; n++ {
				fmt.Fprintf(w, "event: next\ndata: {\"data\":\ndata: {\"count\":%d}}\n\n:\n", n)
				w.(http.Flusher).Flush()
			}
			io.WriteString(w, "event: complete\ndata:\n\n")
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"data":{"a":%d}}`, len(body))
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// endless sends one event, and waits until the gateway leaves.
func (c *counts) endless(r *http.Request, send func()) {
	send()
	<-r.Context().Done()
	c.left <- struct{}{}
}

// sockets speaks both subprotocols.
func (c *counts) sockets(w http.ResponseWriter, r *http.Request) {
	ws, err := upstreamSockets.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer ws.Close()
	endless := false
	next := map[string]string{"subscribe": "next", "start": "data"}
	for {
		var m struct {
			ID, Type string
			Payload  struct{ Query string }
		}
		if ws.ReadJSON(&m) != nil {
			if endless {
				c.left <- struct{}{}
			}
			return
		}
		switch m.Type {
		case "connection_init":
			_ = ws.WriteJSON(map[string]string{"type": "connection_ack"})
			if ws.Subprotocol() == "graphql-ws" {
				_ = ws.WriteJSON(map[string]string{"type": "ka"})
			}
		case "complete", "stop":
			if endless {
				endless = false
				c.left <- struct{}{}
			}
		case "subscribe", "start":
			if strings.Contains(m.Payload.Query, "forever") {
				endless = true
				_ = ws.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"id":%q,"type":%q,"payload":{"data":{"count":1}}}`, m.ID, next[m.Type]))
				continue
			}
			for n := 1; n <= 3; n++ {
				_ = ws.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"id":%q,"type":%q,"payload":{"data":{"count":%d}}}`, m.ID, next[m.Type], n))
			}
			_ = ws.WriteJSON(map[string]string{"id": m.ID, "type": "complete"})
		}
	}
}

// sockets is a gateway with GraphQL APIs whose upstream counts.
type sockets struct {
	*gatewaytest.Gateway
	upstream *counts
	t        *testing.T
}

func withSockets(t *testing.T, change ...func(*gateway.Deps)) *sockets {
	return withSocketsUnder(t, tunnels.Options{}, change...)
}

// withSocketsUnder is withSockets under bounds.
func withSocketsUnder(t *testing.T, bounds tunnels.Options, change ...func(*gateway.Deps)) *sockets {
	s := &sockets{t: t, upstream: newCounting(t)}
	bounds.Interval, bounds.Log = 50*time.Millisecond, slog.New(slog.DiscardHandler)
	open := tunnels.New(bounds)
	s.Gateway = gatewaytest.Start(t, gatewaytest.Options{
		GraphQL:  func(o *graphql.Options) { o.WebSockets, o.Deflates = true, true },
		Sessions: func(o *auth.SessionOptions) { o.Changed = open.Wake },
		Deps: func(d *gateway.Deps) {
			d.Stages.Tunnels = open
			for _, one := range change {
				one(d)
			}
		},
	})
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go open.Run(ctx)
	go s.Sessions.Run(ctx)
	s.MustLoad(s.api("ws", "graphql-transport-ws", ""), s.api("old", "", ""), s.api("events", "sse", ""), s.api("posted", "sse", `,"sse_use_post":true`))
	return s
}

func (s *sockets) api(id, kind, more string) *definition.API {
	s.t.Helper()
	def, err := definition.ParseAPI(fmt.Appendf(nil, `{"api_id":%[1]q,"name":%[1]q,"org_id":"o","proxy":{"listen_path":"/%[1]s/","target_url":%[2]q,"strip_listen_path":true},
		"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":%[3]q,"proxy":{"subscription_type":%[4]q%[5]s}}}`, id, s.upstream.URL, socketSchema, kind, more))
	if err != nil {
		s.t.Fatal(err)
	}
	return def
}

func (s *sockets) key(name, session string) {
	s.t.Helper()
	parsed, err := definition.ParseSession([]byte(session))
	if err != nil {
		s.t.Fatal(err)
	}
	s.Put(name, parsed)
}

const keyOfAll = `{"org_id":"o","rate":-1,"quota_max":-1,"access_rights":{"ws":{},"old":{},"events":{},"posted":{}}}`

// A client is one GraphQL connection.
type client struct {
	*websocket.Conn
	t *testing.T
}

func (s *sockets) dial(path, protocol, key string) *client {
	s.t.Helper()
	c, resp, err := s.tryDial(path, protocol, key)
	if err != nil {
		s.t.Fatalf("%v: %+v", err, resp)
	}
	return c
}

func (s *sockets) tryDial(path, protocol, key string, more ...string) (*client, *http.Response, error) {
	head := http.Header{"Authorization": {key}}
	for _, line := range more {
		name, value, _ := strings.Cut(line, ": ")
		head.Set(name, value)
	}
	d := websocket.Dialer{Subprotocols: []string{protocol}}
	if protocol == "" {
		d.Subprotocols = nil
	}
	ws, resp, err := d.Dial("ws://"+s.Addr+path, head)
	if err != nil {
		return nil, resp, err
	}
	s.t.Cleanup(func() { ws.Close() })
	if got := resp.Header.Get("Sec-WebSocket-Protocol"); got != protocol {
		s.t.Errorf("the protocol is %q", got)
	}
	return &client{ws, s.t}, resp, nil
}

func (c *client) say(text string) *client {
	c.t.Helper()
	if err := c.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
	return c
}

// hears returns the next message, or how the connection ends.
func (c *client) hears() string {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	_, text, err := c.ReadMessage()
	if err != nil {
		return err.Error()
	}
	return idOfRefusal.ReplaceAllString(string(text), "")
}

// idOfRefusal is what differs in the answers to refused operations. Another test has it.
var idOfRefusal = regexp.MustCompile(`,"extensions":\{"request_id":"([0-9a-f]{32})"\}`)

func (c *client) wants(messages ...string) *client {
	c.t.Helper()
	for _, want := range messages {
		if got := c.hears(); got != want {
			c.t.Fatalf("heard %s\nwant  %s", got, want)
		}
	}
	return c
}

func (c *client) greets() *client {
	c.t.Helper()
	return c.say(`{"type":"connection_init"}`).wants(`{"type":"connection_ack"}`)
}

func asks(kind, id, query string) string {
	text, _ := json.Marshal(map[string]any{"type": kind, "id": id, "payload": map[string]string{"query": query}})
	return string(text)
}

// Queries, mutations and subscriptions over both protocols, each against the upstream's
// two protocols and events.
func TestOperationsOnASocket(t *testing.T) {
	s := withSockets(t)
	s.key("key", keyOfAll)
	for _, path := range []string{"/ws/", "/old/", "/events/", "/posted/"} {
		for protocol, says := range map[string]struct{ start, next, stop string }{
			"graphql-transport-ws": {"subscribe", "next", "complete"}, "graphql-ws": {"start", "data", "stop"},
		} {
			t.Run(protocol+path, func(t *testing.T) {
				s.t = t
				c := s.dial(path, protocol, "key").greets()
				next := func(id, data string) string {
					return fmt.Sprintf(`{"id":%q,"type":%q,"payload":{"data":%s}}`, id, says.next, data)
				}
				over := func(id string) string { return fmt.Sprintf(`{"id":%q,"type":"complete"}`, id) }
				c.say(asks(says.start, "1", "{a}")).wants(next("1", `{"a":15}`), over("1"))
				c.say(asks(says.start, "1", "mutation{set(to:1)}")).wants(next("1", `{"a":31}`), over("1"))
				data := func(n int) string {
					if strings.HasPrefix(path, "/events") || strings.HasPrefix(path, "/posted") {
						return fmt.Sprintf("\n{\"count\":%d}", n)
					}
					return fmt.Sprintf(`{"count":%d}`, n)
				}
				c.say(asks(says.start, "s", "subscription{count(to:3)}")).wants(next("s", data(1)), next("s", data(2)), next("s", data(3)), over("s"))
			})
		}
	}
}

// A counted connection counts the bytes that come.
type counted struct {
	net.Conn
	in atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.Add(int64(n))
	return n, err
}

// Messages are compressed for clients that ask for it, and for no others.
func TestCompressedMessages(t *testing.T) {
	s := withSockets(t)
	s.key("key", keyOfAll)
	for _, asks := range []bool{false, true} {
		var conn *counted
		d := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}, EnableCompression: asks, NetDial: func(network, address string) (net.Conn, error) {
			plain, err := net.Dial(network, address)
			conn = &counted{Conn: plain}
			return conn, err
		}}
		ws, resp, err := d.Dial("ws://"+s.Addr+"/ws/", http.Header{"Authorization": {"key"}})
		if err != nil {
			t.Fatal(resp, err)
		}
		defer ws.Close()
		if agreed := resp.Header.Get("Sec-WebSocket-Extensions"); (agreed != "") != asks {
			t.Errorf("the client asks: %t; the answer is %q", asks, agreed)
		}
		c := (&client{ws, t}).greets()
		before, long := conn.in.Load(), strings.Repeat("x", 10_000)
		c.say(`{"type":"ping","payload":"` + long + `"}`).wants(`{"type":"pong","payload":"` + long + `"}`)
		if came := conn.in.Load() - before; (came < 1000) != asks {
			t.Errorf("the client asks: %t; a message of 10,000 bytes takes %d", asks, came)
		}
	}
}

// What is refused ends its operation, and the connection lives on.
func TestOperationsOnASocketAreGoverned(t *testing.T) {
	s := withSockets(t)
	s.key("key", `{"org_id":"o","rate":-1,"quota_max":3,"quota_renewal_rate":3600,"access_rights":{"ws":{"limit":null,"restricted_types":[{"name":"Query","fields":["secret"]},{"name":"Subscription","fields":["secret"]}]}}}`)
	c := s.dial("/ws/", "graphql-transport-ws", "key").greets()
	for _, refused := range []struct{ query, want string }{
		{"{secret}", `{"id":"1","type":"error","payload":[{"message":"field: secret is restricted on type: Query"}]}`},
		{"subscription{secret}", `{"id":"1","type":"error","payload":[{"message":"field: secret is restricted on type: Subscription"}]}`},
		{"{nope}", `{"id":"1","type":"error","payload":[{"message":"field: nope not defined on type: Query","locations":[{"line":1,"column":2}]}]}`},
		{"{", `{"id":"1","type":"error","payload":[{"message":"Syntax Error: Expected Name, found <EOF>.","locations":[{"line":1,"column":2}]}]}`},
	} {
		c.say(asks("subscribe", "1", refused.query)).wants(refused.want)
	}
	for range 3 { // the handshake and what was refused do not count
		c.say(asks("subscribe", "1", "{a}")).wants(`{"id":"1","type":"next","payload":{"data":{"a":15}}}`, `{"id":"1","type":"complete"}`)
	}
	c.say(asks("subscribe", "1", "{a}")).wants(`{"id":"1","type":"error","payload":[{"message":"Quota exceeded"}]}`)
	c.say(asks("subscribe", "1", "subscription{count(to:1)}")).wants(`{"id":"1","type":"error","payload":[{"message":"Quota exceeded"}]}`)
	c.say(`{"type":"ping"}`).wants(`{"type":"pong"}`)
}

func TestHandshakesThatAreRefused(t *testing.T) {
	s := withSockets(t)
	s.key("key", keyOfAll)
	for _, c := range []struct {
		name, protocol, key string
		more                []string
		status              int
		says                string
	}{
		{"no subprotocol", "", "key", nil, 400, "invalid websocket protocol for upgrading to a graphql websocket connection"},
		{"another subprotocol", "soap", "key", nil, 400, "invalid websocket protocol for upgrading to a graphql websocket connection"},
		{"no key", "graphql-ws", "", nil, 401, "Authorization field missing"},
		{"an unknown key", "graphql-ws", "nope", nil, 403, "Access to this API has been disallowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, resp, err := s.tryDial("/ws/", c.protocol, c.key, c.more...)
			if err == nil || resp.StatusCode != c.status {
				t.Fatalf("%v %v", err, resp)
			}
			if body, _ := io.ReadAll(resp.Body); !strings.Contains(string(body), c.says) {
				t.Errorf("%s", body)
			}
		})
	}
}

// onAir is a subscription without end on a new connection, whose first event has come.
func (s *sockets) onAir(path, key string) *client {
	s.t.Helper()
	return s.dial(path, "graphql-transport-ws", key).greets().
		say(asks("subscribe", "1", "subscription forever{count(to:9)}")).wants(`{"id":"1","type":"next","payload":{"data":{"count":1}}}`)
}

// What a client gives up, by its message or by leaving, is given up at the upstream.
func TestEndedSubscriptionsEndUpstream(t *testing.T) {
	s := withSockets(t)
	s.key("key", keyOfAll)
	for _, path := range []string{"/ws/", "/old/", "/events/"} {
		c := s.onAir(path, "key").say(`{"id":"1","type":"complete"}`)
		<-s.upstream.left
		c.say(asks("subscribe", "1", "{a}")).wants(`{"id":"1","type":"next","payload":{"data":{"a":15}}}`, `{"id":"1","type":"complete"}`)
	}
	s.onAir("/ws/", "key").Close()
	<-s.upstream.left
}

func TestConnectionsOfARevokedKeyEnd(t *testing.T) {
	s := withSockets(t)
	s.key("key", keyOfAll)
	c := s.onAir("/ws/", "key")
	if err := s.Store.Delete(t.Context(), s.Hasher.Hash("key")); err != nil {
		t.Fatal(err)
	}
	c.wants("websocket: close 4403: Access to this API has been disallowed")
	<-s.upstream.left
}

// A change of configuration ends no subscription that it still allows, and later
// operations are held against the new one.
func TestConnectionsLiveThroughAChange(t *testing.T) {
	s := withSockets(t)
	s.key("key", keyOfAll)
	c := s.onAir("/ws/", "key")
	changed := s.api("ws", "graphql-transport-ws", "")
	changed.GraphQL.Schema = strings.Replace(socketSchema, "a: Int", "b: Int", 1)
	s.MustLoad(changed)
	c.say(asks("subscribe", "2", "{a}")).wants(`{"id":"2","type":"error","payload":[{"message":"field: a not defined on type: Query","locations":[{"line":1,"column":2}]}]}`)
	c.say(asks("subscribe", "2", "{b}")).wants(`{"id":"2","type":"next","payload":{"data":{"a":15}}}`, `{"id":"2","type":"complete"}`)
	s.MustLoad(s.api("old", "", ""))
	c.wants("websocket: close 4403: its path leads to no API")
	<-s.upstream.left
}

func TestAStopAsksClientsToConnectAgain(t *testing.T) {
	s := withSockets(t)
	s.key("key", keyOfAll)
	c := s.onAir("/ws/", "key")
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	c.wants("websocket: close 1012: The gateway stops, please connect again")
	<-s.upstream.left
}

// Pages of other sites may not use the cookies that a browser has for the API.
func TestPagesOfOtherSitesOpenNoConnection(t *testing.T) {
	s := withSockets(t)
	s.key("key", keyOfAll)
	cookies, listed := s.api("ws", "", ""), s.api("old", "", "")
	for _, api := range []*definition.API{cookies, listed} {
		api.AuthConfigs = map[string]*definition.Auth{"authToken": {UseCookie: true, CookieName: "c"}}
	}
	listed.CORS = &definition.CORS{Enable: true, AllowedOrigins: []string{"https://friend.example"}}
	s.MustLoad(cookies, listed, s.api("events", "sse", ""))
	for _, c := range []struct {
		path, origin string
		status       int
	}{
		{"/ws/", "https://evil.example", 403},
		{"/ws/", "null", 403},
		{"/ws/", "http://" + s.Addr, 101},
		{"/old/", "https://friend.example", 101},
		{"/old/", "https://evil.example", 403},
		{"/events/", "https://evil.example", 101}, // its key is not sent by browsers on their own
	} {
		_, resp, err := s.tryDial(c.path, "graphql-ws", "key", "Cookie: c=key", "Origin: "+c.origin)
		if resp == nil || resp.StatusCode != c.status {
			t.Errorf("%s from %s: %v %v, want %d", c.path, c.origin, resp, err, c.status)
		}
	}
}
