package upstream

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// answerCase is what an upstream sends, and what becomes of it.
type answerCase struct {
	name   string
	method string   // GET when empty
	send   []string // written one after the other
	close  bool     // the upstream closes behind it

	status int
	reason string
	body   string
	cut    bool // the client sees that the body is not complete
	again  bool // the connection serves the next request too
	lines  map[string]string
}

const ok = "HTTP/1.1 200 OK\r\n"

func bytewise(s string) []string { return strings.Split(s, "") }

var answerCases = []answerCase{
	{name: "length", send: []string{ok + "Content-Length: 5\r\n\r\nhello"}, status: 200, body: "hello", again: true},
	{name: "no body of length 0", send: []string{ok + "Content-Length: 0\r\n\r\n"}, status: 200, again: true},
	{name: "one length twice", send: []string{ok + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"}, status: 200, body: "hello", again: true},
	{name: "in pieces", send: []string{ok, "Content-Le", "ngth: 5\r\n\r", "\nhel", "lo"}, status: 200, body: "hello", again: true},
	{name: "byte by byte", send: bytewise(ok + "Content-Length: 5\r\nX-A: b\r\n\r\nhello"), status: 200, body: "hello", again: true, lines: map[string]string{"X-A": "b"}},
	{name: "HEAD", method: "HEAD", send: []string{ok + "Content-Length: 5\r\n\r\n"}, status: 200, again: true, lines: map[string]string{"Content-Length": "5"}},
	{name: "HEAD without length", method: "HEAD", send: []string{ok + "\r\n"}, status: 200, again: true, lines: map[string]string{"Content-Length": ""}},
	{name: "HEAD with chunks announced", method: "HEAD", send: []string{ok + "Transfer-Encoding: chunked\r\n\r\n"}, status: 200, again: true},
	{name: "HEAD with a body all the same", method: "HEAD", send: []string{ok + "Content-Length: 5\r\n\r\nhello"}, status: 200},
	{name: "204", send: []string{"HTTP/1.1 204 No Content\r\n\r\n"}, status: 204, again: true},
	{name: "204 with a length", send: []string{"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n"}, status: 204, lines: map[string]string{"Content-Length": ""}},
	{name: "304 with a length", send: []string{"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nEtag: x\r\n\r\n"}, status: 304, again: true, lines: map[string]string{"Content-Length": "5", "Etag": "x"}},
	{name: "early hints", send: []string{strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 10) + ok + "Content-Length: 5\r\n\r\nhello"}, status: 200, body: "hello", again: true, lines: map[string]string{"Link": ""}},
	{name: "too many early hints", send: []string{strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 40) + ok + "Content-Length: 5\r\n\r\nhello"}, status: 502, reason: "upstream_malformed"},
	{name: "early hints that end twice", send: []string{"HTTP/1.1 103 Early Hints\r\n\nHTTP/1.1 103 x\r\n\r\n" + ok + "Content-Length: 5\r\n\r\nhello"}, status: 502, reason: "upstream_malformed"},
	{name: "continue that nobody asked for", send: []string{"HTTP/1.1 100 Continue\r\n\r\n", ok + "Content-Length: 5\r\n\r\nhello"}, status: 200, body: "hello", again: true},
	{name: "switching protocols", send: []string{"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"}, status: 502, reason: "upstream_malformed"},
	{name: "chunks", send: []string{ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"}, status: 200, body: "hello world", again: true},
	{name: "chunks in pieces", send: []string{ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", "lo\r", "\n6\r\n world\r\n0\r\n", "\r\n"}, status: 200, body: "hello world", again: true},
	{name: "chunks byte by byte", send: bytewise(ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n"), status: 200, body: "hello", again: true},
	{name: "chunk extensions", send: []string{ok + "Transfer-Encoding: chunked\r\n\r\n5;a=b; c=\"d\"\r\nhello\r\n000 ; x\r\n\r\n"}, status: 200, body: "hello", again: true},
	{name: "trailers", send: []string{ok + "Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\nX-B: 2\r\n\r\n"}, status: 200, body: "hello", again: true, lines: map[string]string{"X-Sum": "", "Trailer": ""}},
	{name: "chunks and a length", send: []string{ok + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"}, status: 200, body: "hello"},
	{name: "until close", send: []string{ok + "\r\nhello", " world"}, close: true, status: 200, body: "hello world"},
	{name: "until close, empty", send: []string{ok + "\r\n"}, close: true, status: 200},
	{name: "Connection: close", send: []string{ok + "Connection: close\r\nContent-Length: 5\r\n\r\nhello"}, status: 200, body: "hello"},
	{name: "close within a list", send: []string{ok + "Connection: X-Drop, Close\r\nX-Drop: 1\r\nX-Keep: 2\r\nContent-Length: 5\r\n\r\nhello"}, status: 200, body: "hello", lines: map[string]string{"X-Drop": "", "X-Keep": "2"}},
	{name: "HTTP/1.0", send: []string{"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"}, status: 200, body: "hello"},
	{name: "no phrase", send: []string{"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"}, status: 200, again: true},
	{name: "own phrase", send: []string{"HTTP/1.1 299 Rather Fine\r\nContent-Length: 2\r\n\r\nhi"}, status: 299, body: "hi", again: true},
	{name: "status unknown", send: []string{"HTTP/1.1 799 Odd\r\nContent-Length: 2\r\n\r\nhi"}, status: 799, body: "hi", again: true},

	{name: "two lengths", send: []string{ok + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"}, status: 502, reason: "upstream_malformed"},
	{name: "list of lengths", send: []string{ok + "Content-Length: 5, 5\r\n\r\nhello"}, status: 502, reason: "upstream_malformed"},
	{name: "signed length", send: []string{ok + "Content-Length: +5\r\n\r\nhello"}, status: 502, reason: "upstream_malformed"},
	{name: "negative length", send: []string{ok + "Content-Length: -5\r\n\r\nhello"}, status: 502, reason: "upstream_malformed"},
	{name: "empty length", send: []string{ok + "Content-Length: \r\n\r\nhello"}, status: 502, reason: "upstream_malformed"},
	{name: "huge length", send: []string{ok + "Content-Length: 99999999999999999999\r\n\r\nhello"}, status: 502, reason: "upstream_malformed"},
	{name: "unknown coding", send: []string{ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"}, status: 502, reason: "upstream_malformed"},
	{name: "chunked twice", send: []string{ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}, status: 502, reason: "upstream_malformed"},
	{name: "chunks in HTTP/1.0", send: []string{"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}, status: 502, reason: "upstream_malformed"},
	{name: "folded line", send: []string{ok + "X-A: b\r\n c\r\nContent-Length: 0\r\n\r\n"}, status: 502, reason: "upstream_malformed"},
	{name: "space before the colon", send: []string{ok + "Content-Length : 5\r\n\r\nhello"}, status: 502, reason: "upstream_malformed"},
	{name: "no colon", send: []string{ok + "Nonsense\r\nContent-Length: 0\r\n\r\n"}, status: 502, reason: "upstream_malformed"},
	{name: "bare LF", send: []string{"HTTP/1.1 200 OK\nContent-Length: 0\n\n"}, status: 502, reason: "upstream_malformed"},
	{name: "bare LF in the middle", send: []string{ok + "X-A: b\nX-B: c\r\nContent-Length: 0\r\n\r\n"}, status: 502, reason: "upstream_malformed"},
	{name: "bare CR", send: []string{ok + "X-A: b\rX-B: c\r\nContent-Length: 0\r\n\r\n"}, status: 502, reason: "upstream_malformed"},
	{name: "NUL", send: []string{ok + "X-A: b\x00\r\nContent-Length: 0\r\n\r\n"}, status: 502, reason: "upstream_malformed"},
	{name: "not HTTP", send: []string{"220 mail.test ESMTP\r\n"}, status: 502, reason: "upstream_malformed"},
	{name: "HTTP/2", send: []string{"HTTP/2 200 OK\r\nContent-Length: 0\r\n\r\n"}, status: 502, reason: "upstream_malformed"},
	{name: "short status", send: []string{"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n"}, status: 502, reason: "upstream_malformed"},
	{name: "long status", send: []string{"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n"}, status: 502, reason: "upstream_malformed"},
	{name: "huge head", send: []string{ok + "X-A: " + strings.Repeat("a", 70<<10) + "\r\nContent-Length: 0\r\n\r\n"}, status: 502, reason: "upstream_malformed"},
	{name: "many lines of Connection", send: []string{ok + strings.Repeat("Connection: x\r\n", 9) + "Content-Length: 0\r\n\r\n"}, status: 502, reason: "upstream_malformed"},
	{name: "nothing", close: true, status: 502, reason: "upstream_reset"},
	{name: "half a head", send: []string{ok + "Content-Len"}, close: true, status: 502, reason: "upstream_reset"},
	{name: "truncated", send: []string{ok + "Content-Length: 5\r\n\r\nhel"}, close: true, status: 502, reason: "upstream_reset"},
	{name: "malformed chunk at once", send: []string{ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\n"}, status: 502, reason: "upstream_malformed"},

	{name: "truncated, large", send: []string{ok + "Content-Length: 100000\r\n\r\nhel", "lo"}, close: true, status: 200, body: "hello", cut: true},
	{name: "truncated chunks", send: []string{ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhel"}, close: true, status: 200, body: "hel", cut: true},
	{name: "chunks without an end", send: []string{ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"}, close: true, status: 200, body: "hello", cut: true},
	{name: "malformed chunk later", send: []string{ok + "Transfer-Encoding: chunked\r\n\r\n4e20\r\n" + strings.Repeat("a", 20000) + "XX\r\n"}, status: 200, body: strings.Repeat("a", 20000), cut: true},
	{name: "bytes behind the answer", send: []string{ok + "Content-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"}, status: 200, body: "hello"},
	{name: "bytes behind the chunks", send: []string{ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"}, status: 200},
	{name: "large head", send: []string{ok + "X-A: " + strings.Repeat("a", 40<<10) + "\r\nContent-Length: 5\r\n\r\nhello"}, status: 200, body: "hello", again: true},
}

func TestAnswersOfEveryKind(t *testing.T) {
	routes(t, func(t *testing.T, r route) {
		for _, c := range answerCases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.test(t, r)
			})
		}
	})
}

func (c *answerCase) test(t *testing.T, r route) {
	var conns atomic.Int32
	g := r.gate(t, func(conn net.Conn, n int) {
		conns.Add(1)
		br := bufio.NewReader(conn)
		if n > 0 {
			for readRequest(br) != "" {
				_, _ = io.WriteString(conn, ok+"Content-Length: 6\r\n\r\nsecond")
			}
			return
		}
		if readRequest(br) == "" {
			return
		}
		for _, piece := range c.send {
			if _, err := io.WriteString(conn, piece); err != nil {
				return
			}
		}
		if c.close {
			return
		}
		for readRequest(br) != "" {
			_, _ = io.WriteString(conn, ok+"Content-Length: 6\r\n\r\nsecond")
		}
	}, nil)
	method := c.method
	if method == "" {
		method = "GET"
	}
	cl := g.dial()
	cl.send(method + " /x HTTP/1.1\r\nHost: gate.test\r\n\r\n")
	a := cl.read(method)
	if a.StatusCode != c.status || a.Header.Get("X-Reason") != c.reason {
		t.Fatalf("got %v, want %d %s", a, c.status, c.reason)
	}
	if c.reason == "" && a.body != c.body || (a.err != nil) != c.cut {
		t.Errorf("body %q, error %v; want %q, cut %t", a.body, a.err, c.body, c.cut)
	}
	for name, want := range c.lines {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if c.cut {
		return
	}
	if b := cl.get("/again"); b.StatusCode != 200 || b.body != "second" {
		t.Errorf("next request: %v", b)
	}
	if again := conns.Load() == 1; again != c.again {
		t.Errorf("the connection was used again: %t, want %t", again, c.again)
	}
}

func TestAnswerPhraseIsKept(t *testing.T) {
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) {
		readRequest(bufio.NewReader(conn))
		_, _ = io.WriteString(conn, "HTTP/1.1 201 Made It\r\nContent-Length: 0\r\n\r\n")
	}), nil)
	if a := g.get("/"); a.Status != "201 Made It" {
		t.Errorf("status %q", a.Status)
	}
}

func TestAnswerLinesPassUnchanged(t *testing.T) {
	sent := "Set-Cookie: a=1; Path=/\r\nX-odd-Case:  padded \r\nSet-Cookie: b=2\r\nServer: origin\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
	gone := "Keep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nProxy-Connection: x\r\nUpgrade: h2c\r\nTE: x\r\nConnection: keep-alive, x-gone\r\nX-Gone: 1\r\n"
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) {
		readRequest(bufio.NewReader(conn))
		_, _ = io.WriteString(conn, ok+gone+sent+"Content-Length: 2\r\n\r\nhi")
	}), nil)
	c := g.dial()
	c.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	raw, err := io.ReadAll(c.br)
	want := ok + sent + "Content-Length: 2\r\nConnection: close\r\n\r\nhi"
	if err != nil || string(raw) != want {
		t.Errorf("got  %q %v\nwant %q", raw, err, want)
	}
}

func TestOldClientGetsStreamUntilClose(t *testing.T) {
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) {
		readRequest(bufio.NewReader(conn))
		_, _ = io.WriteString(conn, ok+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello")
		_, _ = io.WriteString(conn, "\r\n6\r\n world\r\n0\r\n\r\n")
	}), nil)
	c := g.dial()
	c.send("GET / HTTP/1.0\r\n\r\n")
	a := c.read("GET")
	if a.body != "hello world" || len(a.TransferEncoding) > 0 || !a.Close {
		t.Errorf("got %v, coding %v, close %t", a, a.TransferEncoding, a.Close)
	}
}

func TestEventsReachTheClientAtOnce(t *testing.T) {
	routes(t, func(t *testing.T, r route) {
		seen := make(chan struct{})
		g := r.gate(t, func(conn net.Conn, _ int) {
			readRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, ok+"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
			for i := range 3 {
				_, _ = fmt.Fprintf(conn, "9\r\ndata: %d\n\n\r\n", i)
				<-seen
			}
			_, _ = io.WriteString(conn, "0\r\n\r\n")
		}, nil)
		c := g.dial()
		c.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		for i := range 3 {
			want := fmt.Sprintf("9\r\ndata: %d\n\n\r\n", i)
			var got strings.Builder
			for !strings.HasSuffix(got.String(), want) {
				b, err := c.br.ReadByte()
				if err != nil {
					t.Fatalf("after %q: %v", got.String(), err)
				}
				got.WriteByte(b)
			}
			seen <- struct{}{}
		}
	})
}

func TestSilenceIsATimeout(t *testing.T) {
	for name, partly := range map[string]string{"nothing": "", "part of a head": ok + "Content-", "part of a body": ok + "Content-Length: 5\r\n\r\nhel"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			routes(t, func(t *testing.T, r route) {
				g := r.gate(t, func(conn net.Conn, _ int) {
					br := bufio.NewReader(conn)
					readRequest(br)
					_, _ = io.WriteString(conn, partly)
					readRequest(br) // until it is closed
				}, func(g *gate) { g.conf.ResponseTimeout = 100 * time.Millisecond })
				start := time.Now()
				a := g.get("/")
				if a.StatusCode != 504 || a.Header.Get("X-Reason") != "upstream_timeout" {
					t.Errorf("got %v", a)
				}
				if took := time.Since(start); took < 100*time.Millisecond {
					t.Errorf("given up after %v, want 100 ms", took)
				}
			})
		})
	}
}

func TestStalledStreamIsCut(t *testing.T) {
	routes(t, func(t *testing.T, r route) {
		g := r.gate(t, func(conn net.Conn, _ int) {
			br := bufio.NewReader(conn)
			readRequest(br)
			_, _ = io.WriteString(conn, ok+"Content-Length: 100000\r\n\r\nhello")
			readRequest(br)
		}, func(g *gate) { g.conf.ResponseTimeout = 100 * time.Millisecond })
		if a := g.get("/"); a.StatusCode != 200 || a.body != "hello" || a.err == nil {
			t.Errorf("got %v", a)
		}
	})
}
