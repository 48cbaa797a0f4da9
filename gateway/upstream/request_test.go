package upstream

import (
	"bufio"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// requestCase is a request, and what the upstream is to receive.
type requestCase struct {
	name    string
	path    string // of the target
	raw     string
	trusted bool
	change  func(g *gate)
	prepare func(ex *pipeline.Exchange)
	want    string // HOST is the target's host and port
}

const (
	idLine   = "X-Request-Id: 0123456789abcdef0123456789abcdef\r\n"
	ownLines = "X-Forwarded-For: 127.0.0.1\r\nX-Real-IP: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: gate.test\r\nX-Forwarded-Port: 80\r\n" + idLine
	agent    = "User-Agent: sluice\r\n"
)

var requestCases = []requestCase{
	{name: "simple", raw: "GET /a/b?c=d HTTP/1.1\r\nHost: gate.test\r\n\r\n", want: "GET /a/b?c=d HTTP/1.1\r\nHost: HOST\r\n" + ownLines + agent + "\r\n"},
	{name: "target with path and query", path: "/base/?k=v", raw: "GET /a?c=d HTTP/1.1\r\nHost: gate.test\r\n\r\n", want: "GET /base/a?k=v&c=d HTTP/1.1\r\nHost: HOST\r\n" + ownLines + agent + "\r\n"},
	{name: "escapes stay", raw: "GET /a%2Fb/%7e//x HTTP/1.1\r\nHost: gate.test\r\n\r\n", want: "GET /a%2Fb/%7e//x HTTP/1.1\r\nHost: HOST\r\n" + ownLines + agent + "\r\n"},
	{name: "preserved host", change: func(g *gate) { g.def.Proxy.PreserveHostHeader = true }, raw: "GET / HTTP/1.1\r\nHost: gate.test\r\n\r\n", want: "GET / HTTP/1.1\r\nHost: gate.test\r\n" + ownLines + agent + "\r\n"},
	{
		name: "lines as they are", raw: "GET / HTTP/1.1\r\nHost: gate.test\r\nx-odd-CASE:  v \r\nAccept: a\r\nAccept: b\r\nCookie: c=d; e=f\r\nAuthorization: Bearer x\r\n\r\n",
		want: "GET / HTTP/1.1\r\nHost: HOST\r\nx-odd-CASE:  v \r\nAccept: a\r\nAccept: b\r\nCookie: c=d; e=f\r\nAuthorization: Bearer x\r\n" + ownLines + agent + "\r\n",
	},
	{name: "own user agent", raw: "GET / HTTP/1.1\r\nHost: gate.test\r\nUser-Agent: mine\r\n\r\n", want: "GET / HTTP/1.1\r\nHost: HOST\r\nUser-Agent: mine\r\n" + ownLines + "\r\n"},
	{name: "empty user agent", raw: "GET / HTTP/1.1\r\nHost: gate.test\r\nUser-Agent:\r\n\r\n", want: "GET / HTTP/1.1\r\nHost: HOST\r\nUser-Agent:\r\n" + ownLines + "\r\n"},
	{name: "hop by hop", raw: "GET / HTTP/1.1\r\nHost: gate.test\r\nX-Named: 1\r\nConnection: keep-alive, x-NAMED , X-Other\r\nX-other: 2\r\nX-Otherwise: 3\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nProxy-Authenticate: x\r\n" +
		"Proxy-Authorization: x\r\nTE: trailers\r\nTrailer: x\r\nUpgrade: websocket\r\n\r\n", want: "GET / HTTP/1.1\r\nHost: HOST\r\nX-Otherwise: 3\r\n" + ownLines + agent + "\r\n"},
	{name: "own lines cannot be named away", raw: "GET / HTTP/1.1\r\nHost: gate.test\r\nConnection: X-Real-IP, X-Forwarded-For, Host, X-Request-Id\r\n\r\n", want: "GET / HTTP/1.1\r\nHost: HOST\r\n" + ownLines + agent + "\r\n"},
	{name: "nobody untrusted says where from", raw: "GET / HTTP/1.1\r\nHost: gate.test\r\nX-Forwarded-For: 6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Forwarded-Proto: https\r\nx-forwarded-host: evil\r\n" +
		"X-Forwarded-Port: 6\r\nX-Forwarded-User: root\r\nX-Request-Id: mine\r\n\r\n", want: "GET / HTTP/1.1\r\nHost: HOST\r\n" + ownLines + agent + "\r\n"},
	{
		// Upstreams that make variables of headers read underscores and dashes alike.
		name: "nor in disguise", raw: "GET / HTTP/1.1\r\nHost: gate.test\r\nX_Forwarded_For: 6.6.6.6\r\nX-Real_IP: 6.6.6.6\r\nx_forwarded_user: root\r\nX_Request-Id: 6\r\nX_Tenant: evil\r\nX_Other: 1\r\nX_Real_I: 2\r\n\r\n",
		prepare: func(ex *pipeline.Exchange) { ex.Outgoing.Drop = []string{"X-Tenant"} },
		want:    "GET / HTTP/1.1\r\nHost: HOST\r\nX_Other: 1\r\nX_Real_I: 2\r\n" + ownLines + agent + "\r\n",
	},
	{
		name: "a trusted proxy does", trusted: true, raw: "GET / HTTP/1.1\r\nHost: gate.test\r\nX-Forwarded-For: 203.0.113.9, 10.0.0.1\r\nX-Forwarded-For: 10.0.0.2\r\nX-Real-IP: 6.6.6.6\r\nForwarded: for=203.0.113.9\r\n" +
			"X-Forwarded-Proto: HTTPS\r\nX-Forwarded-Host: shop.test\r\nX-Forwarded-User: root\r\n\r\n",
		want: "GET / HTTP/1.1\r\nHost: HOST\r\nForwarded: for=203.0.113.9\r\nX-Forwarded-User: root\r\nX-Forwarded-For: 203.0.113.9, 10.0.0.1, 10.0.0.2, 127.0.0.1\r\nX-Real-IP: 10.0.0.2\r\n" +
			"X-Forwarded-Proto: HTTPS\r\nX-Forwarded-Host: shop.test\r\nX-Forwarded-Port: 443\r\n" + idLine + agent + "\r\n",
	},
	{
		name: "a trusted proxy's nonsense", trusted: true, raw: "GET / HTTP/1.1\r\nHost: gate.test:8080\r\nX-Forwarded-Proto: gopher\r\nX-Forwarded-Host: a b\r\nX-Forwarded-Port: 99999\r\n\r\n",
		want: "GET / HTTP/1.1\r\nHost: HOST\r\nX-Forwarded-For: 127.0.0.1\r\nX-Real-IP: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: gate.test:8080\r\nX-Forwarded-Port: 8080\r\n" + idLine + agent + "\r\n",
	},
	{
		name: "long chain keeps its end", trusted: true, raw: "GET / HTTP/1.1\r\nHost: gate.test\r\n" + strings.Repeat("X-Forwarded-For: 1.1.1.1\r\n", 20) + "X-Forwarded-For: 2.2.2.2\r\n\r\n",
		want: "GET / HTTP/1.1\r\nHost: HOST\r\nX-Forwarded-For: " + strings.Repeat("1.1.1.1, ", 7) + "2.2.2.2, 127.0.0.1\r\nX-Real-IP: 2.2.2.2\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: gate.test\r\nX-Forwarded-Port: 80\r\n" + idLine + agent + "\r\n",
	},
	{name: "body with a length", raw: "POST / HTTP/1.1\r\nHost: gate.test\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nhi", want: "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Type: text/plain\r\n" + ownLines + agent + "Content-Length: 2\r\n\r\nhi"},
	{name: "empty body", raw: "POST / HTTP/1.1\r\nHost: gate.test\r\n\r\n", want: "POST / HTTP/1.1\r\nHost: HOST\r\n" + ownLines + agent + "Content-Length: 0\r\n\r\n"},
	{name: "chunked body", raw: "POST / HTTP/1.1\r\nHost: gate.test\r\nTransfer-Encoding: chunked\r\n\r\n2;ext\r\nhi\r\n0\r\nTrail: er\r\n\r\n", want: "POST / HTTP/1.1\r\nHost: HOST\r\n" + ownLines + agent + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"},
	{name: "expectation is ours", raw: "POST / HTTP/1.1\r\nHost: gate.test\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi", want: "POST / HTTP/1.1\r\nHost: HOST\r\n" + ownLines + agent + "Content-Length: 2\r\n\r\nhi"},
	{name: "changes of stages", raw: "GET /?token=x HTTP/1.1\r\nHost: gate.test\r\nAuthorization: x\r\nX-A: old\r\n\r\n", prepare: func(ex *pipeline.Exchange) {
		ex.Outgoing.Drop = []string{"Authorization", "X-A", "X-Forwarded-For", "User-Agent"}
		ex.Outgoing.Extra = append(ex.Outgoing.Extra, "X-A: new\r\n"...)
		ex.Outgoing.HasQuery = true
	}, want: "GET / HTTP/1.1\r\nHost: HOST\r\nX-Real-IP: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: gate.test\r\nX-Forwarded-Port: 80\r\n" + idLine + "X-A: new\r\n\r\n"},
	{name: "body of a stage", raw: "POST /a HTTP/1.1\r\nHost: gate.test\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello", prepare: func(ex *pipeline.Exchange) {
		ex.Outgoing.HasBody, ex.Outgoing.Body = true, []byte("hi")
		ex.Outgoing.AlsoDrop("Content-Type")
		ex.Outgoing.Extra = append(ex.Outgoing.Extra, "Content-Type: application/json\r\n"...)
	}, want: "POST /a HTTP/1.1\r\nHost: HOST\r\n" + ownLines + agent + "Content-Type: application/json\r\nContent-Length: 2\r\n\r\nhi"},
	{name: "body of a stage for a streamed one", raw: "PUT /a HTTP/1.1\r\nHost: gate.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", prepare: func(ex *pipeline.Exchange) {
		ex.Outgoing.HasBody, ex.Outgoing.Body = true, []byte("hi")
	}, want: "PUT /a HTTP/1.1\r\nHost: HOST\r\n" + ownLines + agent + "Content-Length: 2\r\n\r\nhi"},
	{name: "no body of a stage", raw: "POST / HTTP/1.1\r\nHost: gate.test\r\nContent-Length: 5\r\n\r\nhello", prepare: func(ex *pipeline.Exchange) {
		ex.Outgoing.HasBody = true
	}, want: "POST / HTTP/1.1\r\nHost: HOST\r\n" + ownLines + agent + "Content-Length: 0\r\n\r\n"},
	{name: "post to the root of the target", path: "/graphql?k=v", raw: "GET /a/b?c=d HTTP/1.1\r\nHost: gate.test\r\n\r\n", prepare: func(ex *pipeline.Exchange) {
		ex.Outgoing.HasBody, ex.Outgoing.Body, ex.Outgoing.Post, ex.Outgoing.Root = true, []byte("hi"), true, true
	}, want: "POST /graphql?k=v HTTP/1.1\r\nHost: HOST\r\n" + ownLines + agent + "Content-Length: 2\r\n\r\nhi"},
	{name: "query of a stage cannot end the line", raw: "GET / HTTP/1.1\r\nHost: gate.test\r\n\r\n", prepare: func(ex *pipeline.Exchange) {
		ex.Outgoing.HasQuery, ex.Outgoing.Query = true, []byte("a=b HTTP/1.1\r\nX: y#z\xff")
	}, want: "GET /?a=b%20HTTP/1.1%0D%0AX:%20y%23z%FF HTTP/1.1\r\nHost: HOST\r\n" + ownLines + agent + "\r\n"},
}

func TestRequestsAsTheUpstreamSeesThem(t *testing.T) {
	for _, c := range requestCases {
		t.Run(c.name, func(t *testing.T) {
			seen := make(chan string, 1)
			target := plainOrigin(t, func(conn net.Conn, _ int) {
				br := bufio.NewReader(conn)
				raw := readRequest(br)
				for strings.Contains(raw, "chunked") && !strings.HasSuffix(raw, "0\r\n\r\n") {
					line, _ := br.ReadString('\n')
					raw += line
				}
				if strings.Contains(raw, "Content-Length: 2") {
					raw += "hi" // which readRequest took
				}
				seen <- raw
				_, _ = io.WriteString(conn, hello)
			})
			host := strings.TrimPrefix(target, "http://")
			g := newGate(t, target+c.path, func(g *gate) {
				if c.trusted {
					g.conf.Trusted = loopback
				}
				if c.change != nil {
					c.change(g)
				}
				g.prepare = c.prepare
			})
			cl := g.dial()
			cl.send(c.raw)
			if got, want := <-seen, strings.ReplaceAll(c.want, "HOST", host); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			resp := cl.read("GET")
			for resp.StatusCode == 100 {
				resp = cl.read("GET")
			}
			if resp.StatusCode != 200 {
				t.Errorf("got %v", resp)
			}
		})
	}
}

func TestStripListenPathForwardsTheRest(t *testing.T) {
	seen := make(chan string, 2)
	target := plainOrigin(t, func(conn net.Conn, _ int) {
		for br := bufio.NewReader(conn); ; {
			head := readRequest(br)
			if head == "" {
				return
			}
			seen <- strings.Fields(head)[1]
			_, _ = io.WriteString(conn, hello)
		}
	})
	for strip, want := range map[bool]string{true: "/base/rest", false: "/base/api/rest"} {
		g := newGate(t, target+"/base", func(g *gate) {
			g.def.Proxy.StripListenPath = strip
			g.prepare = func(ex *pipeline.Exchange) { ex.Rest = ex.Rest[len("/api"):] }
		})
		g.get("/api/rest")
		if got := <-seen; got != want {
			t.Errorf("strip=%t: %s, want %s", strip, got, want)
		}
	}
}

func TestManyConnectionLinesAreRefused(t *testing.T) {
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) { answerAll(conn, hello) }), nil)
	cl := g.dial()
	cl.send("GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("Connection: x-a\r\n", 5) + "\r\n")
	if a := cl.read("GET"); a.StatusCode != 400 || a.Header.Get("X-Reason") != "bad_request" {
		t.Errorf("got %v", a)
	}
}

