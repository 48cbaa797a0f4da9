package graph_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/internal/definition"
)

// A stream is a source of events, over WebSocket or as text/event-stream.
type stream struct {
	t      *testing.T
	begun  chan begun
	ended  chan struct{} // receives when a subscription was given up
	events chan string   // payloads to send, each to one subscription; "complete", "lost" or errors end it
	pongs  chan struct{} // receives when a ping among the events was answered
}

const ping = `{"type":"ping"}`

// begun is a subscription as the source got it.
type begun struct {
	line, body string
	header     http.Header
}

var upgrader = websocket.Upgrader{Subprotocols: []string{"graphql-transport-ws", "graphql-ws"}}

// streams has a path of the sources stream events.
func (w *world) streams(t *testing.T, path string) *stream {
	s := &stream{t: t, begun: make(chan begun, 10), ended: make(chan struct{}, 10), events: make(chan string, 10), pongs: make(chan struct{}, 1)}
	w.does(path, s.serve)
	return s
}

func (s *stream) serve(w http.ResponseWriter, r *http.Request) {
	if !websocket.IsWebSocketUpgrade(r) {
		s.serveEvents(w, r)
		return
	}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer ws.Close()
	next := "next"
	if ws.Subprotocol() == "graphql-ws" {
		next = "data"
	}
	stop := make(map[string]chan struct{})
	defer func() {
		for _, one := range stop {
			close(one)
		}
	}()
	out := make(chan string, 10)
	go func() {
		for text := range out {
			if text == "lost" {
				_ = ws.Close()
				return
			}
			_ = ws.WriteMessage(websocket.TextMessage, []byte(text))
		}
	}()
	for {
		var m struct {
			ID, Type string
			Payload  json.RawMessage
		}
		if ws.ReadJSON(&m) != nil {
			return
		}
		switch m.Type {
		case "connection_init":
			out <- `{"type":"connection_ack"}`
		case "subscribe", "start":
			over := make(chan struct{})
			stop[m.ID] = over
			go s.pass(over, func(event string) {
				switch {
				case event == "lost", event == ping:
					out <- event
				case event == "complete":
					out <- fmt.Sprintf(`{"id":%q,"type":"complete"}`, m.ID)
				case event[0] == '[':
					out <- fmt.Sprintf(`{"id":%q,"type":"error","payload":%s}`, m.ID, event)
				default:
					out <- fmt.Sprintf(`{"id":%q,"type":%q,"payload":%s}`, m.ID, next, event)
				}
			})
			s.begun <- begun{ws.Subprotocol(), string(m.Payload), r.Header}
		case "pong":
			s.pongs <- struct{}{}
		case "complete", "stop":
			if over := stop[m.ID]; over != nil {
				delete(stop, m.ID)
				close(over)
			}
		}
	}
}

// pass sends events until the subscription ends.
func (s *stream) pass(over <-chan struct{}, send func(string)) {
	for {
		select {
		case event := <-s.events:
			if send(event); event[0] != '{' {
				return
			}
		case <-over:
			s.ended <- struct{}{}
			return
		}
	}
}

func (s *stream) serveEvents(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Set-Cookie", "secret=1")
	w.(http.Flusher).Flush()
	s.begun <- begun{r.Method + " " + r.URL.RawQuery, string(body), r.Header}
	for {
		select {
		case event := <-s.events:
			switch event {
			case "complete":
				_, _ = io.WriteString(w, "event: complete\ndata:\n\n")
				return
			case "lost":
				panic(http.ErrAbortHandler)
			}
			fmt.Fprintf(w, "event: next\ndata: %s\n\n", event)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			s.ended <- struct{}{}
			return
		}
	}
}

// begins returns the next subscription that the source gets.
func (s *stream) begins() begun {
	s.t.Helper()
	return receive(s.t, s.begun)
}

func receive[T any](t *testing.T, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(30 * time.Second):
		t.Fatal("nothing comes")
	}
	return got
}

// A listener is a client that reads the results of a subscription.
type listener struct {
	t    *testing.T
	next func() string // result or what ends them
	end  func()
}

