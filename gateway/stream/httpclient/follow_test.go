package httpclient

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

func followOf(address string) *streams.HTTPPoll {
	c := pollOf(address)
	c.Stream = true
	return c
}

// pieces serves a response in pieces, each in a packet of its own, and goes on until the
// client leaves if hold is set.
func pieces(w http.ResponseWriter, r *http.Request, kind string, hold bool, all ...string) {
	w.Header().Set("Content-Type", kind)
	w.Header()["Date"] = nil
	for _, piece := range all {
		_, _ = io.WriteString(w, piece)
		_ = http.NewResponseController(w).Flush()
		time.Sleep(time.Millisecond)
	}
	if hold {
		<-r.Context().Done()
	}
}

func want(t *testing.T, f *flow, bodies ...string) (last *stream.Message) {
	t.Helper()
	for _, body := range bodies {
		one := next(t, f.got)
		if string(one.Body) != body {
			t.Errorf("got %q, want %q", one.Body, body)
		}
		last = one.Message
	}
	return last
}

func TestEachLineIsAMessage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pieces(w, r, "application/x-ndjson", false, `{"a"`, ":1}\n{\"a\":2}", "\r", "\n\n\r\n", strings.Repeat("x", 9000), strings.Repeat("y", 9000)+"\nb\rc\n", "last")
	}))
	t.Cleanup(server.Close)
	at, _ := siteFor(t)
	f := newFlow(true)
	c := followOf(server.URL)
	c.MaxResponseBytes = 10000
	started(t, c, at, f)
	last := want(t, f, `{"a":1}`, `{"a":2}`, "b\rc", "last", `{"a":1}`) // the server is called again
	if last.Value("content-type") != "application/x-ndjson" || at.State.Errors[stream.Permanent].Load() == 0 {
		t.Errorf("%+v: the line that is too long is not counted", last)
	}
}

func TestEachEventIsAMessage(t *testing.T) {
	type call struct{ id, accept string }
	calls := make(chan call, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls <- call{r.Header.Get("Last-Event-ID"), r.Header.Get("Accept")}
		switch r.Header.Get("Last-Event-ID") {
		case "":
			pieces(w, r, "text/event-stream; charset=utf-8", false, "\xef\xbb", "\xbf: hello\n\nevent: or", "der\r", "\nid: 7\r\ndata: {\r", "\ndata:", "}\r\n", "\r", "\ndata: 2\n", "\ndata: half of an event")
		case "7":
			pieces(w, r, "text/event-stream", true, "event: none\n\ndata: 3\r\rid: a\x01b\ndata: 4\r\rdata: "+strings.Repeat("x", 200)+"\r\rid\r\ndata: 5\r\n\r\n")
		}
	}))
	t.Cleanup(server.Close)
	at, _ := siteFor(t)
	f := newFlow(true)
	c := followOf(server.URL)
	c.MaxResponseBytes = 100
	started(t, c, at, f)
	const (
		first  = "[{http_status_code 200} {content-type text/event-stream; charset=utf-8}"
		second = "[{http_status_code 200} {content-type text/event-stream}"
	)
	for _, one := range [][2]string{
		{"{\n}", first + " {http_client_event order} {http_client_event_id 7}]"},
		{"2", first + " {http_client_event_id 7}]"},
		{"3", second + " {http_client_event_id 7}]"},
		{"4", second + " {http_client_event_id a\x01b}]"},
		{"5", second + "]"},
	} {
		if got := next(t, f.got); string(got.Body) != one[0] || fmt.Sprint(got.Meta) != one[1] {
			t.Errorf("got %q with %v, want %q", got.Body, got.Meta, one)
		}
	}
	if first, second := next(t, calls), next(t, calls); first.id != "" || second.id != "7" || first.accept != "text/event-stream, */*;q=0.5" {
		t.Errorf("calls %v, %v", first, second)
	}
	if at.State.Errors[stream.Permanent].Load() != 1 {
		t.Error("the event that is too large is not counted")
	}
}

// Without demand a stream is not read, and what was read is kept.
func TestAStreamWaitsForDemand(t *testing.T) {
	arrived := make(chan struct{}, 9)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		pieces(w, r, "text/plain", true, "1\n2\n3\n")
	}))
	t.Cleanup(server.Close)
	at, _ := siteFor(t)
	f := newFlow(false)
	in := started(t, followOf(server.URL), at, f).(*input)
	if len(arrived) > 0 || in.isCalling() {
		t.Error("the server is called without demand")
	}
	f.full.Lock()
	f.demand.Set(true)
	next(t, f.asked)
	next(t, f.asked)
	f.demand.Set(false)
	f.full.Unlock()
	in.pass.pump()
	in.pass.mu.Lock()
	if n := len(in.pass.held); n != 1 || len(f.got) != 0 {
		t.Errorf("%d messages are held and %d passed on without demand", n, len(f.got))
	}
	in.pass.mu.Unlock()
	f.demand.Set(true)
	want(t, f, "1", "2", "3")
	in.Stop(t.Context())
	noGoroutines(t)
}

