package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/internal/definition"
)

// numbers is an upstream that numbers the events of each of its subscriptions: event n of
// subscription{count(to:i)} is i*numberOf+n.
type numbers struct {
	*httptest.Server
	mu   sync.Mutex
	open map[string]func(data string) error // by connection and id: sends an event, or with no data the end
	sent map[string]int                     // events, by the same
}

const numberOf = 1_000_000

var argument = regexp.MustCompile(`to:(\d+)`)

func newNumbers(t *testing.T) *numbers {
	n := &numbers{open: make(map[string]func(string) error), sent: make(map[string]int)}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if websocket.IsWebSocketUpgrade(r) {
			n.sockets(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		n.events(w, r, string(body)+r.URL.Query().Get("query"))
	}))
	t.Cleanup(n.Close)
	return n
}

func (n *numbers) add(conn, id, query string, send func(string) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i, _ := strconv.Atoi(argument.FindStringSubmatch(query)[1])
	n.open[conn+" "+id], n.sent[conn+" "+id] = send, i*numberOf
}

func (n *numbers) remove(conn, id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.open, conn+" "+id)
}

// events serves a subscription over text/event-stream.
func (n *numbers) events(w http.ResponseWriter, r *http.Request, query string) {
	w.Header().Set("Content-Type", "text/event-stream")
	over := make(chan struct{})
	n.add(r.RemoteAddr, "", query, func(data string) error {
		if data == "" {
			close(over)
			return nil
		}
		_, err := io.WriteString(w, "event: next\ndata: "+data+"\n\n")
		w.(http.Flusher).Flush()
		return err
	})
	defer n.remove(r.RemoteAddr, "")
	select {
	case <-over:
		_, _ = io.WriteString(w, "event: complete\ndata:\n\n")
	case <-r.Context().Done():
	}
}

