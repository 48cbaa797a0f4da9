package upstream

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/race"
	"github.com/valyala/fasthttp"
)

// loop sends one raw request again and again over one connection.
type loop struct {
	conn net.Conn
	br   *bufio.Reader
	raw  []byte
	size int // of the answer, known after the first
}

func newLoop(t testing.TB, addr, raw string) *loop {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	l := &loop{conn: conn, br: bufio.NewReaderSize(conn, 128<<10), raw: []byte(raw)}
	l.send(t)
	var resp fasthttp.Response
	var seen bytes.Buffer
	if err := resp.Read(bufio.NewReader(io.TeeReader(l.br, &seen))); err != nil || resp.StatusCode() != 200 {
		t.Fatalf("first answer: %v %v", resp.StatusCode(), err)
	}
	l.size = seen.Len()
	return l
}

func (l *loop) send(t testing.TB) {
	if _, err := l.conn.Write(l.raw); err != nil {
		t.Fatal(err)
	}
}

func (l *loop) round(t testing.TB) {
	l.send(t)
	b, err := l.br.Peek(l.size)
	if err != nil || !bytes.HasPrefix(b, []byte("HTTP/1.1 200 ")) {
		t.Fatalf("answer %q: %v", b[:min(len(b), 200)], err)
	}
	_, _ = l.br.Discard(l.size)
}

func benchOrigin(t testing.TB, size int) string {
	body := bytes.Repeat([]byte{'x'}, size)
	return "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.SetNoDefaultContentType(true)
		ctx.Response.Header.SetServer("origin")
		ctx.SetBody(body)
	})
}

const (
	smallGet  = "GET /some/path?a=b HTTP/1.1\r\nHost: gate.test\r\nUser-Agent: bench\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\r\n"
	smallPost = "POST /some/path HTTP/1.1\r\nHost: gate.test\r\nUser-Agent: bench\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"some\":true}"
)

// bare is a reverse proxy of fasthttp's own client, in place.
type bare struct {
	client *fasthttp.HostClient
}

func (b *bare) Handle(call *wire.Call) {
	req, resp := &call.Ctx().Request, &call.Ctx().Response
	req.Header.Del("Connection")
	if err := b.client.Do(req, resp); err != nil {
		resp.SetStatusCode(502)
	}
}

func (b *bare) Refuse(call *wire.Call, _ *wire.Fault) { call.Ctx().SetStatusCode(400) }

func startBare(b testing.TB, origin string) string {
	u, err := url.Parse(origin)
	if err != nil {
		b.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := wire.New(wireConfig(), &bare{&fasthttp.HostClient{Addr: u.Host}}, log.New(io.Discard, "", 0))
	go func() { _ = server.Serve(ln) }()
	b.Cleanup(func() { _ = server.Shutdown(context.Background()) })
	return ln.Addr().String()
}

// BenchmarkForward compares whole requests over loopback with fasthttp's
// HostClient behind the same server.
func BenchmarkForward(b *testing.B) {
	cases := []struct {
		name string
		raw  string
		size int
	}{{"get1K", smallGet, 1 << 10}, {"post", smallPost, 1 << 10}, {"get16K", smallGet, 16 << 10}, {"get64K", smallGet, 64 << 10}}
	for _, c := range cases {
		origin := benchOrigin(b, c.size)
		addrs := []struct{ name, addr string }{
			{"hostclient", startBare(b, origin)},
			{"raw", newGate(b, origin, nil).addr},
			{"plain", newGate(b, origin, func(g *gate) { g.conf.PlainIO = true }).addr},
		}
		for _, a := range addrs {
			b.Run(c.name+"/"+a.name, func(b *testing.B) {
				b.ReportAllocs()
				l := newLoop(b, a.addr, c.raw)
				for b.Loop() {
					l.round(b)
				}
			})
		}
	}
}

func TestSmallRequestsDoNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Log("the race detector drops pooled objects at random: nothing to measure")
		return
	}
	origin := benchOrigin(t, 1<<10)
	trusted := strings.Replace(smallGet, "\r\n\r\n", "\r\nX-Forwarded-For: 203.0.113.7, 127.0.0.9\r\nX-Forwarded-Proto: https\r\n\r\n", 1)
	for _, c := range []struct {
		name, raw string
		plain     bool
		prepare   func(ex *pipeline.Exchange)
	}{
		{"GET", smallGet, false, nil},
		{"POST", smallPost, false, nil},
		{"GET behind a trusted proxy", trusted, false, nil},
		{"GET, ordinary route", smallGet, true, nil},
		{"GET with changes", smallGet, false, func(ex *pipeline.Exchange) {
			ex.Outgoing.Drop = dropAccept
			ex.Outgoing.Extra = append(ex.Outgoing.Extra[:0], "Accept: text/plain\r\n"...)
			ex.Outgoing.HasQuery, ex.Outgoing.Query = true, append(ex.Outgoing.Query[:0], "c=d"...)
		}},
		{"POST of another body to the root", smallPost, false, func(ex *pipeline.Exchange) {
			ex.Outgoing.AlsoDrop("Accept")
			ex.Outgoing.HasBody, ex.Outgoing.Post, ex.Outgoing.Root = true, true, true
			ex.BodyBuf = append(ex.BodyBuf[:0], `{"query":"{a}"}`...)
			ex.Outgoing.Body = ex.BodyBuf
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t, origin, func(g *gate) {
				g.conf.PlainIO, g.conf.Trusted, g.prepare = c.plain, loopback, c.prepare
			})
			g.seen = make([]pipeline.Upstream, 0, 10_000)
			l := newLoop(t, g.addr, c.raw)
			for range 200 {
				l.round(t)
			}
			if n := testing.AllocsPerRun(1000, func() { l.round(t) }); n != 0 {
				t.Errorf("%v allocations a request", n)
			}
		})
	}
}

var dropAccept = []string{"Accept"}

// BenchmarkRequestHead makes the head that goes upstream of one that came.
func BenchmarkRequestHead(b *testing.B) {
	browser := strings.Replace(smallGet, "\r\n\r\n", "\r\nAccept-Language: de-CH, en;q=0.7\r\nCookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n"+
		"Referer: https://gate.test/some/other/path\r\nSec-Fetch-Mode: navigate\r\nConnection: keep-alive\r\nCache-Control: no-cache\r\n\r\n", 1)
	pools := NewPools()
	defer pools.Close()
	stage, err := Compile(&definition.API{Proxy: definition.Proxy{TargetURL: "http://127.0.0.1:1/base"}}, pools, testConfig())
	if err != nil {
		b.Fatal(err)
	}
	for name, raw := range map[string]string{"few": smallGet, "many": browser} {
		b.Run(name, func(b *testing.B) {
			call, fault := wire.NewCall([]byte(raw), wireConfig())
			if fault != nil {
				b.Fatal(fault.Text)
			}
			call.Peer = netip.MustParseAddr("127.0.0.1")
			ex := pipeline.For(call)
			ex.Client, ex.Rest = call.Peer, call.Path
			copy(ex.ID[:], strings.Repeat("a", len(ex.ID)))
			b.ReportAllocs()
			for b.Loop() {
				ex.Buf, _, _ = stage.(*forward).appendRequest(ex.Buf[:0], ex)
			}
		})
	}
}
