package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// gate is the least of a gateway: a server whose every request goes upstream.
type gate struct {
	t       testing.TB
	addr    string
	pools   *Pools
	def     *definition.API
	conf    Config
	prepare func(ex *pipeline.Exchange)

	recovered chan any // takes what the stage panicked with; nil: it does not

	readTimeout time.Duration // of clients; 0: the usual

	stage pipeline.Stage
	mu    sync.Mutex
	seen  []pipeline.Upstream // of every exchange, in the order of their end

	reason pipeline.Reason // of the last refusal
}

func testConfig() Config {
	return Config{
		DialTimeout: 30 * time.Second, ResponseTimeout: 30 * time.Second, MaxConns: 64,
		MaxConnWait: 30 * time.Second, IdleTimeout: time.Minute, Retries: 1,
	}
}

func wireConfig() wire.Config {
	return wire.Config{
		MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 256 << 20,
		ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 30 * time.Second,
	}
}

// newGate serves def until the test ends. change may alter the settings before.
func newGate(t testing.TB, target string, change func(g *gate)) *gate {
	t.Helper()
	g := &gate{t: t, conf: testConfig(), pools: NewPools(), def: &definition.API{ID: "test", Proxy: definition.Proxy{TargetURL: target}}}
	limits := wireConfig()
	if change != nil {
		change(g)
	}
	if g.readTimeout > 0 {
		limits.ReadTimeout = g.readTimeout
	}
	stage, err := Compile(g.def, g.pools, g.conf)
	if err != nil {
		t.Fatal(err)
	}
	g.stage = stage
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.addr = ln.Addr().String()
	server := wire.New(limits, g, log.New(testWriter{t}, "", 0))
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		g.pools.Close()
		_ = server.Shutdown(ctx)
		if err := <-done; !errors.Is(err, wire.ErrStopped) {
			t.Errorf("Serve returned %v", err)
		}
		if n := server.Stats().Panics; n > 0 {
			t.Errorf("%d panics", n)
		}
		wait.Until(t, "all connections are given up", func() bool { return g.pools.Stats() == Stats{} })
	})
	return g
}

// testWriter shows what the server logs, which is nothing in a good test.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Errorf("server: %s", p)
	return len(p), nil
}

// Handle implements wire.Handler.
func (g *gate) Handle(call *wire.Call) {
	ex := pipeline.For(call)
	copy(ex.ID[:], "0123456789abcdef0123456789abcdef")
	ex.Client = ClientAddress(call, g.conf.Trusted)
	ex.Rest = call.Path
	if g.prepare != nil {
		g.prepare(ex)
	}
	verdict := g.forward(ex)
	if verdict == pipeline.Rejected {
		r := ex.Rejection
		ex.Answer.Status, ex.Answer.Body = r.Status, r.JSON()
		ex.Answer.Lines = append(ex.Answer.Lines[:0], "X-Reason: "+r.Reason.String()+"\r\n"...)
	}
	if _, bench := g.t.(*testing.B); !bench {
		g.mu.Lock()
		g.seen = append(g.seen, ex.Upstream)
		if g.reason = pipeline.ReasonNone; verdict == pipeline.Rejected {
			g.reason = ex.Rejection.Reason
		}
		g.mu.Unlock()
	}
	ex.Release()
}

func (g *gate) forward(ex *pipeline.Exchange) (verdict pipeline.Verdict) {
	if g.recovered != nil {
		defer func() {
			g.recovered <- recover()
			verdict = pipeline.Answered
		}()
	}
	g.mu.Lock()
	stage := g.stage
	g.mu.Unlock()
	return stage.Handle(ex)
}

// Refuse implements wire.Handler.
func (g *gate) Refuse(call *wire.Call, fault *wire.Fault) {
	call.Answer.Status = fault.Status
	call.Answer.Body = []byte(fault.Text)
}

