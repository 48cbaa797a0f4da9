package httpcall

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/mapping"
)

var free net.Dialer

func site(dial stream.Dialer) *stream.Site {
	return &stream.Site{MaxMessageBytes: 1 << 10, Dial: dial}
}

func request(address string) *streams.HTTPRequest {
	return &streams.HTTPRequest{URL: streams.Template(address), Verb: "POST", Timeout: time.Minute, BackoffOn: []int{429}}
}

func prepared(t *testing.T, of *streams.HTTPRequest, at *stream.Site, body string) *Call {
	t.Helper()
	plan, err := New(of, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plan.Close)
	doc := mapping.NewDoc([]byte(body))
	doc.SetMeta("kind", "new\torder")
	call, err := plan.Prepare(func() *mapping.Doc { return doc }, func() ([]byte, error) { return []byte(body), nil })
	if err != nil {
		t.Fatal(err)
	}
	return call
}

func TestCallsAreMadeByTheConfiguration(t *testing.T) {
	type got struct{ line, host, auth, agent, kind, contentType, body string }
	var last got
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		last = got{r.Method + " " + r.RequestURI, r.Host, r.Header.Get("Authorization"), r.UserAgent(), r.Header.Get("X-Kind"), r.Header.Get("Content-Type"), string(body)}
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for name, c := range map[string]struct {
		change func(*streams.HTTPRequest)
		body   string
		want   got
	}{
		"as it is": {func(*streams.HTTPRequest) {}, `{"a":1}`, got{"POST /", host, "", "sluice", "", "application/json", `{"a":1}`}},
		"no JSON":  {func(*streams.HTTPRequest) {}, "a=1", got{"POST /", host, "", "sluice", "", "application/octet-stream", "a=1"}},
		"no body":  {func(*streams.HTTPRequest) {}, "", got{"POST /", host, "", "sluice", "", "", ""}},
		"templates": {func(of *streams.HTTPRequest) {
			of.URL += "/x/${! this.a }?b=1#part"
			of.Verb, of.Body = "PUT", "<${! this.a }>"
			of.Headers = []streams.Header{{Name: "x-kind", Value: "${! @kind }"}, {Name: "content-type", Value: "text/xml"}, {Name: "host", Value: "b.example"}, {Name: "user-agent", Value: "us"}}
		}, `{"a":1}`, got{"PUT /x/1?b=1", "b.example", "", "us", "new\torder", "text/xml", "<1>"}},
		"basic": {func(of *streams.HTTPRequest) { of.BasicUser, of.BasicPassword = "a", "b:c" }, "", got{"POST /", host, "Basic YTpiOmM=", "sluice", "", "", ""}},
		"bearer": {func(of *streams.HTTPRequest) {
			of.Bearer, of.Headers = "t", []streams.Header{{Name: "authorization", Value: "${! @kind }"}}
		}, "", got{"POST /", host, "Bearer t", "sluice", "", "", ""}},
	} {
		of := request(server.URL)
		c.change(of)
		if failure := prepared(t, of, site(free.DialContext), c.body).Tell(t.Context()); failure != nil || last != c.want {
			t.Errorf("%s: %v, %+v, want %+v", name, failure, last, c.want)
		}
	}
}

