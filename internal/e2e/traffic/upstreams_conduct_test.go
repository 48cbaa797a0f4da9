package traffic

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// conduct is how an upstream answers the first request that it gets, and what
// has to become of it. Every further request it answers as it should.
type conduct struct {
	name   string
	method string // GET when empty
	body   string // of the request, with its framing; none when empty

	pieces []string       // the answer, written one after the other
	then   func(net.Conn) // done behind it; nil: the connection serves on
	later  func(net.Conn) // done once the client has the answer and the connection idles

	status int
	reason string // of a refusal
	want   string // body
	cut    bool   // the client sees that it is not complete
	again  bool   // the connection serves the next request too
	either bool   // it may, or may not
	absent []string
}

const (
	good      = "HTTP/1.1 200 OK\r\n"
	goodHello = good + "Content-Length: 5\r\n\r\nhello"
	inChunks  = good + "Transfer-Encoding: chunked\r\n\r\n"
)

func ends(c net.Conn)   { _ = c.Close() }
func resets(c net.Conn) { reset(plainConn(c)) }

// silent holds the connection until the other side gives it up.
func silent(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// plainConn is what lies below TLS, or c.
func plainConn(c net.Conn) net.Conn {
	if secure, ok := c.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return c
}

func writes(text string) func(net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, text) }
}

