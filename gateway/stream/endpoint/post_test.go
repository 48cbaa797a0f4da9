package endpoint

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

func TestARequestBecomesAMessage(t *testing.T) {
	in := input(t, func(c *streams.HTTPServerInput) { c.Path = "/shops/{shop}/orders" })
	r := newRig(t, in)
	r.is(&definition.API{ID: "orders", AuthConfigs: map[string]*definition.Auth{"authToken": {HeaderName: "X-Own", UseParam: true, ParamName: "api_key"}}})
	var got kept
	in.Start(got.flow())
	resp, body := r.do("POST", "/shops/berlin/orders?size=2&api_key=p&size=3&http_server_verb=PUT", "hello",
		"Idempotency-Key: k-1", "Authorization: Bearer a", "Cookie: c=1", "X-Svc-Authorization: s", "X-Own: o", "X-Key: tok", "X-Copy: the tok again",
		"X-Trace: t", "User-Agent: me", "http_server_remote_ip: 10.0.0.1")
	if resp.StatusCode != 200 || body != "" {
		t.Fatalf("%d %q", resp.StatusCode, body)
	}
	m := got.messages()[0]
	if m.ID != "k-1" || string(m.Body) != "hello" || m.Attempt != 1 || m.Reply == nil || m.At.IsZero() {
		t.Errorf("%+v", m)
	}
	want := map[string]string{
		"http_server_request_path": "/shops/berlin/orders", "http_server_verb": "POST", "http_server_remote_ip": "192.0.2.7",
		"http_server_user_agent": "me", "x-trace": "t", "size": "2", "shop": "berlin", "user-agent": "me",
	}
	for name, value := range want {
		if m.Value(name) != value {
			t.Errorf("%s: %q, want %q", name, m.Value(name), value)
		}
	}
	for _, hidden := range []string{"authorization", "cookie", "x-svc-authorization", "x-own", "x-key", "x-copy", "api_key"} {
		if slices.ContainsFunc(m.Meta, func(one stream.Meta) bool { return one.Name == hidden }) {
			t.Errorf("%s is metadata", hidden)
		}
	}
	if _, _ = r.do("POST", "/shops/x/orders", "a"); len(got.messages()[1].ID) != 36 || got.messages()[1].ID[14] != '7' {
		t.Errorf("generated id %q", got.messages()[1].ID)
	}
}

func TestOutcomesOfRequests(t *testing.T) {
	failure := func(c stream.Class, by string) error {
		return &stream.Failure{Class: c, By: by, Err: errors.New("secret detail")}
	}
	for name, c := range map[string]struct {
		err    error
		status int
		body   string
		again  string
		reason pipeline.Reason
	}{
		"taken":       {nil, 200, "", "", pipeline.ReasonNone},
		"refused":     {failure(stream.Refused, "check"), 422, `message refused by processor \"check\"`, "", pipeline.ReasonMessageRefused},
		"not passed":  {failure(stream.Transient, "out"), 503, notPassed.Message, "1", pipeline.ReasonStreamUnavailable},
		"not known":   {failure(stream.Unknown, "out"), 504, unsettled.Message, "", pipeline.ReasonStreamTimeout},
		"impossible":  {failure(stream.Permanent, "out"), 502, failed.Message, "", pipeline.ReasonStreamFailed},
		"not a class": {io.EOF, 503, notPassed.Message, "1", pipeline.ReasonStreamUnavailable},
	} {
		in := input(t)
		r := newRig(t, in)
		in.Start(flowOf(func(_ *stream.Message, settle stream.Settle) bool { settle(c.err); return true }))
		resp, body := r.do("POST", "/post", "x")
		if resp.StatusCode != c.status || !strings.Contains(body, c.body) || resp.Header.Get("Retry-After") != c.again || strings.Contains(body, "secret") {
			t.Errorf("%s: %d %q, again %q", name, resp.StatusCode, body, resp.Header.Get("Retry-After"))
		}
		if c.reason != pipeline.ReasonNone && !slices.Equal(r.reasons(), []pipeline.Reason{c.reason}) {
			t.Errorf("%s: %v", name, r.reasons())
		}
	}
}