func (l *listener) wants(all ...string) {
	l.t.Helper()
	for _, want := range all {
		if got := l.next(); got != want {
			l.t.Fatalf("heard %s\nwant  %s", got, want)
		}
	}
}

// listens subscribes by a subprotocol, or over http.
func (w *world) listens(t *testing.T, by, query string, header http.Header) *listener {
	if by == "http" {
		return w.overHTTP(t, query, header)
	}
	return w.overSocket(t, by, query, header)
}

// overSocket subscribes on a GraphQL connection.
func (w *world) overSocket(t *testing.T, protocol, query string, header http.Header) *listener {
	t.Helper()
	d := websocket.Dialer{Subprotocols: []string{protocol}}
	ws, _, err := d.Dial("ws://"+w.Addr+"/graph/", header)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	start := map[string]string{"graphql-ws": "start"}[protocol]
	if start == "" {
		start = "subscribe"
	}
	for _, text := range []string{`{"type":"connection_init"}`, fmt.Sprintf(`{"id":"1","type":%q,"payload":{"query":%s}}`, start, quoted(query))} {
		if err := ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return &listener{t, func() string {
		_ = ws.SetReadDeadline(time.Now().Add(30 * time.Second))
		for {
			var m struct {
				Type    string
				Payload json.RawMessage
			}
			if err := ws.ReadJSON(&m); err != nil {
				return err.Error()
			}
			switch m.Type {
			case "connection_ack", "ka":
			case "next", "data":
				return string(m.Payload)
			default:
				return m.Type + " " + string(m.Payload)
			}
		}
	}, func() { _ = ws.Close() }}
}

// overHTTP subscribes with a request whose answer is an event stream.
func (w *world) overHTTP(t *testing.T, query string, header http.Header) *listener {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+w.Addr+"/graph/", strings.NewReader(`{"query":`+quoted(query)+`}`))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Set-Cookie") != "" {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("%d %v %s", resp.StatusCode, resp.Header, text)
	}
	lines := bufio.NewScanner(resp.Body)
	return &listener{t, func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			} else if lines.Text() == "event: complete" {
				return "complete "
			}
		}
		return fmt.Sprint("over ", lines.Err())
	}, func() { _ = resp.Body.Close() }}
}

// subscribing makes the graph one whose users are streamed.
func subscribing(kind, more string) func(*definition.API) {
	return func(api *definition.API) {
		api.GraphQL.Schema += "\ntype Subscription { user(above: Int = 5): User strict: Weather! }"
		users := &api.GraphQL.Engine.DataSources[0]
		users.RootFields = append(users.RootFields, definition.GraphQLRootFields{Type: "Subscription", Fields: []string{"user", "strict"}})
		users.Config.SubscriptionType, users.Config.SSEUsePost = strings.TrimSuffix(kind, "+post"), strings.HasSuffix(kind, "+post")
		users.Config.URL = strings.TrimSuffix(users.Config.URL, "/users") + "/live?a=b"
		if more != "" {
			if err := json.Unmarshal([]byte(`{"subscriptions":`+more+`}`), &api.GraphQL.Proxy); err != nil {
				panic(err)
			}
		}
	}
}

const (
	watched = `subscription W { user { n: name score } }`
	ada     = `{"data":{"user":{"n":"Ada","name":"Ada","id":"1"}}}`
	adaOut  = `{"data":{"user":{"n":"Ada","score":10}}}`
)

