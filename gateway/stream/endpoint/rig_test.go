package endpoint

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// A rig serves the routes of connectors as the gateway does, behind its server.
type rig struct {
	t    testing.TB
	addr string
	def  *definition.API

	mu       sync.Mutex
	routes   []stream.Route
	rejected []pipeline.Reason
	cuts     []func(error)
}

func newRig(t testing.TB, servers ...stream.Server) *rig {
	t.Helper()
	r := &rig{t: t, def: &definition.API{ID: "orders", UseKeyless: true}}
	r.serve(servers...)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = ln.Addr().String()
	s := wire.New(wire.Config{
		MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 64 << 20,
		ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 30 * time.Second,
	}, r, nil)
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = s.Shutdown(ctx) // connections that tests leave open are cut
		<-done
	})
	return r
}

// serve changes the routes.
func (r *rig) serve(servers ...stream.Server) {
	r.t.Helper()
	var routes []stream.Route
	for _, s := range servers {
		routes = append(routes, s.Routes()...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.routes = routes
}

// route returns the route of a call, and the values of the segments with names.
func (r *rig) route(call *wire.Call) (*stream.Route, []stream.Meta, *definition.API) {
	r.mu.Lock()
	defer r.mu.Unlock()
	verb, sent := string(call.Method), strings.Split(string(call.Path), "/")
	if verb == "HEAD" {
		verb = "GET"
	}
	for i := range r.routes {
		one := &r.routes[i]
		if !slices.Contains(one.Verbs, verb) || one.WebSocket != (call.Find(wire.NameUpgrade) != nil) {
			continue
		}
		var path []stream.Meta
		segments := strings.Split(one.Path, "/")
		same := slices.EqualFunc(segments, sent, func(want, got string) bool {
			name, ok := strings.CutPrefix(want, "{")
			if ok {
				path = append(path, stream.Meta{Name: strings.TrimSuffix(name, "}"), Value: got})
			}
			return ok || want == got
		})
		if same {
			return one, path, r.def
		}
	}
	return nil, nil, nil
}

// Handle implements wire.Handler.
func (r *rig) Handle(call *wire.Call) {
	found, path, def := r.route(call)
	if found == nil {
		call.Answer.Status = 404
		return
	}
	ex := pipeline.For(call)
	defer ex.Release()
	ex.API, ex.Path, ex.Client = &pipeline.API{Definition: def}, call.Path, netip.MustParseAddr("192.0.2.7")
	ex.Token = call.Header("X-Key")
	verdict := found.Serve(ex, path)
	r.mu.Lock()
	defer r.mu.Unlock()
	if ex.Cut != nil {
		r.cuts = append(r.cuts, ex.Cut)
	}
	if verdict != pipeline.Rejected {
		return
	}
	a := ex.Answer
	r.rejected = append(r.rejected, ex.Rejection.Reason)
	a.Status, a.Body = ex.Rejection.Status, ex.Rejection.JSON()
	if ex.RetryAfter > 0 {
		a.Append("Retry-After", fmt.Append(nil, ex.RetryAfter))
	}
}

// is changes the API that is called.
func (r *rig) is(def *definition.API) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.def = def
}

// reasons returns why requests were rejected.
func (r *rig) reasons() []pipeline.Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.rejected)
}

// Refuse implements wire.Handler.
func (r *rig) Refuse(call *wire.Call, fault *wire.Fault) { call.Answer.Status = fault.Status }

func site(label string) *stream.Site {
	return &stream.Site{
		API: "orders", Stream: "s", Label: label, MaxMessageBytes: 1 << 20, MaxInFlight: 256,
		Log: slog.New(slog.DiscardHandler), State: new(stream.State),
	}
}

// A fakeFlow takes messages and settles them as the test has it.
type fakeFlow struct {
	demand *stream.Demand
	take   func(m *stream.Message, settle stream.Settle) bool
}

func (f *fakeFlow) Demand() *stream.Demand { return f.demand }

func (f *fakeFlow) Take(m *stream.Message, settle stream.Settle) bool { return f.take(m, settle) }

// flowOf returns a flow with demand.
func flowOf(take func(m *stream.Message, settle stream.Settle) bool) *fakeFlow {
	return &fakeFlow{stream.NewDemand(true), take}
}