func TestARequestWaitsForDemandAndNoLonger(t *testing.T) {
	in := input(t, func(c *streams.HTTPServerInput) { c.Timeout = 50 * time.Millisecond })
	r := newRig(t, in)
	if resp, body := r.do("POST", "/post", "x"); resp.StatusCode != 503 || !strings.Contains(body, draining.Message) {
		t.Errorf("before the start: %d %s", resp.StatusCode, body)
	}
	late := make(chan stream.Settle, 1)
	f := flowOf(func(_ *stream.Message, settle stream.Settle) bool { late <- settle; return true })
	f.demand.Set(false)
	in.Start(f)
	if resp, body := r.do("POST", "/post", "x"); resp.StatusCode != 503 || !strings.Contains(body, notTaken.Message) || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("without demand: %d %s", resp.StatusCode, body)
	}
	f.demand.Set(true)
	if resp, _ := r.do("POST", "/post", "x"); resp.StatusCode != 504 {
		t.Errorf("not settled: %d", resp.StatusCode)
	}
	(<-late)(nil) // nobody waits
	full := input(t)
	r.serve(full)
	full.Start(flowOf(func(*stream.Message, stream.Settle) bool { return false }))
	if resp, body := r.do("POST", "/post", "x"); resp.StatusCode != 503 || !strings.Contains(body, notTaken.Message) {
		t.Errorf("no room: %d %s", resp.StatusCode, body)
	}
}

func TestRequestsThatWaitAreServedWhenDemandComes(t *testing.T) {
	in := input(t)
	r := newRig(t, in)
	var got kept
	f := got.flow()
	f.demand.Set(false)
	in.Start(f)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if resp, _ := r.do("POST", "/post", fmt.Sprint(i)); resp.StatusCode != 200 {
				t.Errorf("%d: %d", i, resp.StatusCode)
			}
		})
	}
	f.demand.Set(true)
	all.Wait()
	if len(got.messages()) != 20 {
		t.Errorf("%d messages", len(got.messages()))
	}
}

func TestAStoppedInputRefusesAndPassesNothingOn(t *testing.T) {
	in := input(t)
	r := newRig(t, in)
	entered, goOn := make(chan struct{}), make(chan struct{})
	in.Start(flowOf(func(_ *stream.Message, settle stream.Settle) bool {
		close(entered)
		<-goOn
		settle(nil)
		return true
	}))
	done := make(chan int)
	go func() { resp, _ := r.do("POST", "/post", "x"); done <- resp.StatusCode }()
	<-entered
	stopped := make(chan struct{})
	go func() { in.Stop(t.Context()); close(stopped) }()
	<-in.stopped
	if resp, _ := r.do("POST", "/post", "y"); resp.StatusCode != 503 {
		t.Errorf("while it stops: %d", resp.StatusCode)
	}
	select {
	case <-stopped:
		t.Error("Stop has returned although a message is being passed on")
	default:
	}
	close(goOn)
	if status := <-done; status != 200 {
		t.Errorf("the request under way: %d", status)
	}
	<-stopped
	in.Close()
}