func TestStopEndsAStreamThatWaitsForDemand(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { pieces(w, r, "text/plain", true, "1\n") }))
	t.Cleanup(server.Close)
	at, _ := siteFor(t)
	f := newFlow(true)
	f.full.Lock()
	in := started(t, followOf(server.URL), at, f)
	next(t, f.asked)
	in.Stop(t.Context())
	noGoroutines(t)
	f.full.Unlock()
}

func TestStreamsThatAreNotBegunAgain(t *testing.T) {
	for name, c := range map[string]struct {
		serve func(w http.ResponseWriter, r *http.Request)
		phase stream.Phase
		calls int32
		got   int
	}{
		"the end":   {func(w http.ResponseWriter, r *http.Request) { pieces(w, r, "text/plain", false, "1\n") }, stream.Stopped, 1, 1},
		"refused":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, stream.Failing, 1, 0},
		"exhausted": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, stream.Failing, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				c.serve(w, r)
			}))
			t.Cleanup(server.Close)
			at, _ := siteFor(t)
			f := newFlow(true)
			conf := followOf(server.URL)
			conf.Reconnect, conf.Retries = false, 2
			in := started(t, conf, at, f).(*input)
			eventually(t, "the end", func() bool {
				in.mu.Lock()
				defer in.mu.Unlock()
				return in.ended && !in.calling
			})
			f.demand.Set(false)
			f.demand.Set(true)
			if phase, _ := at.State.Phase(); phase != c.phase || calls.Load() != c.calls || len(f.got) != c.got {
				t.Errorf("phase %s, %d calls, %d messages", phase, calls.Load(), len(f.got))
			}
			in.mu.Lock()
			defer in.mu.Unlock()
			if in.timer != nil {
				t.Error("it is called again")
			}
		})
	}
}

func TestAStreamThatBreaksOffIsBegunAgain(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pieces(w, r, "text/plain", false, fmt.Sprintf("%d\nhalf", calls.Add(1)))
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = conn.Close()
		}
	}))
	t.Cleanup(server.Close)
	at, _ := siteFor(t)
	f := newFlow(true)
	started(t, followOf(server.URL), at, f)
	want(t, f, "1", "2", "3")
	if _, err := at.State.Last(); err == nil || !strings.HasSuffix(err.Error(), "the response broke off: the connection was closed") {
		t.Errorf("%v", err)
	}
}

func linesOf(from io.Reader, limit int) (all []string) {
	l := &lines{from: bufio.NewReaderSize(from, 16), limit: limit}
	for {
		line, _, err := l.next()
		switch {
		case errors.Is(err, errTooLarge):
			all = append(all, "!")
		case err != nil:
			return append(all, err.Error())
		default:
			all = append(all, string(line))
		}
	}
}

func TestLines(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  `["EOF"]`,
		"a":                                 `["a" "EOF"]`,
		"a\n":                               `["a" "EOF"]`,
		"a\r\nb\n\n":                        `["a" "b" "" "EOF"]`,
		"a\rb\r":                            `["a\rb\r" "EOF"]`,
		strings.Repeat("x", 20):             `["xxxxxxxxxxxxxxxxxxxx" "EOF"]`,
		strings.Repeat("x", 20) + "\r\n":    `["xxxxxxxxxxxxxxxxxxxx" "EOF"]`,
		strings.Repeat("x", 21) + "\na":     `["!" "a" "EOF"]`,
		strings.Repeat("x", 99) + "\r\na\n": `["!" "a" "EOF"]`,
		strings.Repeat("x", 99):             `["!" "EOF"]`,
	} {
		if got := fmt.Sprintf("%q", linesOf(strings.NewReader(text), 20)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	broken := io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if got := fmt.Sprintf("%q", linesOf(broken, 20)); got != `["a" "unexpected EOF"]` {
		t.Errorf("%s", got)
	}
}

// However a response is cut into packets, it has the same lines.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\r\nb\n" + strings.Repeat("x", 50) + "\n\nc"))
	f.Fuzz(func(t *testing.T, text []byte) {
		const limit = 20
		whole := linesOf(bytes.NewReader(text), limit)
		bit := linesOf(iotest.OneByteReader(bytes.NewReader(text)), limit)
		if fmt.Sprintf("%q", whole) != fmt.Sprintf("%q", bit) {
			t.Fatalf("%q at once, %q by byte", whole, bit)
		}
		for _, line := range whole {
			if len(line) > limit || strings.Contains(line, "\n") {
				t.Fatalf("a line %q", line)
			}
		}
		if n := bytes.Count(text, []byte("\n")); len(whole) != n+1 && len(whole) != n+2 {
			t.Fatalf("%d lines of %d", len(whole)-1, n)
		}
	})
}