// kept keeps the messages of a flow, and settles them with nil.
type kept struct {
	mu  sync.Mutex
	all []*stream.Message
}

func (k *kept) flow() *fakeFlow {
	return flowOf(func(m *stream.Message, settle stream.Settle) bool {
		k.mu.Lock()
		k.all = append(k.all, m)
		k.mu.Unlock()
		settle(nil)
		return true
	})
}

func (k *kept) messages() []*stream.Message {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]*stream.Message(nil), k.all...)
}

func output(t testing.TB, change ...func(*streams.HTTPServerOutput)) *Output {
	t.Helper()
	c := &streams.HTTPServerOutput{
		Path: "/get", StreamPath: "/get/stream", WSPath: "/get/ws", AllowedVerbs: []string{"GET"}, Timeout: 30 * time.Second,
		Heartbeat: 15 * time.Second, MaxPending: 16, WriteTimeout: 10 * time.Second, MaxClients: 10000,
	}
	for _, f := range change {
		f(c)
	}
	o, err := NewOutput(c, site("out"))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func input(t testing.TB, change ...func(*streams.HTTPServerInput)) *Input {
	t.Helper()
	c := &streams.HTTPServerInput{Path: "/post", WSPath: "/post/ws", AllowedVerbs: []string{"POST"}, Timeout: 30 * time.Second}
	for _, f := range change {
		f(c)
	}
	in, err := NewInput(c, site("in"))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// do sends a request and returns the answer with its body.
func (r *rig) do(method, path, body string, lines ...string) (*http.Response, string) {
	r.t.Helper()
	req, err := http.NewRequest(method, "http://"+r.addr+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Error(err)
	}
	return resp, string(text)
}

// A listener is a client that gets all messages.
type listener struct {
	t    testing.TB
	conn net.Conn
	head *http.Response
	in   *bufio.Reader
}

// listen opens a connection that gets events, or lines.
func (r *rig) listen(path, accept string) *listener {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a\r\nAccept: %s\r\n\r\n", path, accept)
	l := &listener{t: r.t, conn: conn}
	raw := bufio.NewReader(conn)
	if l.head, err = http.ReadResponse(raw, nil); err != nil {
		r.t.Fatal(err)
	}
	l.in = bufio.NewReader(l.head.Body)
	return l
}

// event returns the next event that has a field, without comments.
func (l *listener) event() (string, error) {
	var lines []string
	for {
		line, err := l.in.ReadString('\n')
		if err != nil {
			return strings.Join(lines, ""), err
		}
		switch {
		case line == "\n" && len(lines) > 0:
			return strings.Join(lines, ""), nil
		case line != "\n" && !strings.HasPrefix(line, ":"):
			lines = append(lines, line)
		}
	}
}

func (l *listener) wantEvent(want string) {
	l.t.Helper()
	if got, err := l.event(); got != want || err != nil {
		l.t.Errorf("event %q, %v; want %q", got, err, want)
	}
}

// ready waits until clients can be given messages.
func ready(t testing.TB, o *Output, clients int) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("%d clients have credit", clients), func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		n := 0
		for m := range o.clients {
			if m.credit > 0 {
				n++
			}
		}
		return n == clients
	})
}

func clients(o *Output) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.clients)
}

// socketTo opens a WebSocket connection.
func (r *rig) socketTo(path string, header http.Header) *websocket.Conn {
	r.t.Helper()
	conn, resp, err := websocket.DefaultDialer.Dial("ws://"+r.addr+path, header)
	if err != nil {
		r.t.Fatalf("%v, %+v", err, resp)
	}
	r.t.Cleanup(func() { conn.Close() })
	return conn
}

func message(body string) *stream.Message {
	return &stream.Message{ID: "m", Body: []byte(body), Meta: nil, At: time.Now(), Attempt: 1}
}

// outcomes counts how messages were settled.
type outcomes struct {
	mu   sync.Mutex
	ok   int
	errs []error
}

func (o *outcomes) settle(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		o.ok++
		return
	}
	o.errs = append(o.errs, err)
}

func (o *outcomes) counts() (ok, failed int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ok, len(o.errs)
}

func (o *outcomes) until(t testing.TB, ok, failed int) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("%d messages are settled, and %d with an error", ok, failed), func() bool {
		a, b := o.counts()
		return a == ok && b == failed
	})
}
