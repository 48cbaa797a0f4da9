package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/sluicegate/sluice/internal/definition"
)

// A ticking upstream sends the subscriptions on it numbers, each its own.
type ticking struct {
	*httptest.Server
	stop chan struct{}
	gone chan struct{} // receives when a stream of events was given up

	mu            sync.Mutex
	cuts          chan struct{}                      // closed when streams of events are to end
	open          map[*websocket.Conn]map[string]int // number of the last event, by id
	connections   int                                // that there have been
	subscriptions int
	heads         []http.Header // of handshakes
	queries       []string      // of these
	refuses       int           // so many handshakes are answered with 503, or not at all
	resets        bool          // the latter
}

func newTicking(t *testing.T) *ticking {
	u := &ticking{open: make(map[*websocket.Conn]map[string]int), stop: make(chan struct{}), gone: make(chan struct{}, 10), cuts: make(chan struct{})}
	u.Server = httptest.NewServer(http.HandlerFunc(u.serve))
	go u.tick()
	t.Cleanup(func() { close(u.stop); u.cut(); u.Close() })
	return u
}

func (u *ticking) serve(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	refuses := u.refuses > 0
	u.refuses--
	u.heads, u.queries = append(u.heads, r.Header), append(u.queries, r.URL.RawQuery)
	u.mu.Unlock()
	if refuses && u.resets {
		panic(http.ErrAbortHandler)
	}
	if refuses {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if !websocket.IsWebSocketUpgrade(r) {
		u.events(w, r)
		return
	}
	ws, err := upstreamSockets.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer ws.Close()
	u.mu.Lock()
	u.open[ws] = make(map[string]int)
	u.connections++
	u.mu.Unlock()
	for {
		var m struct{ ID, Type string }
		if err := ws.ReadJSON(&m); err != nil {
			u.mu.Lock()
			delete(u.open, ws)
			u.mu.Unlock()
			return
		}
		u.mu.Lock()
		switch m.Type {
		case "connection_init":
			_ = ws.WriteJSON(map[string]string{"type": "connection_ack"})
		case "subscribe":
			u.open[ws][m.ID] = 0
			u.subscriptions++
		case "complete":
			delete(u.open[ws], m.ID)
		}
		u.mu.Unlock()
	}
}

// events is serve for a client that asks for events.
func (u *ticking) events(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	u.connections++
	u.subscriptions++
	cut := u.cuts
	u.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	for n := 1; ; n++ {
		fmt.Fprintf(w, "event: next\ndata: {\"data\":{\"count\":%d}}\n\n", n)
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			u.gone <- struct{}{}
			return
		case <-cut:
			panic(http.ErrAbortHandler)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// tick sends an event to each subscription every few milliseconds.
func (u *ticking) tick() {
	for {
		select {
		case <-u.stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
		u.mu.Lock()
		for ws, numbers := range u.open {
			for id := range numbers {
				numbers[id]++
				_ = ws.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"id":%q,"type":"next","payload":{"data":{"count":%d}}}`, id, numbers[id]))
			}
		}
		u.mu.Unlock()
	}
}

// cut ends all connections.
func (u *ticking) cut() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for ws := range u.open {
		_ = ws.Close()
	}
	close(u.cuts)
	u.cuts = make(chan struct{})
}

// counted returns how many connections and subscriptions there have been.
func (u *ticking) counted() (connections, subscriptions int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.connections, u.subscriptions
}

// withTicking is a gateway whose API "ws" has a ticking upstream.
func withTicking(t *testing.T, more string) (*sockets, *ticking, *definition.API) {
	return withTickingBy(t, "graphql-transport-ws", more)
}

func withTickingBy(t *testing.T, kind, more string) (*sockets, *ticking, *definition.API) {
	s, u := withSockets(t), newTicking(t)
	def := s.api("ws", kind, more)
	def.Proxy.TargetURL = u.URL
	s.MustLoad(def)
	for _, key := range []string{"ann", "bob"} {
		s.key(key, keyOfAll)
	}
	return s, u, def
}

const ticks = "subscription{count(to:9)}"

// ticked returns the number in the next event of a client.
func (c *client) ticked() int {
	c.t.Helper()
	var n int
	got := c.hears()
	if _, err := fmt.Sscanf(got, `{"id":"1","type":"next","payload":{"data":{"count":%d}}}`, &n); err != nil {
		c.t.Fatalf("%s", got)
	}
	return n
}

func TestSubscriptionsShareConnections(t *testing.T) {
	const share, none = `"share":true`, `"forward_headers":["X-Tenant"]`
	for _, c := range []struct {
		name                       string
		more                       string
		keys                       []string
		connections, subscriptions int
	}{
		{"equal headers", `"share":false`, []string{"ann", "ann", "ann"}, 1, 3},
		{"other headers", `"share":false`, []string{"ann", "bob", "ann"}, 2, 3},
		{"headers that are not forwarded", none, []string{"ann", "bob", "ann"}, 1, 3},
		{"equal subscriptions", share, []string{"ann", "bob", "ann"}, 2, 2},
		{"equal subscriptions and headers", share + "," + none, []string{"ann", "bob", "ann"}, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, u, _ := withTicking(t, `,"subscriptions":{`+c.more+`}`)
			var all []*client
			for _, key := range c.keys {
				all = append(all, s.dial("/ws/", "graphql-transport-ws", key).greets().say(asks("subscribe", "1", ticks)))
			}
			for _, one := range all {
				for n := one.ticked(); n < 5; n++ { // none is lost, and none comes twice
					if next := one.ticked(); next != n+1 {
						t.Fatalf("%d follows on %d", next, n)
					}
				}
			}
			if connections, subscriptions := u.counted(); connections != c.connections || subscriptions != c.subscriptions {
				t.Errorf("%d connections with %d subscriptions, want %d and %d", connections, subscriptions, c.connections, c.subscriptions)
			}
			for _, head := range u.heads {
				if head.Get("X-Forwarded-For")+head.Get("X-Real-Ip")+head.Get("X-Request-Id")+head.Get("Traceparent") != "" {
					t.Errorf("the handshake is that of one client: %v", head)
				}
			}
		})
	}
}

// The stream of events that several clients share ends with the last of them, whoever
// asked for it.
func TestSharedEvents(t *testing.T) {
	for _, kind := range []string{"", `,"sse_use_post":true`} {
		s, u, _ := withTickingBy(t, "sse", `,"subscriptions":{"share":true,"forward_headers":[]}`+kind)
		var all []*client
		for range 3 {
			c := s.dial("/ws/", "graphql-transport-ws", "ann").greets().say(asks("subscribe", "1", ticks))
			c.ticked()
			all = append(all, c)
		}
		all[0].Close()
		for _, c := range all[1:] {
			for n := c.ticked(); n < 40; n++ {
				if next := c.ticked(); next != n+1 {
					t.Fatalf("%d follows on %d", next, n)
				}
			}
		}
		if connections, _ := u.counted(); connections != 1 {
			t.Errorf("%d connections", connections)
		}
		all[1].Close()
		all[2].Close()
		<-u.gone
		c := s.dial("/ws/", "graphql-transport-ws", "ann").greets().say(asks("subscribe", "1", ticks))
		if c.ticked() != 1 {
			t.Error("a stream that had ended goes on")
		}
	}
}

func TestLostSubscriptions(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("begun again: ", again), func(t *testing.T) {
			more := ""
			if again {
				more = `,"subscriptions":{"reconnect":3}`
			}
			s, u, _ := withTicking(t, more)
			s.key("ann", strings.Replace(keyOfAll, `"quota_max":-1`, `"quota_max":1,"quota_renewal_rate":3600`, 1))
			c := s.dial("/ws/", "graphql-transport-ws", "ann").greets().say(asks("subscribe", "1", ticks))
			for c.ticked() < 5 {
			}
			u.cut()
			for {
				got := c.hears()
				if strings.HasPrefix(got, `{"id":"1","type":"next","payload":{"data":{"count":1}`) && again {
					return // it has begun anew, without being counted
				}
				if strings.Contains(got, `"type":"error"`) {
					if again || got != `{"id":"1","type":"error","payload":[{"message":"The upstream has failed."}]}` {
						t.Errorf("%s", got)
					}
					return
				}
			}
		})
	}
}

// An upstream that does not come back at once is tried again, as often as is configured
// since the last event.
func TestLostSubscriptionsWhoseUpstreamStaysAway(t *testing.T) {
	for _, c := range []struct {
		kind    string
		resets  bool
		refuses [2]int // after each loss
		ends    bool
	}{
		{"graphql-transport-ws", false, [2]int{1, 1}, false},
		{"graphql-transport-ws", true, [2]int{1, 1}, false},
		{"sse", false, [2]int{1, 1}, false},
		{"sse", true, [2]int{1, 1}, false},
		{"graphql-transport-ws", false, [2]int{1, 2}, true},
		{"sse", true, [2]int{2, 0}, true},
	} {
		t.Run(fmt.Sprintf("%s, resets: %t, %v", c.kind, c.resets, c.refuses), func(t *testing.T) {
			t.Parallel()
			s, u, _ := withTickingBy(t, c.kind, `,"subscriptions":{"reconnect":2}`)
			u.resets = c.resets
			conn := s.dial("/ws/", "graphql-transport-ws", "ann").greets().say(asks("subscribe", "1", ticks))
			for n := conn.ticked(); n < 5; n = conn.ticked() {
			}
			for _, refuses := range c.refuses {
				u.mu.Lock()
				u.refuses = refuses
				u.mu.Unlock()
				u.cut()
				got := conn.hears()
				for ; strings.Contains(got, `"type":"next"`) && !strings.Contains(got, `"count":1}`); got = conn.hears() {
				}
				if strings.Contains(got, `"count":1}`) {
					continue // it has begun anew
				}
				if got != `{"id":"1","type":"error","payload":[{"message":"The upstream has failed."}]}` || !c.ends {
					t.Errorf("%s", got)
				}
				return
			}
			if c.ends {
				t.Error("it is tried more often than is configured")
			}
		})
	}
}

// What an upstream takes from parameters of the URL, and from request_headers, is in the
// requests for subscriptions as in others.
func TestCredentialsForUpstreamsOfSubscriptions(t *testing.T) {
	for _, kind := range []string{"graphql-transport-ws", "sse"} {
		for _, c := range []struct {
			more  string // in the definition
			query string // that the upstream gets, but for the operation
		}{
			{`"auth_configs":{"authToken":{"use_param":true,"param_name":"token"}}`, "token=ann&tenant=a"},
			{`"auth_configs":{"authToken":{"use_param":true,"param_name":"token"}},"strip_auth_data":true`, "tenant=a"},
		} {
			t.Run(kind+c.query, func(t *testing.T) {
				s, u, _ := withTickingBy(t, kind, "")
				def, err := definition.ParseAPI(fmt.Appendf(nil, `{"api_id":"ws","name":"ws","org_id":"o","proxy":{"listen_path":"/ws/","target_url":%q,"strip_listen_path":true},%s,
					"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":%q,"proxy":{"subscription_type":%q,"request_headers":{"X-Upstream-Key":"secret","X-Path":"$svc_context.path"}}}}`, u.URL, c.more, socketSchema, kind))
				if err != nil {
					t.Fatal(err)
				}
				s.MustLoad(def)
				conn, resp, err := s.dialWith("/ws/?token=ann&tenant=a", "graphql-transport-ws", http.Header{"X-Own": {"yes"}})
				if err != nil {
					t.Fatal(resp, err)
				}
				conn.greets().say(asks("subscribe", "1", ticks)).ticked()
				u.mu.Lock()
				defer u.mu.Unlock()
				query, _, _ := strings.Cut(u.queries[0], "&query=")
				head := u.heads[0]
				if query != c.query || head.Get("X-Upstream-Key") != "secret" || head.Get("X-Own") != "yes" {
					t.Errorf("the upstream got %q, %v; want %q", query, head, c.query)
				}
			})
		}
	}
}

// Those who wait for the connection that another establishes learn that it failed.
func TestUpstreamsThatRefuseHandshakes(t *testing.T) {
	s, u, _ := withTicking(t, "")
	u.refuses = 10
	c := s.dial("/ws/", "graphql-transport-ws", "ann").greets()
	for _, id := range []string{"1", "2", "3"} {
		c.say(asks("subscribe", id, ticks))
	}
	for range 3 {
		if got := c.hears(); !strings.Contains(got, `"type":"error"`) {
			t.Errorf("%s", got)
		}
	}
}

func TestSubscriptionsThatAreNotAllowedAnyMoreEnd(t *testing.T) {
	s, _, def := withTicking(t, "")
	c := s.dial("/ws/", "graphql-transport-ws", "ann").greets().say(asks("subscribe", "1", ticks))
	for c.ticked() < 3 {
	}
	s.MustLoad(def) // changes nothing for it
	for n := c.ticked(); n < 9; n = c.ticked() {
	}
	s.key("ann", strings.Replace(keyOfAll, `"ws":{}`, `"ws":{"restricted_types":[{"name":"Subscription","fields":["count"]}]}`, 1))
	for {
		if got := c.hears(); strings.Contains(got, `"type":"error"`) {
			if got != `{"id":"1","type":"error","payload":[{"message":"field: count is restricted on type: Subscription"}]}` {
				t.Errorf("%s", got)
			}
			break
		}
	}
	c.say(asks("subscribe", "2", "{a}"))
	if got := c.hears(); !strings.Contains(got, `"id":"2"`) {
		t.Errorf("%s", got)
	}
}