func TestSynchronousResponses(t *testing.T) {
	in := input(t, func(c *streams.HTTPServerInput) {
		c.ReplyStatus = `${! meta("status") }`
		c.ReplyHeaders = []streams.Header{{Name: "X-Shop", Value: `${! meta("shop") }`}}
	})
	r := newRig(t, in)
	in.Start(flowOf(func(m *stream.Message, settle stream.Settle) bool {
		if string(m.Body) != "quiet" {
			reply := &stream.Message{Body: []byte(`{"a":1}`), Meta: []stream.Meta{{Name: "status", Value: m.Value("status")}, {Name: "shop", Value: m.Value("shop")}}}
			m.Reply.Set(reply)
		}
		settle(nil)
		return true
	}))
	for _, c := range []struct {
		body, query, want string
		status            int
		shop              string
	}{
		{"x", "?status=202&shop=berlin", `{"a":1}`, 202, "berlin"},
		{"x", "?status=700&shop=a%0d%0ab:c", `{"a":1}`, 200, ""},
		{"x", "?status=204&shop=s", "", 204, "s"},
		{"quiet", "?status=201&shop=s", "", 201, "s"},
	} {
		resp, body := r.do("POST", "/post"+c.query, c.body)
		if resp.StatusCode != c.status || body != c.want || resp.Header.Get("X-Shop") != c.shop || body != "" && resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%+v: %d %q %v", c, resp.StatusCode, body, resp.Header)
		}
	}
	bad := []streams.HTTPServerInput{
		{ReplyStatus: "${! nope( }"},
		{ReplyHeaders: []streams.Header{{Name: "A B", Value: "x"}}},
		{ReplyHeaders: []streams.Header{{Name: "content-length", Value: "5"}}},
		{ReplyHeaders: []streams.Header{{Name: "X", Value: "${! nope( }"}}},
	}
	for _, c := range bad {
		if _, err := NewInput(&c, site("in")); err == nil || !strings.Contains(err.Error(), "sync_response.") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestRatesOfMessages(t *testing.T) {
	l, now := newLimiter(&streams.Rate{Count: 10, Per: time.Second}), time.Unix(1000, 0)
	for i := range 10 {
		if wait := l.wait(now); wait != 0 {
			t.Fatalf("message %d waits %v", i, wait)
		}
	}
	if wait := l.wait(now); wait != 100*time.Millisecond {
		t.Errorf("the eleventh waits %v", wait)
	}
	if wait := l.wait(now.Add(100 * time.Millisecond)); wait != 0 {
		t.Errorf("a tenth of the time later: %v", wait)
	}
	in := input(t, func(c *streams.HTTPServerInput) { c.RateLimit = &streams.Rate{Count: 1, Per: time.Hour} })
	r := newRig(t, in)
	var got kept
	in.Start(got.flow())
	first, _ := r.do("POST", "/post", "x")
	second, _ := r.do("POST", "/post", "x")
	if first.StatusCode != 200 || second.StatusCode != 429 || second.Header.Get("Retry-After") != "3600" {
		t.Errorf("%d, %d after %q", first.StatusCode, second.StatusCode, second.Header.Get("Retry-After"))
	}
}

func TestBodiesAreBounded(t *testing.T) {
	in := input(t)
	in.site.MaxMessageBytes = 20 << 10
	r := newRig(t, in)
	var got kept
	in.Start(got.flow())
	for _, c := range []struct {
		size   int
		status int
	}{{0, 200}, {100, 200}, {20 << 10, 200}, {20<<10 + 1, 413}, {100 << 20, 413}} {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /post HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", c.size)
		go func() { _, _ = io.Copy(conn, io.LimitReader(zeros{}, int64(c.size))) }() // until the server has enough
		answer := make([]byte, 12)
		if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != fmt.Sprintf("HTTP/1.1 %d", c.status) {
			t.Errorf("%d bytes: %q, %v", c.size, answer, err)
		}
		conn.Close()
	}
	chunked := "1000\r\n" + strings.Repeat("x", 1<<12) + "\r\n"
	for _, c := range []struct {
		body   string
		status int
	}{{strings.Repeat(chunked, 5) + "0\r\n\r\n", 200}, {strings.Repeat(chunked, 6) + "0\r\n\r\n", 413}, {"nonsense\r\n\r\n", 400}} {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /post HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%s", c.body)
		answer := make([]byte, 12)
		if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != fmt.Sprintf("HTTP/1.1 %d", c.status) {
			t.Errorf("%.10q: %q, %v", c.body, answer, err)
		}
		conn.Close()
	}
	if resp, _ := r.do("POST", "/post", "x", "Idempotency-Key: a b"); resp.StatusCode != 400 {
		t.Errorf("an id with a blank: %d", resp.StatusCode)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