func TestClientAddress(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		name, peer string
		lines      []string
		want       string
	}{
		{"untrusted peer", "6.6.6.6", []string{"X-Forwarded-For: 1.1.1.1"}, "6.6.6.6"},
		{"no header", "10.0.0.1", nil, "10.0.0.1"},
		{"one hop", "10.0.0.1", []string{"X-Forwarded-For: 1.1.1.1"}, "1.1.1.1"},
		{"right-most that is not trusted", "10.0.0.1", []string{"X-Forwarded-For: 6.6.6.6, 1.1.1.1, 10.0.0.2"}, "1.1.1.1"},
		{"several lines", "10.0.0.1", []string{"X-Forwarded-For: 6.6.6.6", "Accept: x", "x-forwarded-for: 1.1.1.1", "X-Forwarded-For: 10.0.0.3,10.0.0.2"}, "1.1.1.1"},
		{"all trusted", "10.0.0.1", []string{"X-Forwarded-For: 10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"nonsense ends the search", "10.0.0.1", []string{"X-Forwarded-For: 1.1.1.1, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"empty", "10.0.0.1", []string{"X-Forwarded-For: "}, "10.0.0.1"},
		{"commas", "10.0.0.1", []string{"X-Forwarded-For: ,1.1.1.1"}, "1.1.1.1"},
		{"IPv6", "fd00::1", []string{"X-Forwarded-For: 2001:db8::7"}, "2001:db8::7"},
		{"IPv6 with port", "fd00::1", []string{"X-Forwarded-For: [2001:db8::7]:443"}, "2001:db8::7"},
		{"IPv6 in brackets", "fd00::1", []string{"X-Forwarded-For: [2001:db8::7]"}, "2001:db8::7"},
		{"IPv6 with rubbish", "fd00::1", []string{"X-Forwarded-For: [2001:db8::7]x"}, "fd00::1"},
		{"IPv6 with a zone", "fd00::1", []string{"X-Forwarded-For: fe80::1%eth0"}, "fd00::1"},
		{"IPv4 with port", "10.0.0.1", []string{"X-Forwarded-For: 1.1.1.1:8080"}, "1.1.1.1"},
		{"IPv4 with a bad port", "10.0.0.1", []string{"X-Forwarded-For: 1.1.1.1:x"}, "10.0.0.1"},
		{"mapped peer", "::ffff:10.0.0.1", []string{"X-Forwarded-For: ::ffff:1.1.1.1"}, "1.1.1.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			call := parsed(t, c.lines)
			call.Peer = netip.MustParseAddr(c.peer)
			if got := ClientAddress(call, trusted); got.String() != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if n := testing.AllocsPerRun(10, func() { ClientAddress(call, trusted) }); n != 0 && !race.Enabled && !strings.HasPrefix(c.name, "nonsense") {
				t.Errorf("%v allocations", n)
			}
		})
	}
}
