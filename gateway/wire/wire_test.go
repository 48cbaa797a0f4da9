package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// echo answers with what it understood of each request, so that a test sees
// how the bytes it sent were framed.
type echo struct {
	readBody bool
	seen     chan string
}

func (e *echo) Handle(call *Call) {
	var body []byte
	switch {
	case call.Stream == nil:
		body = call.Body
	case e.readBody:
		b, err := io.ReadAll(call.Stream)
		body = b
		if err != nil {
			body = fmt.Appendf(b, " error: %v", err)
		}
	}
	if e.seen != nil {
		e.seen <- fmt.Sprintf("%s %s", call.Method, call.Path)
	}
	call.Answer.Status = 200
	call.Answer.Append("X-Path", call.Path)
	call.Answer.Body = fmt.Appendf(nil, "%s %s?%s host=%s body=%q", call.Method, call.Path, call.Query, call.Host, body)
	if call.IsHead() {
		call.Answer.NoBody, call.Answer.Length = true, int64(len(call.Answer.Body))
	}
}

func (e *echo) Refuse(call *Call, fault *Fault) {
	call.Ctx().SetStatusCode(fault.Status)
	call.Ctx().SetBodyString(fault.Text)
}

func testConfig() Config {
	return Config{
		MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 1 << 20,
		ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 30 * time.Second,
	}
}

// start serves h on loopback until the test ends.
func start(t testing.TB, conf Config, h Handler) (*Server, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(conf, h, log.New(io.Discard, "", 0))
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
		if err := <-done; !errors.Is(err, ErrStopped) {
			t.Errorf("Serve returned %v", err)
		}
	})
	return s, ln.Addr().String()
}

// exchange sends raw bytes and returns everything until the server closes,
// after it has seen the client's end.
func exchange(t testing.TB, addr, raw string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	_ = c.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("after %q: %v", got, err)
	}
	return string(got)
}

// answers splits what a server sent into its answers.
func answers(t testing.TB, raw, method string) (out []string) {
	t.Helper()
	br := bufio.NewReader(strings.NewReader(raw))
	for {
		if _, err := br.Peek(1); err != nil {
			return out
		}
		resp, err := http.ReadResponse(br, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%v in %q", err, raw)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("%v in %q", err, raw)
		}
		out = append(out, fmt.Sprintf("%d %s", resp.StatusCode, body))
	}
}