// sockets serves subscriptions over both subprotocols, many on one connection if need be.
func (n *numbers) sockets(w http.ResponseWriter, r *http.Request) {
	ws, err := upstreamSockets.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer ws.Close()
	next := map[string]string{"subscribe": "next", "start": "data"}
	for {
		var m struct {
			ID, Type string
			Payload  struct{ Query string }
		}
		if ws.ReadJSON(&m) != nil {
			return
		}
		n.mu.Lock() // events are sent with it held
		switch m.Type {
		case "connection_init":
			_ = ws.WriteJSON(map[string]string{"type": "connection_ack"})
		case "ping":
			_ = ws.WriteJSON(map[string]string{"type": "pong"})
		}
		n.mu.Unlock()
		switch m.Type {
		case "subscribe", "start":
			kind := next[m.Type]
			n.add(r.RemoteAddr, m.ID, m.Payload.Query, func(data string) error {
				if data == "" {
					return ws.WriteJSON(map[string]string{"id": m.ID, "type": "complete"})
				}
				return ws.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"id":%q,"type":%q,"payload":%s}`, m.ID, kind, data))
			})
		case "complete", "stop":
			n.remove(r.RemoteAddr, m.ID)
		}
	}
}

// publish sends the next event to every subscription; it returns how many there are.
func (n *numbers) publish() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, send := range n.open {
		n.sent[key]++
		_ = send(fmt.Sprintf(`{"data":{"count":%d}}`, n.sent[key])) // lost with its connection, which the client would miss
	}
	return len(n.open)
}

// complete ends all subscriptions.
func (n *numbers) complete() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, send := range n.open {
		_ = send("")
	}
}

// numbered is a client's subscriptions, and what is wrong with their events.
type numbered struct {
	mu    sync.Mutex
	last  map[string]int // number of the last event, by id
	over  map[string]string
	heard int
	wrong []string
}

func (c *numbered) listen(ws *websocket.Conn) {
	for {
		_, text, err := ws.ReadMessage()
		if err != nil {
			c.mu.Lock()
			for id := range c.last {
				if c.over[id] == "" {
					c.over[id] = err.Error()
				}
			}
			c.mu.Unlock()
			return
		}
		var m struct {
			ID, Type string
			Payload  json.RawMessage
		}
		_ = json.Unmarshal(text, &m) // what is no message is reported below
		c.mu.Lock()
		switch m.Type {
		case "next", "data":
			var result struct{ Data struct{ Count int } }
			_ = json.Unmarshal(m.Payload, &result)
			if got, want := result.Data.Count, c.last[m.ID]+1; got != want {
				c.wrong = append(c.wrong, fmt.Sprintf("subscription %s: event %d, want %d", m.ID, got, want))
			}
			c.last[m.ID] = result.Data.Count
			c.heard++
		case "error", "complete":
			c.over[m.ID] = string(text)
		case "pong", "ka", "connection_ack":
		default:
			c.wrong = append(c.wrong, "a message: "+string(text))
		}
		c.mu.Unlock()
	}
}

// ended reports whether all subscriptions have ended.
func (c *numbered) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.over) == len(c.last)
}

// subscribeMany opens a connection with subscriptions to count(to:i) for i from first on.
func (s *sockets) subscribeMany(path, protocol string, first, many int) *numbered {
	s.t.Helper()
	c := s.dial(path, protocol, "key").greets()
	all := &numbered{last: make(map[string]int), over: make(map[string]string)}
	start := map[string]string{"graphql-transport-ws": "subscribe", "graphql-ws": "start"}[protocol]
	for i := first; i < first+many; i++ {
		all.last[strconv.Itoa(i)] = i * numberOf
	}
	go all.listen(c.Conn) // ends with the connection
	for i := first; i < first+many; i++ {
		c.say(asks(start, strconv.Itoa(i), fmt.Sprintf("subscription{count(to:%d)}", i)))
	}
	return all
}

// await returns once done reports that something has come.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	within := time.Now().Add(60 * time.Second)
	for !done() {
		if time.Now().After(within) {
			t.Fatalf("no %s within a minute", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// untilStopped publishes events without a break, a few of each subscription under way, and
// returns how many each has got.
func (n *numbers) untilStopped(stop <-chan struct{}, all []*numbered) (rounds int) {
	const inFlight = 3
	for {
		select {
		case <-stop:
			return rounds
		default:
		}
		heard, open := 0, 0
		for _, one := range all {
			one.mu.Lock()
			heard, open = heard+one.heard, open+len(one.last)
			one.mu.Unlock()
		}
		if heard >= (rounds-inFlight)*open {
			n.publish()
			rounds++
		}
		time.Sleep(time.Millisecond)
	}
}

// reloading are the definitions after n changes; half way, the API "gone" is.
func (s *sockets) reloading(n, half int) []*definition.API {
	apis := []*definition.API{s.api("ws", "graphql-transport-ws", ""), s.api("old", "", ""), s.api("events", "sse", "")}
	for _, api := range apis {
		api.Name = fmt.Sprint("change ", n)
		api.GraphQL.Schema += fmt.Sprintf(" type Change { n%d: Int }", n)
	}
	if n < half {
		apis = append(apis, s.api("gone", "graphql-transport-ws", ""))
	}
	if n%2 == 0 {
		apis = append(apis, s.api(fmt.Sprint("other", n), "", ""))
	}
	return apis
}

// The configuration changes every 100 ms under 1,000 subscriptions: each gets every event
// once and in order, and none ends but those of an API that is taken away.
func TestSubscriptionsLiveThroughReloads(t *testing.T) {
	const connections, each, reloads = 10, 100, 30
	up := newNumbers(t)
	s := withSockets(t, func(d *gateway.Deps) { d.Stages.Upstream.MaxConns = 2 * connections * each })
	s.upstream.Server = up.Server
	s.key("key", `{"org_id":"o","rate":-1,"quota_max":-1,"access_rights":{"ws":{},"old":{},"events":{},"gone":{}}}`)
	s.MustLoad(s.reloading(0, reloads/2)...)

	all := make([]*numbered, connections)
	for i := range all {
		all[i] = s.subscribeMany([...]string{"/ws/", "/old/", "/events/"}[i%3], [...]string{"graphql-transport-ws", "graphql-ws"}[i%2], 1+i*each, each)
	}
	gone := s.subscribeMany("/gone/", "graphql-transport-ws", 1+connections*each, each/10)
	await(t, "subscription of all", func() bool {
		up.mu.Lock()
		defer up.mu.Unlock()
		return len(up.open) == connections*each+each/10
	})

	stop, stopped := make(chan struct{}), make(chan int)
	go func() { stopped <- up.untilStopped(stop, all) }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := range reloads {
		<-tick.C
		s.MustLoad(s.reloading(n+1, reloads/2)...)
	}
	await(t, "end of the subscriptions of the API that is gone", gone.ended)
	close(stop)
	rounds := <-stopped
	up.complete()
	events := 0
	for i, one := range all {
		await(t, "end of all subscriptions", one.ended)
		for _, wrong := range one.wrong {
			t.Error(wrong)
		}
		for n := 1 + i*each; n < 1+(i+1)*each; n++ {
			id := strconv.Itoa(n)
			if got := one.last[id] - n*numberOf; got != rounds || !strings.Contains(one.over[id], `"complete"`) {
				t.Errorf("subscription %s got %d events of %d, and ended with %s", id, got, rounds, one.over[id])
			}
		}
		events += one.heard
	}
	for id, why := range gone.over {
		if why != "websocket: close 4403: its path leads to no API" {
			t.Errorf("subscription %s of the API that is gone ended with %s", id, why)
		}
	}
	if len(gone.wrong) > 0 {
		t.Errorf("of the API that is gone: %v", gone.wrong)
	}
	t.Logf("%d subscriptions on %d connections, %d reloads: %d events published to each, %d received in all", connections*each, connections, reloads, rounds, events)
}
