package bench

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// live is a GraphQL connection with a subscription, seen from both ends as bytes.
type live struct {
	tb       testing.TB
	client   net.Conn
	upstream net.Conn
	event    []byte // frame with which the upstream sends an event
	ping     []byte // the client's
	buf      [4 << 10]byte
}

// newLive opens a connection with a token, and subscribes.
func newLive(tb testing.TB, w *world) *live {
	tb.Helper()
	type subscribed struct {
		conn net.Conn
		id   string
	}
	ready := make(chan subscribed, 1)
	upgrader := websocket.Upgrader{Subprotocols: []string{"graphql-transport-ws"}}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		ws, err := upgrader.Upgrade(rw, r, nil)
		if err != nil {
			return // answered
		}
		defer ws.Close()
		for {
			var m struct{ ID, Type string }
			if ws.ReadJSON(&m) != nil {
				return
			}
			switch m.Type {
			case "connection_init":
				_ = ws.WriteJSON(map[string]string{"type": "connection_ack"})
			case "subscribe":
				ready <- subscribed{ws.NetConn(), m.ID}
			}
		}
	}))
	tb.Cleanup(server.Close)
	w.add(&definition.API{
		ID: "events", Name: "events", OrgID: "bench", Proxy: definition.Proxy{ListenPath: "/events/", TargetURL: server.URL, StripListenPath: true},
		GraphQL: &definition.GraphQL{
			Enabled: true, ExecutionMode: "proxyOnly", Schema: "type Query { a: Int } type Subscription { count: Int }",
			Proxy: &definition.GraphQLProxy{SubscriptionType: "graphql-transport-ws"},
		},
	})
	w.apply()
	key := w.key(&definition.Session{OrgID: "bench", Limits: plenty, AccessRights: rights("events")})
	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}}
	ws, resp, err := dialer.Dial("ws://"+w.Addr+"/events/", http.Header{"Authorization": {key}})
	if err != nil {
		tb.Fatalf("%v: %+v", err, resp)
	}
	tb.Cleanup(func() { ws.Close() })
	for _, text := range []string{`{"type":"connection_init"}`, `{"id":"1","type":"subscribe","payload":{"query":"subscription{count}"}}`} {
		if err := ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			tb.Fatal(err)
		}
	}
	if _, got, err := ws.ReadMessage(); err != nil || string(got) != `{"type":"connection_ack"}` {
		tb.Fatalf("%s %v", got, err)
	}
	up := <-ready
	l := &live{tb: tb, client: ws.NetConn(), upstream: up.conn}
	l.event = textFrame(`{"id":"`+up.id+`","type":"next","payload":{"data":{"count":1}}}`, false)
	l.ping = textFrame(`{"type":"ping","payload":{"a":"`+strings.Repeat("x", 20)+`"}}`, true)
	return l
}

// textFrame returns a frame of up to 125 bytes; a client's is masked with zeros.
func textFrame(text string, ofClient bool) []byte {
	if ofClient {
		return append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)
	}
	return append([]byte{0x81, byte(len(text))}, text...)
}

// hears reads a frame of the gateway.
func (l *live) hears() {
	if _, err := io.ReadFull(l.client, l.buf[:2]); err != nil {
		l.tb.Fatal(err)
	}
	n := int(l.buf[1])
	if l.buf[0] != 0x81 || n > 125 {
		l.tb.Fatalf("a frame begins with %x", l.buf[:2])
	}
	if _, err := io.ReadFull(l.client, l.buf[:n]); err != nil {
		l.tb.Fatal(err)
	}
}

// events passes an event on to the client.
func (l *live) events() {
	if _, err := l.upstream.Write(l.event); err != nil {
		l.tb.Fatal(err)
	}
	l.hears()
}

// pings has a message of the client answered.
func (l *live) pings() {
	if _, err := l.client.Write(l.ping); err != nil {
		l.tb.Fatal(err)
	}
	l.hears()
}

// messages are what goes over an open connection.
func messages(l *live) map[string]func() {
	return map[string]func(){"event": l.events, "ping": l.pings}
}

// Messages on an open connection allocate at most twice each: an event that is passed on, and
// a ping and its pong, which are two.
var perRound = map[string]float64{"event": 2, "ping": 4}

func TestMessagesHardlyAllocate(t *testing.T) {
	if race.Enabled {
		t.Log("the race detector drops pooled objects at random: nothing to measure")
		return
	}
	for name, round := range messages(newLive(t, newWorld(t, settings{tcp: true}))) {
		t.Run(name, func(t *testing.T) {
			n := allocations(round)
			if n > perRound[name]+slack {
				t.Errorf("%.3f allocations, want at most %.0f", n, perRound[name])
			}
		})
	}
}

// BenchmarkLive measures messages on an open GraphQL connection.
func BenchmarkLive(b *testing.B) {
	for name, round := range messages(newLive(b, newWorld(b, settings{tcp: true}))) {
		b.Run(name, func(b *testing.B) { perRequest(b, round) })
	}
}