func TestFramingIsReadOneWayOnly(t *testing.T) {
	_, addr := start(t, testConfig(), &echo{readBody: true})
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, c := range []struct{ name, raw, want string }{
		{"plain", "GET /x?q=1 HTTP/1.1\r\nHost: a\r\n\r\n", `200 GET /x?q=1 host=a body=""`},
		{"length", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", `200 POST /x? host=a body="abc"`},
		{"chunked", "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;e=1\r\nabc\r\n0\r\nTrail: er\r\n\r\n", `200 POST /x? host=a body="abc"`},
		{"length and chunked", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, "400 more than one body length"},
		{"chunked and length", "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n" + smuggled, "400 more than one body length"},
		{"GET with both", "GET /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n" + smuggled, "400 more than one body length"},
		{"two lengths", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", "400 more than one body length"},
		{"same length twice", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", "400 more than one body length"},
		{"list of lengths", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc", "400 content length is not a valid Integer"},
		{"signed length", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc", "400 content length is not a valid Integer"},
		{"empty length", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\nabc", "400 content length is not a valid Integer"},
		{"space before colon", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length : 3\r\n\r\nabc", "400 malformed header name"},
		{"folded line", "POST /x HTTP/1.1\r\nHost: a\r\nX: a\r\n Content-Length: 3\r\n\r\nabc", "400 folded header lines are not accepted"},
		{"bare LF", "POST /x HTTP/1.1\r\nHost: a\nContent-Length: 3\r\n\r\nabc", "400 a line ends without CRLF"},
		{"bare CR in a value", "GET /x HTTP/1.1\r\nHost: a\r\nX: a\rContent-Length: 3\r\n\r\nabc", "400 malformed header value"},
		{"NUL in a value", "GET /x HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n", "400 malformed header value"},
		{"coding behind chunked", "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", "501 transfer coding not supported, use chunked"},
		{"disguised chunked", "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "501 transfer coding not supported, use chunked"},
		{"chunked twice", "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 more than one body length"},
		{"chunked in HTTP/1.0", "POST /x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 Transfer-Encoding in an HTTP/1.0 request"},
		{"no host", "GET /x HTTP/1.1\r\n\r\n", "400 one Host header is required"},
		{"two hosts", "GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400 one Host header is required"},
		{"host with a path", "GET /x HTTP/1.1\r\nHost: a/b\r\n\r\n", "400 malformed Host header"},
		{"absolute form", "GET http://a/x?y HTTP/1.1\r\nHost: a\r\n\r\n", `200 GET /x?y host=a body=""`},
		{"absolute form of another host", "GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n", "400 request target and Host name different hosts"},
		{"space in the target", "GET /x y HTTP/1.1\r\nHost: a\r\n\r\n", "400 malformed request line"},
		{"byte above ASCII in the target", "GET /x\xff HTTP/1.1\r\nHost: a\r\n\r\n", "400 malformed request target"},
		{"later version", "GET /x HTTP/2.0\r\nHost: a\r\n\r\n", "505 HTTP version not supported, use HTTP/1.1"},
		{"connect", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", "405 CONNECT is not served here"},
		{"other expectation", "POST /x HTTP/1.1\r\nHost: a\r\nExpect: magic\r\nContent-Length: 1\r\n\r\na", "417 only 100-continue can be expected"},
		{"leading empty line", "\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n", `200 GET /x? host=a body=""`},
		{"body above the limit", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n" + smuggled, "413 request body too large"},
		{"long URL", "GET /" + strings.Repeat("x", 9<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n", "414 request URL too long"},
		{"URL longer than any head", "GET /" + strings.Repeat("x", 20<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n", "414 request URL too long"},
		{"large head", "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", "431 request header too large"},
		{"many headers", "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 100) + "\r\n", "431 too many header lines"},
		{"chunk size is not hex", "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n", `200 POST /x? host=a body=" error: malformed chunked request body"`},
		{"chunk size overflows", "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000003\r\nabc\r\n0\r\n\r\n", `200 POST /x? host=a body=" error: malformed chunked request body"`},
		{"chunk size of two words", "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3 3\r\nabc\r\n0\r\n\r\n", `200 POST /x? host=a body=" error: malformed chunked request body"`},
		{"chunk ends with LF", "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", `200 POST /x? host=a body=" error: malformed chunked request body"`},
		{"chunk longer than said", "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", `200 POST /x? host=a body="abc error: malformed chunked request body"`},
		{"chunks above the limit", "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", `200 POST /x? host=a body=" error: request body too large"`},
		{"body cut short", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\nabc", `200 POST /x? host=a body="abc error: unexpected EOF"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := answers(t, exchange(t, addr, c.raw), "GET")
			if len(got) != 1 || got[0] != c.want {
				t.Errorf("sent %.200q\n got %q\nwant %q", c.raw, got, c.want)
			}
		})
	}
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	_, addr := start(t, testConfig(), &echo{readBody: true})
	raw := "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n" +
		"POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi" +
		"POST /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nho\r\n0\r\n\r\n" +
		"GET /4 HTTP/1.1\r\nHost: a\r\n\r\n"
	got := strings.Join(answers(t, exchange(t, addr, raw), "GET"), "\n")
	want := strings.Join([]string{
		`200 GET /1? host=a body=""`, `200 POST /2? host=a body="hi"`,
		`200 POST /3? host=a body="ho"`, `200 GET /4? host=a body=""`,
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestUnreadBodyNeverBecomesTheNextRequest(t *testing.T) {
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	hidden := strings.Repeat(smuggled, 1000)
	for name, raw := range map[string]string{
		"length":   fmt.Sprintf("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(hidden), hidden),
		"chunked":  fmt.Sprintf("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden),
		"continue": fmt.Sprintf("POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n%s", len(hidden), hidden),
		"small":    fmt.Sprintf("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
		"partly":   "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n" + smuggled,
	} {
		t.Run(name, func(t *testing.T) {
			h := &echo{seen: make(chan string, 2000)}
			_, addr := start(t, testConfig(), h)
			got := answers(t, exchange(t, addr, raw), "GET")
			if len(got) != 1 || len(h.seen) != 1 {
				t.Fatalf("%d answers, %d requests seen: %q", len(got), len(h.seen), got)
			}
		})
	}
}

func TestContinueIsSentWhenTheBodyIsWanted(t *testing.T) {
	_, addr := start(t, testConfig(), &echo{readBody: true})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
	br := bufio.NewReader(c)
	if line, _ := br.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("got %q", line)
	}
	fmt.Fprint(c, "abc")
	_, _ = br.ReadString('\n')
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(resp.Body); !bytes.Contains(b, []byte(`"abc"`)) {
		t.Errorf("got %q", b)
	}
}

func TestOldAndClosingClients(t *testing.T) {
	_, addr := start(t, testConfig(), &echo{})
	for _, c := range []struct{ raw, header string }{
		{"GET / HTTP/1.0\r\n\r\n", "Connection: close"},
		{"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "Connection: keep-alive"},
		{"GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n", "Connection: close"},
	} {
		got := exchange(t, addr, c.raw)
		if strings.Count(got, "HTTP/1.1 200") != 1 || !strings.Contains(got, c.header+"\r\n") {
			t.Errorf("%q: got %q, want one answer with %q", c.raw, got, c.header)
		}
	}
}

func TestHeadHasTheLengthButNoBody(t *testing.T) {
	_, addr := start(t, testConfig(), &echo{})
	got := exchange(t, addr, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
	if !strings.HasSuffix(got, "Content-Length: 22\r\n\r\n") {
		t.Errorf("got %q", got)
	}
}

func TestSlowHeadIsTimedOut(t *testing.T) {
	conf := testConfig()
	conf.ReadTimeout = 50 * time.Millisecond
	_, addr := start(t, conf, &echo{})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHo")
	_ = c.SetReadDeadline(time.Now().Add(60 * time.Second))
	got, err := io.ReadAll(c)
	if err != nil || !bytes.HasPrefix(got, []byte("HTTP/1.1 408")) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestShutdownEndsIdleConnectionsAndLetsCallsFinish(t *testing.T) {
	h := &holding{entered: make(chan struct{}), leave: make(chan struct{})}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(testConfig(), h, log.New(io.Discard, "", 0))
	go func() { _ = s.Serve(ln) }()
	idle, _ := net.Dial("tcp", ln.Addr().String())
	busy, _ := net.Dial("tcp", ln.Addr().String())
	fmt.Fprint(busy, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-h.entered
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(context.Background()) }()
	if n, err := idle.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("idle connection: %d, %v", n, err)
	}
	close(h.leave)
	got, _ := io.ReadAll(busy)
	if !bytes.Contains(got, []byte("Connection: close\r\n")) || !bytes.HasSuffix(got, []byte("done")) {
		t.Errorf("call in flight got %q", got)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

type holding struct{ entered, leave chan struct{} }

func (h *holding) Handle(call *Call) {
	h.entered <- struct{}{}
	<-h.leave
	call.Answer.Status, call.Answer.Body = 200, []byte("done")
}
func (h *holding) Refuse(*Call, *Fault) {}

func TestConnectionLimitsTurnAway(t *testing.T) {
	conf := testConfig()
	conf.MaxConnsPerIP = 1
	s, addr := start(t, conf, &echo{})
	first, _ := net.Dial("tcp", addr)
	defer first.Close()
	fmt.Fprint(first, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(first), nil); err != nil {
		t.Fatal(err)
	}
	second, _ := net.Dial("tcp", addr)
	defer second.Close()
	resp, err := http.ReadResponse(bufio.NewReader(second), nil)
	if err != nil || resp.StatusCode != 503 {
		t.Fatalf("%v, %v", resp, err)
	}
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Error(err)
	}
	if s.Stats().Refused != 1 {
		t.Errorf("stats %+v", s.Stats())
	}
}