func (g *gate) last() pipeline.Upstream {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.seen) == 0 {
		return pipeline.Upstream{}
	}
	return g.seen[len(g.seen)-1]
}

func (g *gate) lastReason() pipeline.Reason {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reason
}

// client is one connection to a gate.
type client struct {
	t    testing.TB
	conn net.Conn
	br   *bufio.Reader
}

func (g *gate) dial() *client {
	g.t.Helper()
	conn, err := net.Dial("tcp", g.addr)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = conn.Close() })
	return &client{t: g.t, conn: conn, br: bufio.NewReader(conn)}
}

// patience bounds each step of a client, on however busy a machine.
const patience = 60 * time.Second

func (c *client) send(raw string) {
	c.t.Helper()
	_ = c.conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c.conn, raw); err != nil {
		c.t.Fatal(err)
	}
}

// answer is a response as the client saw it.
type answer struct {
	*http.Response
	body string
	err  error // of reading the body
}

func (c *client) read(method string) answer {
	c.t.Helper()
	_ = c.conn.SetDeadline(time.Now().Add(patience))
	resp, err := http.ReadResponse(c.br, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("reading an answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	return answer{resp, string(body), err}
}

func (c *client) get(path string) answer {
	c.t.Helper()
	c.send("GET " + path + " HTTP/1.1\r\nHost: gate.test\r\n\r\n")
	return c.read("GET")
}

// get asks once, on a connection of its own.
func (g *gate) get(path string) answer { return g.dial().get(path) }

func (a answer) String() string {
	return fmt.Sprintf("%d %s %q err=%v", a.StatusCode, a.Header.Get("X-Reason"), a.body, a.err)
}

// route is a way to an upstream.
type route struct {
	name   string
	origin func(t testing.TB, serve func(conn net.Conn, n int)) (target string)
	change func(g *gate)
}

func plainOrigin(t testing.TB, serve func(conn net.Conn, n int)) string {
	return "http://" + testenv.RawOrigin(t, serve)
}

// tlsOrigin is plainOrigin behind TLS. serve's connection is a *tls.Conn.
func tlsOrigin(t testing.TB, serve func(conn net.Conn, n int)) string {
	conf := &tls.Config{Certificates: []tls.Certificate{authority(t).server}}
	return "https://" + testenv.RawOrigin(t, func(conn net.Conn, n int) {
		secure := tls.Server(conn, conf)
		if secure.Handshake() == nil {
			serve(secure, n)
			_ = secure.Close()
		}
	})
}

// routes runs a test on raw system calls, on the ordinary route and on TLS,
// which all have to behave alike.
func routes(t *testing.T, test func(t *testing.T, r route)) {
	for _, r := range []route{
		{"raw", plainOrigin, func(*gate) {}},
		{"plain", plainOrigin, func(g *gate) { g.conf.PlainIO = true }},
		{"tls", tlsOrigin, func(g *gate) { g.conf.CAFile = authority(t).file }},
	} {
		t.Run(r.name, func(t *testing.T) { test(t, r) })
	}
}

// gate starts a gate to an upstream over the route.
func (r route) gate(t testing.TB, serve func(conn net.Conn, n int), change func(g *gate)) *gate {
	t.Helper()
	return newGate(t, r.origin(t, serve), func(g *gate) {
		r.change(g)
		if change != nil {
			change(g)
		}
	})
}

// halfClose ends one direction of a connection to a gate.
func halfClose(conn net.Conn) {
	_ = conn.(interface{ CloseWrite() error }).CloseWrite()
}

// reset ends a connection with RST.
func reset(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if tcp, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// readRequest takes one request off an upstream's connection and returns its
// head, or "" when there is none. Bodies with a length are taken too.
func readRequest(br *bufio.Reader) (head string) {
	length := 0
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			return ""
		}
		head += line
		if v, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			_, _ = fmt.Sscan(v, &length)
		}
		if line == "\r\n" {
			_, _ = br.Discard(length)
			return head
		}
	}
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