// stuck writes one text for as long as it is taken.
func stuck(text string) func(net.Conn) {
	return func(c net.Conn) {
		for range 1 << 20 / len(text) {
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
		silent(c)
	}
}

// sound is what is passed on as if nothing were the matter.
func sound() []conduct {
	one := func(name string, pieces ...string) conduct {
		return conduct{name: name, pieces: pieces, status: 200, want: "hello", again: true}
	}
	with := func(c conduct, change func(*conduct)) conduct { change(&c); return c }
	once := func(c *conduct) { c.again = false }
	empty := func(c *conduct) { c.want = "" }
	return []conduct{
		one("plain", goodHello),
		one("byte by byte", strings.Split(goodHello, "")...),
		one("one length twice", good+"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
		one("chunks with extensions", inChunks+"2;a=b\r\nhe\r\n3 ; c=\"d\"\r\nllo\r\n0;e\r\n\r\n"),
		one("chunks byte by byte", strings.Split(inChunks+"5\r\nhello\r\n0\r\n\r\n", "")...),
		with(one("trailers", inChunks+"5\r\nhello\r\n0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n"), func(c *conduct) { c.absent = []string{"X-Sum", "X-Other"} }),
		one("100", "HTTP/1.1 100 Continue\r\n\r\n"+goodHello),
		with(one("103", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", goodHello), func(c *conduct) { c.absent = []string{"Link"} }),
		one("sixteen interim answers", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 16)+goodHello),
		with(one("HEAD", good+"Content-Length: 5\r\n\r\n"), func(c *conduct) { c.method, c.want = "HEAD", "" }),
		with(one("204", "HTTP/1.1 204 No Content\r\n\r\n"), func(c *conduct) { c.status, c.want = 204, "" }),
		with(one("304 with a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"), func(c *conduct) { c.status, c.want = 304, "" }),
		with(one("no body of length 0", good+"Content-Length: 0\r\n\r\n"), empty),
		with(one("large", good+"Content-Length: 300000\r\n\r\n"+strings.Repeat("x", 300_000)), func(c *conduct) { c.want = strings.Repeat("x", 300_000) }),
		with(one("an event stream", good+"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\n", "0\r\n\r\n"), func(c *conduct) { c.want = "data: a\n\n" }),
		with(one("until the end", good+"\r\nhel", "lo"), func(c *conduct) { c.then, c.again = ends, false }),
		with(one("HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"), once),
		with(one("Connection: close with named lines", good+"Connection: close, X-Named\r\nX-Named: 1\r\nKeep-Alive: x\r\nContent-Length: 5\r\n\r\nhello"), func(c *conduct) {
			c.again, c.absent = false, []string{"X-Named", "Keep-Alive"}
		}),
		with(one("a length beside chunks", good+"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), once),
		with(one("bytes behind the answer", goodHello+stolen), once),
		with(one("bytes behind chunks", inChunks+"5\r\nhello\r\n0\r\n\r\n"+stolen), once),
		with(one("204 with a body", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"), func(c *conduct) { c.status, c.want, c.again = 204, "", false }),
		with(one("HEAD with a body", goodHello), func(c *conduct) { c.method, c.want, c.again = "HEAD", "", false }),
		with(one("an answer nobody asked for on an idle connection", goodHello), func(c *conduct) { c.later, c.again = writes(stolen), false }),
		with(one("junk on an idle connection", goodHello), func(c *conduct) { c.later, c.again = writes("\r\n"), false }),
		with(one("a half-closed idle connection", goodHello), func(c *conduct) { c.later, c.again = func(c net.Conn) { _ = halfClose(c) }, false }),
		with(one("a closed idle connection", goodHello), func(c *conduct) { c.later, c.again = ends, false }),
		with(one("a reset idle connection", goodHello), func(c *conduct) { c.later, c.again = resets, false }),
		with(one("an answer before the body", "HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\n\r\nhello"), func(c *conduct) {
			text := strings.Repeat("GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n", 10_000)
			c.method, c.body = "POST", fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(text), text)
			c.status, c.either = 403, true
		}),
	}
}

// unsound is what clients are told was no answer: 502 unless it says otherwise.
func unsound() []conduct {
	one := func(name, text string) conduct {
		return conduct{name: name, pieces: []string{text}, status: 502, reason: "upstream_malformed"}
	}
	line := func(name, line string) conduct { return one(name, good+line+"Content-Length: 5\r\n\r\nhello") }
	breaks := func(name, text string, how func(net.Conn)) conduct {
		return conduct{name: name, pieces: []string{text}, then: how, status: 502, reason: "upstream_reset"}
	}
	stalls := func(name, text string) conduct {
		return conduct{name: name, pieces: []string{text}, then: silent, status: 504, reason: "upstream_timeout"}
	}
	return []conduct{
		line("two lengths", "Content-Length: 7\r\n"),
		one("list of lengths", good+"Content-Length: 5, 5\r\n\r\nhello"),
		one("signed length", good+"Content-Length: +5\r\n\r\nhello"),
		one("length that overflows", good+"Content-Length: 18446744073709551621\r\n\r\nhello"),
		line("coding beside chunked", "Transfer-Encoding: gzip, chunked\r\n"),
		one("chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
		line("folded line", "X-A: b\r\n\tc\r\n"),
		line("folded length", "X-A: b\r\n Content-Length: 9\r\n"),
		line("space before the colon", "Content-Length : 9\r\n"),
		line("line without a colon", "nonsense\r\n"),
		line("line without a name", ": x\r\n"),
		line("line that ends with LF", "X-A: b\n"),
		line("CR in a line", "X-A: b\rContent-Length: 9\r\n"),
		line("NUL in a line", "X-A: b\x00\r\n"),
		one("other protocol", "SSH-2.0-OpenSSH_9.2p1\r\n"),
		one("HTTP/2", "HTTP/2.0 200 OK\r\n\r\n"),
		one("status of two digits", "HTTP/1.1 20 OK\r\n\r\n"),
		one("101 that was not asked for", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"+stolen),
		one("chunk without a size", inChunks+"\r\nhello\r\n0\r\n\r\n"),
		one("chunk whose size overflows", inChunks+"10000000000000005\r\nhello\r\n0\r\n\r\n"),
		one("chunk longer than its size", inChunks+"4\r\nhello\r\n0\r\n\r\n"),
		{name: "flood of interim answers", then: stuck("HTTP/1.1 100 Continue\r\n\r\n"), status: 502, reason: "upstream_malformed"},
		{name: "head without an end", pieces: []string{good}, then: stuck("X-More: and more of it\r\n"), status: 502, reason: "upstream_malformed"},
		{name: "line without an end", pieces: []string{good}, then: stuck("X-More-and-more-of-it"), status: 502, reason: "upstream_malformed"},
		breaks("nothing", "", ends),
		breaks("reset without an answer", "", resets),
		breaks("part of a head", good+"Content-Le", ends),
		breaks("truncated", good+"Content-Length: 5\r\n\r\nhel", ends),
		breaks("reset within a body", good+"Content-Length: 5\r\n\r\nhel", resets),
		stalls("silence", ""),
		stalls("silence within a head", good+"X-A: "),
		stalls("silence within a body", good+"Content-Length: 5\r\n\r\nhel"),
	}
}

// torn is what clients got a part of, and see that it is one.
func torn() []conduct {
	one := func(name, text, want string, how func(net.Conn)) conduct {
		return conduct{name: name, pieces: []string{text}, then: how, status: 200, want: want, cut: true}
	}
	large := good + "Content-Length: 100000\r\n\r\nhello"
	return []conduct{
		one("truncated, large", large, "hello", ends),
		one("reset within a large body", large, "hello", resets),
		one("silence within a large body", large, "hello", silent),
		one("chunks without an end", inChunks+"5\r\nhello\r\n", "hello", ends),
		one("part of a chunk", inChunks+"9\r\nhello", "hello", ends),
		one("silence between chunks", inChunks+"5\r\nhello\r\n", "hello", silent),
		one("malformed chunk behind a large one", inChunks+"4e20\r\n"+strings.Repeat("a", 20_000)+"XX\r\n", strings.Repeat("a", 20_000), silent),
	}
}

// conducted is an upstream with one conduct.
type conducted struct {
	conduct
	conns    atomic.Int32
	smuggled atomic.Bool   // a body was read as requests
	idle     chan struct{} // takes one when later may be done, and one when it was
}

func (u *conducted) serve(c net.Conn, n int) {
	u.conns.Add(1)
	var none seen
	br := bufio.NewReader(c)
	for first := n == 0; ; first = false {
		req, err := none.readRequest(br)
		if err != nil {
			return
		}
		if strings.Contains(req.path, "smuggled") {
			u.smuggled.Store(true)
		}
		if first {
			early := u.status == 403 // which is said before the body is read
			if !early {
				_, _ = req.drain()
			}
			if u.misbehave(c) {
				return
			}
			if early && req.drainTo(io.Discard) != nil {
				return
			}
			continue
		}
		if _, err := req.drain(); err != nil {
			return
		}
		_, _ = io.WriteString(c, good+"Content-Length: 6\r\n\r\nsecond")
	}
}

// misbehave tells whether the connection is over.
func (u *conducted) misbehave(c net.Conn) bool {
	for _, piece := range u.pieces {
		if _, err := io.WriteString(c, piece); err != nil {
			return true
		}
	}
	if u.then != nil {
		u.then(c)
		return true
	}
	if u.later != nil {
		<-u.idle
		u.later(c)
		u.idle <- struct{}{}
	}
	return false
}

// ways are those to an upstream, which must all behave alike.
var ways = []struct {
	name   string
	with   settings
	secure bool
}{
	{"raw", settings{"upstream.raw_io": "true"}, false},
	{"ordinary", settings{"upstream.raw_io": "false"}, false},
	{"TLS", nil, true},
}

// TestEveryConductOfAnUpstream has a gateway call upstreams that each do one
// thing that is rare, or wrong, and shows what its client sees of it. The next
// request is one that must not be repeated, and is served as it should.
func TestEveryConductOfAnUpstream(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(nil)
	defer secure.Close()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			var all []*conducted
			var apis []object
			for i, c := range append(append(sound(), unsound()...), torn()...) {
				u := &conducted{conduct: c, idle: make(chan struct{})}
				serve, scheme := u.serve, "http://"
				if way.secure {
					serve, scheme = behindTLS(secure.TLS.Certificates[0], u.serve), "https://"
				}
				all = append(all, u)
				apis = append(apis, rig.Transport(rig.APIDef(fmt.Sprint("c", i), scheme+testenv.RawOrigin(t, serve), true),
					object{"response_timeout": 2, "ssl_insecure_skip_verify": true}))
			}
			g := newTraffic(t, way.with, nil, apis...)
			t.Run("conduct", func(t *testing.T) {
				for i, u := range all {
					t.Run(u.name, func(t *testing.T) {
						t.Parallel()
						u.test(t, g.addr, fmt.Sprintf("/c%d/x", i))
					})
				}
			})
		})
	}
}

func behindTLS(cert tls.Certificate, serve func(net.Conn, int)) func(net.Conn, int) {
	return func(c net.Conn, n int) {
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		if s.Handshake() == nil {
			serve(s, n)
			_ = s.Close()
		}
	}
}

func (u *conducted) test(t *testing.T, addr, path string) {
	method, body := u.method, u.body
	if method == "" {
		method = http.MethodGet
	}
	if body == "" {
		body = "\r\n"
	}
	c := connect(t, addr)
	go func() { _, _ = fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: a\r\n%s", method, path, body) }()
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	if reason := resp.Header.Get("X-Sluice-Reason"); resp.StatusCode != u.status || reason != u.reason {
		t.Fatalf("status %d %s, want %d %s", resp.StatusCode, reason, u.status, u.reason)
	}
	if u.reason == "" && string(got) != u.want || (err != nil) != u.cut {
		t.Errorf("%d bytes %.100q, error %v; want %d bytes %.100q, cut %t", len(got), got, err, len(u.want), u.want, u.cut)
	}
	for _, name := range u.absent {
		if resp.Header.Get(name) != "" {
			t.Errorf("%s came through", name)
		}
	}
	if u.later != nil {
		<-time.After(20 * time.Millisecond) // for which it has idled then
		u.idle <- struct{}{}
		<-u.idle
	}
	next := rig.Call(t, http.MethodPost, "http://"+addr+path, object{})
	if next.Status != 200 || next.Body != "second" {
		t.Errorf("the next request: %v", next)
	}
	if u.smuggled.Load() {
		t.Error("a body became requests")
	}
	if again := u.conns.Load() == 1; again != u.again && !u.either {
		t.Errorf("the connection served the next request: %t, want %t", again, u.again)
	}
}