func TestPlansThatCannotBe(t *testing.T) {
	for want, change := range map[string]func(*streams.HTTPRequest, *stream.Site){
		"url:1:":             func(of *streams.HTTPRequest, _ *stream.Site) { of.URL = "http://a/${! " },
		"url: want":          func(of *streams.HTTPRequest, _ *stream.Site) { of.URL = "ftp://secret" },
		"url: must not have": func(of *streams.HTTPRequest, _ *stream.Site) { of.URL = "http://me:secret@a" },
		"body:1:":            func(of *streams.HTTPRequest, _ *stream.Site) { of.Body = "${! }" },
		"headers.X-A:1:": func(of *streams.HTTPRequest, _ *stream.Site) {
			of.Headers = []streams.Header{{Name: "X-A", Value: "${! }"}}
		},
		"auth.bearer: has":     func(of *streams.HTTPRequest, _ *stream.Site) { of.Bearer = "secret\n" },
		"nothing can be calle": func(_ *streams.HTTPRequest, at *stream.Site) { at.Dial = nil },
	} {
		of, at := request("http://a"), site(free.DialContext)
		change(of, at)
		if _, err := New(of, at); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

func TestCallsThatCannotBePrepared(t *testing.T) {
	doc := mapping.NewDoc([]byte(`{"url":"nowhere?secret","me":"http://me:secret@a","header":"a\nb"}`))
	for want, change := range map[string]func(*streams.HTTPRequest){
		"url: want":     func(of *streams.HTTPRequest) { of.URL = "${! this.url }" },
		"url: must not": func(of *streams.HTTPRequest) { of.URL = "${! this.me }" },
		"url: expr":     func(of *streams.HTTPRequest) { of.URL = `http://a/${! throw("no") }` },
		"body: expr":    func(of *streams.HTTPRequest) { of.Body = `${! throw("no") }` },
		"header X-A: e": func(of *streams.HTTPRequest) {
			of.Headers = []streams.Header{{Name: "x-a", Value: `${! throw("no") }`}}
		},
		"header X-A: t": func(of *streams.HTTPRequest) {
			of.Headers = []streams.Header{{Name: "x-a", Value: "${! this.header }"}}
		},
		"header X-B: t": func(of *streams.HTTPRequest) { of.Headers = []streams.Header{{Name: "x-b", Value: "a\nb"}} },
	} {
		of := request("http://a")
		change(of)
		plan, err := New(of, site(free.DialContext))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := plan.Prepare(func() *mapping.Doc { return doc }, nil); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// raw serves connections with bytes that need not be HTTP.
func raw(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					serve(conn)
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func says(text string) func(net.Conn) {
	return func(conn net.Conn) { _, _ = io.WriteString(conn, text) }
}

// closed returns an address at which nothing listens.
func closed(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	return listener.Addr().String()
}

func TestFaultsOfServers(t *testing.T) {
	silent := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	for _, c := range []struct {
		name    string
		address string
		timeout time.Duration // 0: long
		class   stream.Class
		want    string
	}{
		{"silence", raw(t, silent), 3 * time.Second, stream.Unknown, "no answer within 3s"},
		{"silence within a body", raw(t, func(conn net.Conn) { says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsecret")(conn); silent(conn) }), 3 * time.Second, stream.Unknown, "the response broke off: no answer within 3s"},
		{"an error that goes on", raw(t, func(conn net.Conn) { says("HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nsecret")(conn); silent(conn) }), 3 * time.Second, stream.Unknown, "status 500"},
		{"another protocol that goes on", raw(t, func(conn net.Conn) {
			says("HTTP/1.1 101 OK\r\nConnection: upgrade\r\nUpgrade: secret\r\n\r\n")(conn)
			silent(conn)
		}), 0, stream.Permanent, "status 101"},
		{"nothing", raw(t, says("")), 0, stream.Unknown, "the connection was closed"},
		{"garbage", raw(t, says("secret\r\n\r\n")), 0, stream.Unknown, "the response is not HTTP/1.1"},
		{"a bad status", raw(t, says("HTTP/1.1 secret\r\n\r\n")), 0, stream.Unknown, "the response is not HTTP/1.1"},
		{"a bad header", raw(t, says("HTTP/1.1 200 OK\r\nsecret\r\n\r\n")), 0, stream.Unknown, "the response is not HTTP/1.1"},
		{"a bad length", raw(t, says("HTTP/1.1 200 OK\r\nContent-Length: secret\r\n\r\n")), 0, stream.Unknown, "the response is not HTTP/1.1"},
		{"a bad encoding", raw(t, says("HTTP/1.1 200 OK\r\nTransfer-Encoding: secret\r\n\r\n")), 0, stream.Unknown, "the response is not HTTP/1.1"},
		{"bad chunks", raw(t, says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nsecret\r\n")), 0, stream.Unknown, "the response broke off: the response is not HTTP/1.1"},
		{"half a body", raw(t, says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsecret")), 0, stream.Unknown, "the response broke off: the connection was closed"},
		{"large headers", raw(t, says("HTTP/1.1 200 OK\r\na: "+strings.Repeat("secret", 20000)+"\r\n\r\n")), 0, stream.Unknown, "the headers of the response have more than 65536 bytes"},
		{"a large body", raw(t, says("HTTP/1.1 200 OK\r\n\r\n"+strings.Repeat("secret", 200))), 0, stream.Permanent, "the response has more than 1024 bytes"},
		{"no listener", closed(t), 0, stream.Transient, "connection refused"},
		{"no TLS", "https://" + raw(t, says("")), 0, stream.Transient, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			scheme, address, ok := strings.Cut(c.address, "//")
			if !ok {
				scheme, address = "http:", c.address
			}
			of := request(scheme + "//" + address + "/secret?secret=secret")
			if of.Bearer = "secret"; c.timeout > 0 {
				of.Timeout = c.timeout
			}
			_, failure := prepared(t, of, site(free.DialContext), "secret").Ask(t.Context())
			switch {
			case failure == nil:
				t.Error("no failure")
			case !strings.HasPrefix(failure.Error(), "POST "+address+": "), !strings.HasSuffix(failure.Error(), c.want), strings.Contains(failure.Error(), "secret"), failure.Class != c.class && c.want != "":
				t.Errorf("class %d, %v; want class %d, %s", failure.Class, failure, c.class, c.want)
			case !Mends(failure) != (failure.Class == stream.Permanent):
				t.Errorf("mends is %v", Mends(failure))
			}
		})
	}
}

func TestStatuses(t *testing.T) {
	status, header := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		if header != "" {
			w.Header().Set("Retry-After", header)
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	const good = stream.Class(99)
	for _, c := range []struct {
		status int
		header string
		class  stream.Class
		after  time.Duration
	}{
		{200, "", good, 0},
		{204, "", good, 0},
		{404, "", stream.Permanent, 0},
		{410, "", good, 0},
		{299, "", stream.Permanent, 0},
		{202, "", stream.Transient, 0},
		{418, "", stream.Transient, 0},
		{302, "", stream.Permanent, 0},
		{308, "5", stream.Permanent, 0},
		{400, "", stream.Permanent, 0},
		{408, "", stream.Transient, 0},
		{425, "", stream.Transient, 0},
		{429, "7", stream.Transient, 7 * time.Second},
		{500, "", stream.Unknown, 0},
		{503, "99999999999999999999", stream.Transient, 0},
		{503, "999", stream.Transient, time.Minute},
		{503, "-1", stream.Transient, 0},
		{503, "Fri, 01 Jan 2100 00:00:00 GMT", stream.Transient, time.Minute},
		{503, "Fri, 01 Jan 2010 00:00:00 GMT", stream.Transient, 0},
		{504, "", stream.Unknown, 0},
	} {
		status, header = c.status, c.header
		of := request(server.URL)
		of.DropOn, of.SuccessfulOn, of.BackoffOn = []int{299}, []int{410}, []int{202, 418, 429}
		failure := prepared(t, of, site(free.DialContext), "x").Tell(t.Context())
		switch {
		case failure == nil && c.class != good:
			t.Errorf("%d is a success", c.status)
		case failure != nil && (failure.Class != c.class || failure.After != c.after || !strings.HasSuffix(failure.Error(), fmt.Sprintf(": status %d", c.status))):
			t.Errorf("%d: class %d after %v, %v", c.status, failure.Class, failure.After, failure)
		}
	}
}

func TestCertificatesAreChecked(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = nil
	server.StartTLS()
	defer server.Close()
	of := request(server.URL)
	failure := prepared(t, of, site(free.DialContext), "").Tell(t.Context())
	if failure == nil || !strings.Contains(failure.Error(), "certificate") || Mends(failure) || failure.Class != stream.Transient {
		t.Errorf("%v", failure)
	}
	of.SkipVerify = true
	if failure := prepared(t, of, site(free.DialContext), "").Tell(t.Context()); failure != nil {
		t.Error(failure)
	}
	of.URL = streams.Template(strings.Replace(server.URL, "https:", "http:", 1))
	if failure := prepared(t, of, site(free.DialContext), "").Tell(t.Context()); failure == nil || !strings.HasSuffix(failure.Error(), "status 400") {
		t.Errorf("without TLS: %v", failure)
	}
	plain := httptest.NewServer(nil)
	defer plain.Close()
	of.URL = streams.Template(strings.Replace(plain.URL, "http:", "https:", 1))
	if failure := prepared(t, of, site(free.DialContext), "").Tell(t.Context()); failure == nil || !strings.HasSuffix(failure.Error(), "the server does not speak TLS") {
		t.Errorf("to a server without TLS: %v", failure)
	}
}

func TestAddressesThatMustNotBeCalled(t *testing.T) {
	server := httptest.NewServer(nil)
	defer server.Close()
	guard := &dialguard.Dialer{Setting: "streaming.allow_addresses"}
	failure := prepared(t, request(server.URL), site(guard.DialContext), "").Tell(t.Context())
	if failure == nil || !strings.HasSuffix(failure.Error(), "is loopback; add it to streaming.allow_addresses") || Mends(failure) {
		t.Errorf("%v", failure)
	}
}

func TestPlansShareTheConnectionsOfAPool(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	pool := NewPool(free.DialContext)
	defer pool.Close()
	for range 5 {
		at := site(nil)
		at.HTTP = pool.Transport
		plan, err := New(request(server.URL), at)
		if err != nil {
			t.Fatal(err)
		}
		call, err := plan.Prepare(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer, failure := call.Ask(t.Context()); failure != nil || string(answer.Body) != "{}" {
			t.Fatal(failure)
		}
		plan.Close()
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections for 5 calls", n)
	}
}

// The timeout of a response that goes on is for its head.
func TestOpen(t *testing.T) {
	silent := raw(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	of := request("http://" + silent)
	of.Timeout = 20 * time.Millisecond
	if _, failure := prepared(t, of, site(free.DialContext), "").Open(t.Context()); failure == nil || !strings.HasSuffix(failure.Error(), "no answer within 20ms") {
		t.Errorf("%v", failure)
	}
	more := make(chan struct{})
	of.URL = streams.Template("http://" + raw(t, func(conn net.Conn) {
		says("HTTP/1.1 200 OK\r\n\r\na")(conn)
		<-more
		says("b")(conn)
	}))
	of.Timeout = 2 * time.Second
	answer, failure := prepared(t, of, site(free.DialContext), "").Open(t.Context())
	if failure != nil {
		t.Fatal(failure)
	}
	time.AfterFunc(of.Timeout+100*time.Millisecond, func() { close(more) })
	body, err := io.ReadAll(answer.Body)
	if err != nil || string(body) != "ab" {
		t.Errorf("%q, %v", body, err)
	}
	_ = answer.Body.Close()

	ctx, cancel := context.WithCancel(t.Context())
	of.URL, of.Timeout = streams.Template("http://"+silent), time.Minute
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, failure := prepared(t, of, site(free.DialContext), "").Open(ctx); failure == nil || !strings.HasSuffix(failure.Error(), "context canceled") {
		t.Errorf("%v", failure)
	}
}

func TestMetadataHasNoCredentials(t *testing.T) {
	h := http.Header{
		"Set-Cookie": {"secret"}, "Set-Cookie2": {"secret"}, "Authentication-Info": {"secret"}, "Authorization": {"secret"},
		"Http_status_code": {"1"}, "Http_client_event": {"x"}, "Content-Type": {"a"}, "X-Two": {"a", "b\xff"},
	}
	if got := fmt.Sprint(Meta(200, h)); got != "[{http_status_code 200} {content-type a} {x-two a, b?}]" {
		t.Error(got)
	}
	for i := range 200 {
		h.Set(fmt.Sprintf("A-%d", i), strings.Repeat("x", 50))
	}
	if n := len(Meta(200, h)); n != 64 {
		t.Errorf("%d values", n)
	}
}

func TestPauses(t *testing.T) {
	plan := &Plan{of: &streams.HTTPRequest{RetryPeriod: time.Second, MaxRetryBackoff: 5 * time.Second}}
	for n, most := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 2: 4 * time.Second, 3: 5 * time.Second, 1000: 5 * time.Second} {
		for range 100 {
			if pause := plan.Pause(n, 0); pause < most/2 || pause > most {
				t.Fatalf("attempt %d: %v", n, pause)
			}
		}
	}
	if pause := plan.Pause(0, time.Minute); pause != time.Minute {
		t.Error(pause)
	}
}

func TestVaries(t *testing.T) {
	for _, c := range []struct {
		of   streams.HTTPRequest
		want bool
	}{
		{streams.HTTPRequest{URL: "http://a", Body: "x", Headers: []streams.Header{{Name: "a", Value: "b"}}}, false},
		{streams.HTTPRequest{URL: "http://a/${! this }"}, true},
		{streams.HTTPRequest{URL: "http://a", Body: "${! this }"}, true},
		{streams.HTTPRequest{URL: "http://a", Headers: []streams.Header{{Name: "a", Value: "${! this }"}}}, true},
	} {
		plan, err := New(&c.of, site(free.DialContext))
		if err != nil || plan.Varies() != c.want {
			t.Errorf("%+v: %v", c.of, err)
		}
	}
}
