package streams

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestFromHTTPThroughABrokerToEvents(t *testing.T) {
	t.Parallel()
	p := newTopic(t, testenv.RabbitMQ(t))
	g := newGateway(t, nil, streamAPI("orders", true, object{
		"in":   flow(posted("/orders"), p.published(), steps(object{"mapping": "root = this\nroot.agent = meta(\"user-agent\")\nmeta region = this.region"})),
		"feed": flow(p.consumed("feed"), object{"http_server": object{"path": "/orders/feed", "event": "order-${! meta(\"region\") }"}}),
	}))
	g.up("orders", "feed", "consume", "input")
	one, other := g.listen("/orders/orders/feed"), g.listen("/orders/orders/feed")
	const total = 40
	want := make(map[string]bool)
	for i := range total {
		id := fmt.Sprintf("order-%d", i)
		if got := g.post(200, "/orders/orders", fmt.Sprintf(`{"n":%d,"region":"eu"}`, i), "Idempotency-Key", id, "User-Agent", "shop/1"); got.Body != "" {
			t.Errorf("answer %s", got)
		}
		want[id] = true
	}
	each := [2]int{}
	for range total {
		var e event
		select {
		case e = <-one.events:
			each[0]++
		case e = <-other.events:
			each[1]++
		case <-time.After(rig.Patience):
			t.Fatalf("%d events are missing", len(want))
		}
		if !want[e.id] || e.name != "order-eu" {
			t.Errorf("event %+v", e)
		}
		delete(want, e.id)
		var body struct {
			N      int
			Agent  string
			Region string
		}
		if err := json.Unmarshal([]byte(e.data), &body); err != nil || body.Agent != "shop/1" || fmt.Sprint("order-", body.N) != e.id {
			t.Errorf("event %+v: %v", e, err)
		}
	}
	if each[0] != total/2 || each[1] != total/2 {
		t.Errorf("the clients got %v, want %d each", each, total/2)
	}
}

func TestFromWebSocketThroughABrokerToWebSocket(t *testing.T) {
	t.Parallel()
	p := newTopic(t, testenv.RabbitMQ(t))
	g := newGateway(t, nil, streamAPI("chat", true, object{
		"in":  flow(object{"websocket_server": object{"path": "/say", "ack": "json"}}, p.published()),
		"out": flow(p.consumed("hear"), object{"websocket_server": object{"path": "/hear"}}),
	}))
	g.up("chat", "out", "consume", "input")
	says, hears := g.socket("/chat/say", nil), g.socket("/chat/hear", nil)
	const total = 50
	for i := range total {
		if err := says.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, "message %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	acks, heard := make(map[string]bool), make(map[string]bool)
	for i := range total {
		acks[read(t, says)] = true
		heard[read(t, hears)] = true
		_ = i
	}
	for i := range total {
		if !acks[fmt.Sprintf(`{"ack":%d}`, i+1)] || !heard[fmt.Sprintf("message %d", i)] {
			t.Fatalf("message %d is missing; acknowledged %v, heard %v", i, acks, heard)
		}
	}
}

// source is a server that is polled, and another that takes messages.
type source struct {
	url   string
	polls atomic.Int64
	got   chan *http.Request
	sent  chan string
}

func newSource(t testing.TB, answer func(w http.ResponseWriter, r *http.Request, n int64)) *source {
	t.Helper()
	s := &source{got: make(chan *http.Request, 1000), sent: make(chan string, 1000)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			s.sent <- drained(r.Body)
			s.got <- r
		}
		answer(w, r, s.polls.Add(1))
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func TestAServerIsPolledAndItsAnswersFanOut(t *testing.T) {
	t.Parallel()
	p := newTopic(t, testenv.RabbitMQ(t))
	from := newSource(t, func(w http.ResponseWriter, r *http.Request, n int64) {
		if r.Header.Get("X-Key") != "of-the-source" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, `{"reading":%d,"unit":"C"}`, n)
	})
	to := newSource(t, func(w http.ResponseWriter, _ *http.Request, _ int64) { w.WriteHeader(http.StatusNoContent) })
	g := newGateway(t, nil, streamAPI("sensors", true, object{
		"poll": flow(
			object{"http_client": object{"url": from.url + "/readings", "verb": "GET", "rate_limit": "100ms", "headers": object{"X-Key": "of-the-source"}}},
			object{"broker": object{"pattern": "fan_out", "outputs": []object{
				p.published(), {"label": "call", "http_client": object{"url": to.url + "/hook", "verb": "POST", "headers": object{"Content-Type": "application/json"}}},
			}}},
			steps(object{"mapping": "root.celsius = this.reading\nroot.at = \"station\""}),
		),
		"feed": flow(p.consumed("feed"), served("/feed")),
	}))
	l := g.listen("/sensors/feed")
	called := make(map[string]bool)
	for range 5 {
		e := l.next()
		for !called[e.data] {
			select {
			case text := <-to.sent:
				called[text] = true
			case <-time.After(rig.Patience):
				t.Fatalf("%s came through the broker, and not to the server", e.data)
			}
		}
		if !strings.HasPrefix(e.data, `{"at":"station","celsius":`) {
			t.Errorf("event %+v", e)
		}
	}
	if r := <-to.got; r.URL.Path != "/hook" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s with %v", r.URL, r.Header)
	}
}

func TestMessagesAreSwitchedAndEnriched(t *testing.T) {
	t.Parallel()
	p := newTopic(t, testenv.RabbitMQ(t))
	prices := newSource(t, func(w http.ResponseWriter, r *http.Request, _ int64) {
		if r.URL.Path == "/price/none" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprintf(w, `{"price":%d}`, len(r.URL.Path))
	})
	g := newGateway(t, nil, streamAPI("shop", true, object{
		"in": flow(posted("/orders"), p.published(), steps(object{"switch": object{"cases": []object{
			{"check": `this.kind == "priced"`, "processors": []object{{"label": "price", "branch": object{
				"request_map": "root = \"\"\nmeta item = this.item",
				"processors":  []object{{"label": "ask", "http": object{"url": prices.url + "/price/${! meta(\"item\") }", "verb": "GET", "retries": 0}}},
				"result_map":  "root.price = this.price",
			}}}},
			{"check": `this.kind == "spam"`, "processors": []object{{"mapping": "root = deleted()"}}},
			{"processors": []object{{"mapping": "root = this\nroot.plain = true"}}},
		}}})),
		"feed": flow(p.consumed("feed"), served("/feed")),
	}))
	g.up("shop", "feed", "consume", "input")
	l := g.listen("/shop/feed")
	for _, c := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"kind":"priced","item":"tea"}`, 200, `{"item":"tea","kind":"priced","price":10}`},
		{`{"kind":"spam"}`, 200, ""},
		{`{"kind":"priced","item":"none"}`, 422, ""},
		{`{"kind":"other"}`, 200, `{"kind":"other","plain":true}`},
	} {
		got := g.post(c.status, "/shop/orders", c.body)
		if c.status == 422 && !strings.Contains(got.Body, `message refused by processor \"ask\"`) {
			t.Errorf("answer %s", got)
		}
		if c.want != "" {
			if e := l.next(); e.data != c.want {
				t.Errorf("%s became %+v, want %s", c.body, e, c.want)
			}
		}
	}
}
