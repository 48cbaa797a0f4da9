package gateway_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/gateway/stage/tunnels"
	"github.com/sluicegate/sluice/internal/definition"
)

// withEvents is withSockets with an API for each way in which an upstream streams.
func withEvents(t *testing.T) *sockets {
	s := withSockets(t)
	s.MustLoad(s.streaming()...)
	return s
}

func (s *sockets) streaming() []*definition.API {
	return []*definition.API{
		s.api("ws", "graphql-transport-ws", ""), s.api("legacy", "graphql-ws", ""), s.api("events", "sse", ""),
		s.api("posted", "sse", `,"sse_use_post":true`), s.api("unsaid", "", ""),
	}
}

const keyOfEvents = `{"org_id":"o","rate":-1,"quota_max":-1,"access_rights":{"ws":{},"legacy":{},"events":{},"posted":{},"unsaid":{},"front":{}}}`

var streamPaths = []string{"/ws/", "/legacy/", "/events/", "/posted/", "/unsaid/"}

const onlyEvents = "text/event-stream"

// ask sends an operation, by POST or GET.
func (s *sockets) ask(method, path, accept, query string) *http.Response {
	s.t.Helper()
	var body io.Reader
	if method == "GET" {
		path += "?query=" + url.QueryEscape(query)
	} else {
		text, _ := json.Marshal(map[string]string{"query": query})
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.Addr+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"key"}, "Accept": {accept}}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func nexts(results ...string) string {
	var text strings.Builder
	for _, one := range results {
		text.WriteString("event: next\ndata: " + one + "\n\n")
	}
	return text.String() + "event: complete\ndata:\n\n"
}

func errorsSaying(message string) string { return `{"errors":[{"message":"` + message + `"}]}` }

// gives reports an answer that is not the one wanted.
func gives(t *testing.T, resp *http.Response, status int, media, body string) {
	t.Helper()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status || resp.Header.Get("Content-Type") != media || string(got) != body {
		t.Errorf("%d %s %v %v\n%s\nwant %d %s\n%s", resp.StatusCode, resp.Header.Get("Content-Type"), err, resp.Header, got, status, media, body)
	}
	if status == 200 && media == onlyEvents {
		if h := resp.Header; h.Get("Cache-Control") != "no-cache" || h.Get("X-Accel-Buffering") != "no" || h.Get("Upgrade") != "" || h.Get("Sec-Websocket-Accept") != "" {
			t.Errorf("the head is %v", h)
		}
	}
}

// Each kind of operation over HTTP as events, against each way in which upstreams stream.
func TestOperationsAsEvents(t *testing.T) {
	s := withEvents(t)
	s.key("key", keyOfEvents)
	for _, path := range streamPaths {
		for _, method := range []string{"POST", "GET"} {
			t.Run(method+path, func(t *testing.T) {
				s.t = t
				counted := nexts(`{"data": {"count":1}}`, `{"data": {"count":2}}`, `{"data": {"count":3}}`)
				if path == "/ws/" || path == "/legacy/" {
					counted = nexts(`{"data":{"count":1}}`, `{"data":{"count":2}}`, `{"data":{"count":3}}`)
				}
				gives(t, s.ask(method, path, onlyEvents, "subscription{count(to:3)}"), 200, onlyEvents, counted)
				gives(t, s.ask(method, path, "application/json, text/event-stream;q=0.5", "subscription{count(to:3)}"), 200, onlyEvents, counted)
				result := `{"data":{"a":15}}`
				if method == "GET" {
					result = `{"data":{"a":0}}`
				}
				gives(t, s.ask(method, path, onlyEvents, "{a}"), 200, onlyEvents, nexts(result))
				if method == "POST" {
					gives(t, s.ask(method, path, "application/json, text/event-stream", "{a}"), 200, "application/json", result)
					gives(t, s.ask(method, path, onlyEvents, "mutation{set(to:1)}"), 200, onlyEvents, nexts(`{"data":{"a":31}}`))
				} else if resp := s.ask(method, path, onlyEvents, "mutation{set(to:1)}"); resp.StatusCode != 405 {
					t.Errorf("a mutation by GET: %d", resp.StatusCode)
				}
			})
		}
	}
}