// Events of a source are joined with what other sources have, whatever the source and the
// client speak.
func TestSubscriptions(t *testing.T) {
	for _, kind := range []string{"", "graphql-transport-ws", "sse", "sse+post"} {
		w := newWorld(t, subscribing(kind, ""))
		from := w.streams(t, "/live")
		for _, name := range []string{"graphql-transport-ws", "graphql-ws", "http"} {
			t.Run(kind+" to "+name, func(t *testing.T) {
				from.t = t
				from.events <- ada
				l := w.listens(t, name, watched, http.Header{"X-Tenant": {"acme"}, "X-Other": {"o"}})
				got := from.begins()
				const sent = `{"variables":{"v0":5},"query":"subscription($v0: Int){user(above: $v0){n: name id}}"}`
				switch kind {
				case "sse":
					if !strings.HasPrefix(got.line, "GET a=b&query=subscription") || got.body != "" {
						t.Errorf("sent %+v", got)
					}
				case "sse+post":
					if got.line != "POST a=b" || got.body != sent {
						t.Errorf("sent %+v", got)
					}
				default:
					if want := map[string]string{"": "graphql-ws"}[kind] + kind; got.line != want || got.body != sent {
						t.Errorf("sent %+v", got)
					}
				}
				if h := got.header; h.Get("X-Tenant") != "acme" || h.Get("X-Own") != "users" || h.Get("X-Other")+h.Get("X-Forwarded-For") != "" || len(h["User-Agent"]) != 1 {
					t.Errorf("headers %v", h)
				}
				l.wants(adaOut)
				from.events <- `{"data":{"user":{"n":"Bob","id":"2"}}}`
				from.events <- ada
				from.events <- "complete"
				l.wants(`{"data":{"user":{"n":"Bob","score":20}}}`, adaOut, "complete ")
			})
		}
	}
}

// Entities of another subgraph are asked for with every event, and what fails is an error of
// that event.
func TestEventsAreJoinedWithEntities(t *testing.T) {
	w := newShop(t, func(api *definition.API) {
		members := api.GraphQL.Supergraph.Subgraphs
		members[0].SDL += ` type Subscription { joined: User! left: User }`
		members[0].URL, members[0].SubscriptionType = w0(members[0].URL), "graphql-transport-ws"
	})
	from := w.streams(t, "/live")
	l := w.overSocket(t, "graphql-transport-ws", `subscription { left { id: name parcels reviews(first: 1) { body } } }`, nil)
	if got := from.begins(); got.body != `{"query":"subscription{left {sluice_id: name __typename email id}}"}` {
		t.Errorf("sent %s", got.body)
	}
	const bob = `{"data":{"left":{"__typename":"User","id":"2","email":"bob@x.org","sluice_id":"Bob"}}}`
	from.events <- bob
	l.wants(`{"data":{"left":{"id":"Bob","parcels":5,"reviews":[{"body":"text 1"}]}}}`)

	was := w.answers["/logistics"]
	w.does("/logistics", says(503, ""))
	from.events <- bob
	l.wants(`{"errors":[{"message":"subgraph \"logistics\": status 503","path":["left","parcels"],"extensions":{"serviceName":"logistics"}}],"data":{"left":{"id":"Bob","parcels":null,"reviews":[{"body":"text 1"}]}}}`)
	w.does("/logistics", was)

	from.events <- `{"data":{"left":null},"errors":[{"message":"bad","path":["left"],"extensions":{"code":"B","secret":1}}]}`
	from.events <- `{"data":{"left":null}}`
	from.events <- `{"data":[]}`
	from.events <- bob
	from.events <- `[{"message":"over","extensions":{"secret":1}}]`
	l.wants(
		`{"errors":[{"message":"bad","path":["left"],"extensions":{"code":"B","serviceName":"accounts"}}],"data":{"left":null}}`,
		`{"data":{"left":null}}`,
		`{"errors":[{"message":"subgraph \"accounts\": the response is not one of GraphQL","path":["left"],"extensions":{"serviceName":"accounts"}}],"data":{"left":null}}`,
		`{"data":{"left":{"id":"Bob","parcels":5,"reviews":[{"body":"text 1"}]}}}`,
		`error [{"message":"over","path":["left"],"extensions":{"serviceName":"accounts"}}]`,
	)
}

func w0(url string) string { return strings.TrimSuffix(url, "/accounts") + "/live" }

// What ends a subscription ends it on both sides. A reload does not.
func TestEndsOfSubscriptions(t *testing.T) {
	for _, kind := range []string{"graphql-transport-ws", "sse"} {
		w := newWorld(t, subscribing(kind, ""))
		from := w.streams(t, "/live")
		for by, over := range map[string]string{
			"graphql-transport-ws": `error [{"message":"The upstream has failed."}]`, "http": `{"errors":[{"message":"The upstream has failed."}]}`,
		} {
			l := w.listens(t, by, watched, nil)
			from.begins()
			w.apply("with "+by, subscribing(kind, ""))
			from.events <- ada
			from.events <- ada
			from.events <- "lost"
			l.wants(adaOut, adaOut, over)
		}
	}
	w := newWorld(t, subscribing("", ""))
	from := w.streams(t, "/live")
	l := w.overSocket(t, "graphql-ws", watched, nil)
	from.begins()
	l.end()
	receive(t, from.ended)
}

// Equal subscriptions share one at the source, and each is joined by itself. One that is lost
// is begun again.
func TestSharedSubscriptions(t *testing.T) {
	w := newWorld(t, subscribing("graphql-transport-ws", `{"share":true,"reconnect":1}`))
	from := w.streams(t, "/live")
	first := w.overSocket(t, "graphql-transport-ws", watched, http.Header{"X-Tenant": {"acme"}})
	from.begins()
	second, heard := w.overSocket(t, "graphql-ws", watched, http.Header{"X-Tenant": {"acme"}}), make(chan string, 1)
	go func() { heard <- second.next() }()
	for joined := false; !joined; {
		from.events <- ada
		first.wants(adaOut)
		select {
		case got := <-heard:
			if joined = true; got != adaOut {
				t.Fatal(got)
			}
		default:
		}
	}
	if len(from.begun) > 0 {
		t.Error("they do not share a subscription")
	}
	other := w.overSocket(t, "graphql-ws", watched, http.Header{"X-Tenant": {"other"}})
	if got := from.begins().header.Get("X-Tenant"); got != "other" {
		t.Errorf("subscribed for %s", got)
	}
	other.end()
	receive(t, from.ended)
	from.events <- "lost"
	from.begins()
	again := make(chan string, 2)
	for _, l := range []*listener{first, second} { // each begins again after a pause of its own
		go func() { again <- l.next() }()
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for heard := 0; heard < 2; {
		select {
		case <-tick.C:
			from.events <- ada
		case got := <-again:
			if heard++; got != adaOut {
				t.Fatal(got)
			}
		}
	}
	if len(from.begun) > 0 {
		t.Error("they do not share a subscription that is begun again")
	}
	first.end()
	second.end()
	receive(t, from.ended)
}

// Events that come faster than they are joined end the subscription with an error.
func TestEventsThatAreJoinedTooSlowly(t *testing.T) {
	w := newWorld(t, subscribing("graphql-transport-ws", ""))
	from, was := w.streams(t, "/live"), w.answers["/score"]
	joining, goOn := make(chan struct{}, 1), make(chan struct{})
	w.does("/score", func(rw http.ResponseWriter, r *http.Request) {
		joining <- struct{}{}
		<-goOn
		was(rw, r)
	})
	l := w.overSocket(t, "graphql-transport-ws", watched, nil)
	from.begins()
	from.events <- ada
	receive(t, joining)
	for range 1001 {
		from.events <- ada
	}
	from.events <- ping
	receive(t, from.pongs) // all have come
	close(goOn)
	l.wants(adaOut, `error [{"message":"The events come faster than data sources have the values of their fields."}]`)
	receive(t, from.ended)
}

// What a source answers in place of events is the only result.
func TestSourcesThatDoNotSubscribe(t *testing.T) {
	w := newWorld(t, subscribing("sse+post", ""))
	for _, c := range []struct {
		answer http.HandlerFunc
		want   string
	}{
		{says(503, "<html>"), `{"errors":[{"message":"data source \"users\": status 503","path":["user"]}],"data":{"user":null}}`},
		{says(200, `{"errors":[{"message":"no"}]}`), `{"errors":[{"message":"no","path":["user"]}],"data":{"user":null}}`},
		{says(200, ada), adaOut},
	} {
		w.does("/live", c.answer)
		w.overSocket(t, "graphql-transport-ws", watched, nil).wants(c.want, "complete ")
		w.overHTTP(t, watched, nil).wants(c.want, "complete ")
	}
	w.does("/live", func(w http.ResponseWriter, _ *http.Request) { // whole
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+ada+"\n\nevent: complete\ndata:\n\n")
	})
	w.overSocket(t, "graphql-transport-ws", watched, nil).wants(adaOut, "complete ")
	w.overHTTP(t, watched, nil).wants(adaOut, "complete ")

	w = newWorld(t, subscribing("", ""))
	w.does("/live", says(503, "<html>"))
	w.overSocket(t, "graphql-transport-ws", watched, nil).wants(`{"errors":[{"message":"data source \"users\": status 503","path":["user"]}],"data":{"user":null}}`, "complete ")
	for accept, want := range map[string]int{"text/event-stream": 502, "application/json": 406} {
		if status, _ := w.postAs(accept, watched); status != want {
			t.Errorf("%s: status %d, want %d", accept, status, want)
		}
	}
}