// Refusals before the stream begins are those of any request, and do not reach the
// upstream. A subscription is charged once.
func TestEventStreamsAreGoverned(t *testing.T) {
	s := withEvents(t)
	s.key("key", `{"org_id":"o","rate":-1,"quota_max":2,"quota_renewal_rate":3600,"access_rights":{"ws":{"restricted_types":[{"name":"Subscription","fields":["secret"]}]}}}`)
	for _, c := range []struct {
		accept, query string
		status        int
		says          string
	}{
		{onlyEvents, "subscription{secret}", 400, "field: secret is restricted on type: Subscription"},
		{onlyEvents, "subscription{nope}", 400, "field: nope not defined on type: Subscription"},
		{"application/json", "subscription{count}", 406, "Subscriptions are answered as text/event-stream only"},
		{onlyEvents, "subscription{count}", 200, `{"data":{"count":3}}`},
		{onlyEvents, "{a}", 200, `{"data":{"a":15}}`},
		{onlyEvents, "subscription{count}", 403, "Quota exceeded"},
		{onlyEvents, "{a}", 403, "Quota exceeded"},
	} {
		resp := s.ask("POST", "/ws/", c.accept, c.query)
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode != c.status || !strings.Contains(string(body), c.says) {
			t.Errorf("%s: %d %s, want %d %s", c.query, resp.StatusCode, body, c.status, c.says)
		}
	}
}

// A reader is the client of one event stream.
type reader struct {
	*bufio.Reader
	io.Closer
	t *testing.T
}

// tunesIn is a subscription without end, whose first event has come.
func (s *sockets) tunesIn(method, path string) *reader {
	s.t.Helper()
	resp := s.ask(method, path, onlyEvents, "subscription forever{count(to:9)}")
	r := &reader{bufio.NewReader(resp.Body), resp.Body, s.t}
	if resp.StatusCode != 200 {
		s.t.Fatalf("%d", resp.StatusCode)
	}
	first := "event: next\ndata: {\"data\":{\"count\":1}}\n\n"
	got := make([]byte, len(first))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != first {
		s.t.Fatalf("%q, %v", got, err)
	}
	return r
}

// ends reports a stream that does not end as wanted.
func (r *reader) ends(want string) {
	r.t.Helper()
	if got, err := io.ReadAll(r); err != nil || string(got) != want {
		r.t.Errorf("the stream ends with %q, %v; want %q", got, err, want)
	}
}

func TestEventStreamsThatClientsLeaveEndUpstream(t *testing.T) {
	s := withEvents(t)
	s.key("key", keyOfEvents)
	before := runtime.NumGoroutine()
	for _, path := range streamPaths {
		s.tunesIn("POST", path).Close()
	}
	for range streamPaths {
		<-s.upstream.left
	}
	s.upstream.CloseClientConnections() // some are kept for further subscriptions
	noMoreGoroutines(t, before)
}

func TestEventStreamsOfARevokedKeyEnd(t *testing.T) {
	s := withEvents(t)
	s.key("key", keyOfEvents)
	var all []*reader
	for _, path := range streamPaths {
		all = append(all, s.tunesIn("GET", path))
	}
	if err := s.Store.Delete(t.Context(), s.Hasher.Hash("key")); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		r.ends(nexts(errorsSaying("Access to this API has been disallowed")))
		<-s.upstream.left
	}
}

func TestEventStreamsLiveThroughAChange(t *testing.T) {
	s := withEvents(t)
	s.key("key", keyOfEvents)
	r := s.tunesIn("POST", "/ws/")
	all := s.streaming()
	all[0].GraphQL.Schema = strings.Replace(socketSchema, "a: Int", "b: Int", 1)
	s.MustLoad(all...)
	gives(t, s.ask("POST", "/ws/", onlyEvents, "{b}"), 200, onlyEvents, nexts(`{"data":{"a":15}}`))
	s.MustLoad(all[1:]...)
	r.ends(nexts(errorsSaying("its path leads to no API")))
	<-s.upstream.left
}

// A subscription whose field the key may not read any more ends.
func TestEventStreamsAreCheckedAgain(t *testing.T) {
	s := withEvents(t)
	s.key("key", keyOfEvents)
	for _, method := range []string{"POST", "GET"} {
		s.key("key", keyOfEvents)
		r := s.tunesIn(method, "/legacy/")
		s.key("key", `{"org_id":"o","rate":1,"per":3600,"quota_max":-1,"access_rights":{"legacy":{"restricted_types":[{"name":"Subscription","fields":["secret"]}]}}}`)
		s.key("key", `{"org_id":"o","rate":1,"per":3600,"quota_max":-1,"access_rights":{"legacy":{"restricted_types":[{"name":"Subscription","fields":["count"]}]}}}`)
		r.ends(nexts(errorsSaying("field: count is restricted on type: Subscription")))
		<-s.upstream.left
	}
}

// EventSource connects again by itself, after a time that it is given.
func TestAStopEndsEventStreams(t *testing.T) {
	s := withEvents(t)
	s.key("key", keyOfEvents)
	posted, got := s.tunesIn("POST", "/legacy/"), s.tunesIn("GET", "/ws/")
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	posted.ends("")
	var wait int
	if n, err := fmt.Fscanf(got, "retry: %d\n\n", &wait); err != nil || n != 1 || wait < 1000 || wait > 5000 {
		t.Errorf("wait for %d, %v", wait, err)
	}
	got.ends("")
	<-s.upstream.left
	<-s.upstream.left
}

// One key can have so many streams open as it can have connections.
func TestEventStreamsCountAsTunnels(t *testing.T) {
	for _, path := range []string{"/ws/", "/events/"} {
		s := withSocketsUnder(t, tunnels.Options{PerKey: 1})
		s.MustLoad(s.streaming()...)
		s.key("key", keyOfEvents)
		r := s.tunesIn("POST", path)
		resp := s.ask("POST", path, onlyEvents, "subscription forever{count}")
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 429 || !strings.Contains(string(body), "Too many connections of this key are open") {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
		r.Close()
		<-s.upstream.left
	}
}

// An upstream that fails within a subscription, or before it.
func TestUpstreamsThatFailEventStreams(t *testing.T) {
	s := withEvents(t)
	s.key("key", keyOfEvents)
	events := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, text)
			w.(http.Flusher).Flush()
		}
	}
	says := func(messages ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			ws, err := upstreamSockets.Upgrade(w, r, nil)
			if err != nil {
				return
			}
			defer ws.Close()
			for _, one := range messages {
				ws.ReadMessage()
				ws.WriteMessage(websocket.TextMessage, []byte(one))
			}
			if len(messages) == 0 {
				ws.ReadMessage()
			}
		}
	}
	const ack, first = `{"type":"connection_ack"}`, `{"data":{"count":1}}`
	failed := errorsSaying("The upstream has failed.")
	large := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		path   string
		answer http.HandlerFunc
		status int
		body   string
	}{
		"an end":        {"/events/", events("data: " + first + "\n\n"), 200, nexts(first)},
		"no result":     {"/events/", events("data: " + first + "\n\ndata: no JSON\n\n"), 200, nexts(first, failed)},
		"a large event": {"/events/", events("data: " + first + "\n\ndata: {\"a\":\"" + large + "\"}\n\n"), 200, nexts(first, failed)},
		"a large line":  {"/events/", events("data: " + first + "\n\n:" + large + large), 200, nexts(first, failed)},
		"other events":  {"/events/", events("event: ping\ndata: 1\n\nid: 7\nretry: 1\ndata: " + first + "\n\n"), 200, nexts(first)},
		"a broken stream": {"/events/", func(w http.ResponseWriter, r *http.Request) {
			events("data: "+first+"\n\n")(w, r)
			panic(http.ErrAbortHandler)
		}, 200, nexts(first, failed)},
		"a result": {"/events/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, failed)
		}, 200, nexts(failed)},
		"a refusal": {"/events/", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) }, 418, "no\n"},
		"a page":    {"/events/", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, 502, "The upstream has sent no GraphQL answer"},
		"compression": {"/events/", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			events("data: x\n\n")(w, r)
		}, 502, "The upstream has sent no GraphQL answer"},
		"encoding none": {"/events/", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "none")
			events("data: "+first+"\n\n")(w, r)
		}, 200, nexts(first)},
		"no handshake": {"/ws/", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 404) }, 502, "The upstream has not accepted the subscription"},
		"another protocol": {"/ws/", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Sec-WebSocket-Protocol", "soap")
			new(websocket.Upgrader).Upgrade(w, r, http.Header{})
		}, 502, "The upstream has not accepted the subscription"},
		"no acknowledgement":    {"/ws/", says(), 200, nexts(failed)},
		"a loss":                {"/ws/", says(ack, `{"type":"next","id":"1","payload":`+first+`}`), 200, nexts(first, failed)},
		"garbage":               {"/ws/", says(ack, `{"type":"next","id":"1","payload":`+first+`}{`), 200, nexts(failed)},
		"a wrong id":            {"/ws/", says(ack, `{"type":"next","id":"2","payload":`+first+`}`), 200, nexts(failed)},
		"a large message":       {"/ws/", says(ack, `{"type":"next","id":"1","payload":{"a":"`+large+`"}}`), 200, nexts(failed)},
		"an error":              {"/ws/", says(ack, `{"type":"error","id":"1","payload":[{"message":"full\n"}]}`), 200, nexts(`{"errors":[{"message":"full\n"}]}`)},
		"a legacy error":        {"/legacy/", says(ack, `{"type":"error","id":"1","payload":{"message":"full"}}`), 200, nexts(errorsSaying("full"))},
		"a connection error":    {"/legacy/", says(`{"type":"connection_error","payload":{}}`), 200, nexts(failed)},
		"a result over lines":   {"/ws/", says(ack, "{\"type\":\"next\",\"id\":\"1\",\"payload\":{\r\n\"data\":\nnull\r}}"), 200, nexts("{  \"data\": null }", failed)},
		"a result with U+2028 ": {"/ws/", says(ack, "{\"type\":\"next\",\"id\":\"1\",\"payload\":{\"data\":\"\u2028\"}}"), 200, nexts("{\"data\":\"\u2028\"}", failed)},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			up := httptest.NewServer(c.answer)
			defer up.Close()
			all := s.streaming()
			for _, def := range all {
				def.Proxy.TargetURL = up.URL
			}
			s.MustLoad(all...)
			resp := s.ask("POST", c.path, onlyEvents, "subscription{count}")
			got, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != c.status || c.status != 502 && string(got) != c.body || !strings.Contains(string(got), c.body) {
				t.Errorf("%d %q, %v; want %d %q", resp.StatusCode, got, err, c.status, c.body)
			}
		})
	}
}