func (w *world) postAs(accept, query string) (int, string) {
	return w.post(`{"query":`+quoted(query)+`}`, http.Header{"Accept": {accept}})
}

// Nothing is subscribed to by an explanation, whose plan begins with the subscription.
func TestExplanationsOfSubscriptions(t *testing.T) {
	w := newWorld(t, subscribing("", ""))
	for _, accept := range []string{"application/json", "text/event-stream"} {
		q, err := explain.Parse([]byte(`{"method":"POST","url":"/graph/","headers":{"Content-Type":"application/json","Accept":"` + accept + `"},"body":` + quoted(`{"query":`+quoted(watched)+`}`) + `}`))
		if err != nil {
			t.Fatal(err)
		}
		report := w.Explain(q)
		if accept == "application/json" {
			if report.Outcome.Allowed {
				t.Error("a client that takes no events may subscribe")
			}
			continue
		}
		var got []string
		for _, f := range report.Steps[len(report.Steps)-1].Facts {
			got = append(got, f.From+", "+f.Rule+": "+f.Value+" by "+f.Seen)
		}
		want := []string{"step 1, data source users: user by subscription($v0: Int){user(above: $v0){n: name id}}", "step 2, data source scores: user.score by "}
		if !report.Outcome.Allowed || !slices.Equal(got, want) {
			t.Errorf("%v %q", report.Outcome, got)
		}
	}
	if asked := w.asked(); len(asked) != 0 {
		t.Errorf("asked %q", asked)
	}
}

// A source may be another API, whose own upstream streams the events.
func TestSubscriptionsByAnotherAPI(t *testing.T) {
	w := newWorld(t)
	other, err := definition.ParseAPI([]byte(`{"api_id":"other","name":"other","internal":true,"use_keyless":true,"proxy":{"listen_path":"/other/","target_url":"` + w.URL + `/live","strip_listen_path":true},
		"graphql":{"enabled":true,"execution_mode":"proxyOnly","proxy":{"subscription_type":"graphql-transport-ws"},"schema":"type Query { me: User } type Subscription { user(above: Int): User } type User { id: ID! name: String }"}}`))
	if err != nil {
		t.Fatal(err)
	}
	w.applyBeside("2", []*definition.API{other}, subscribing("", ""), func(api *definition.API) { api.GraphQL.Engine.DataSources[0].Config.URL = "svc://other" })
	from := w.streams(t, "/live")
	for _, by := range []string{"graphql-ws", "http"} {
		l := w.listens(t, by, watched, nil)
		if got := from.begins(); got.line != "graphql-transport-ws" {
			t.Errorf("subscribed by %s", got.line)
		}
		from.events <- ada
		from.events <- "complete"
		l.wants(adaOut, "complete ")
	}
}

func TestHeadDoesNotSubscribe(t *testing.T) {
	w := newWorld(t, subscribing("", ""))
	req, err := http.NewRequest("HEAD", "http://"+w.Addr+"/graph/?query="+url.QueryEscape(watched), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 405 {
		t.Errorf("status %d", resp.StatusCode)
	}
}