// Of a client that does not read, so much waits and no more.
func TestEventsThatAreNotRead(t *testing.T) {
	s := withEvents(t)
	s.key("key", keyOfEvents)
	left := make(chan struct{})
	event := "data: {\"data\":\"" + strings.Repeat("x", 1<<19) + "\"}\n\n"
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(left)
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			io.WriteString(w, event)
			w.(http.Flusher).Flush()
		}
	}))
	defer up.Close()
	def := s.api("events", "sse", "")
	def.Proxy.TargetURL = up.URL
	s.MustLoad(def)
	resp := s.ask("POST", "/events/", onlyEvents, "subscription{count}")
	<-left
	got, err := io.ReadAll(resp.Body)
	if end := nexts(errorsSaying("The events are not read fast enough.")); err != nil || !strings.HasSuffix(string(got), "\n\n"+end) {
		t.Errorf("%d bytes have come, %v, which end with %q", len(got), err, got[max(0, len(got)-200):])
	}
}

// An API in front of another one leaves the subscription to that.
func TestEventStreamsOverInternalCalls(t *testing.T) {
	s := withEvents(t)
	s.key("key", keyOfEvents)
	front := s.api("front", "graphql-transport-ws", "")
	front.Proxy.TargetURL = "svc://legacy"
	s.MustLoad(append(s.streaming(), front)...)
	for _, method := range []string{"POST", "GET"} {
		s.tunesIn(method, "/front/").Close()
		<-s.upstream.left
	}
	c := s.dial("/front/", "graphql-transport-ws", "key").greets().say(asks("subscribe", "1", "subscription forever{count(to:9)}"))
	c.wants(`{"id":"1","type":"next","payload":{"data":{"count":1}}}`).say(`{"id":"1","type":"complete"}`)
	<-s.upstream.left
}
