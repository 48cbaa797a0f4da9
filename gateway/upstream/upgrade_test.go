package upstream

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

const (
	askWebSocket = "GET /chat HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
	agreed = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)

func upgrading(g *gate) { g.conf.Upgrades, g.conf.TunnelIdle = true, time.Minute }

// echo answers an upgrade and then every line, until the other side ends its.
func echo(conn net.Conn, first string) {
	br := bufio.NewReader(conn)
	head := readRequest(br)
	if !strings.Contains(head, "Upgrade: websocket\r\n") {
		_, _ = io.WriteString(conn, hello)
		return
	}
	_, _ = io.WriteString(conn, agreed+first)
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			_, _ = io.WriteString(conn, "over\n")
			halfClose(conn)
			return
		}
		_, _ = io.WriteString(conn, "you said "+line)
	}
}

// switched reads a 101 and returns its head.
func (c *client) switched() *http.Response {
	c.t.Helper()
	_ = c.conn.SetDeadline(time.Now().Add(patience))
	resp, err := http.ReadResponse(c.br, &http.Request{Method: "GET"})
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

func (c *client) line() string {
	c.t.Helper()
	line, err := c.br.ReadString('\n')
	if err != nil {
		c.t.Fatalf("after %q: %v", line, err)
	}
	return line
}

func TestAnUpgradeIsATunnel(t *testing.T) {
	routes(t, func(t *testing.T, r route) {
		heads := make(chan string, 1)
		g := r.gate(t, func(conn net.Conn, _ int) {
			tee := &noted{Conn: conn}
			echo(tee, "welcome\n")
			heads <- tee.read.String()
		}, upgrading)
		cl := g.dial()
		cl.send(askWebSocket + "early\n") // before the answer, as nobody should but some do
		resp := cl.switched()
		if resp.StatusCode != 101 || resp.Header.Get("Connection") != "Upgrade" || resp.Header.Get("Upgrade") != "WebSocket" ||
			resp.Header.Get("Sec-WebSocket-Accept") == "" || resp.Header.Get("Transfer-Encoding") != "" {
			t.Fatalf("got %v", resp)
		}
		for _, want := range []string{"welcome\n", "you said early\n"} {
			if got := cl.line(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		for i := range 20 {
			cl.send(fmt.Sprintf("line %d\n", i))
			if got, want := cl.line(), fmt.Sprintf("you said line %d\n", i); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		if s := g.pools.Stats(); s != (Stats{Open: 1}) {
			t.Errorf("a tunnel holds its connection: %+v", s)
		}
		halfClose(cl.conn)
		if rest, err := io.ReadAll(cl.br); string(rest) != "over\n" || err != nil {
			t.Errorf("at the end: %q, %v", rest, err)
		}
		head := <-heads
		for _, want := range []string{"Connection: Upgrade\r\n", "Upgrade: websocket\r\n", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "Sec-WebSocket-Version: 13\r\n", "X-Forwarded-For: 127.0.0.1\r\n"} {
			if strings.Count(head, want) != 1 {
				t.Errorf("%q is not in the request once:\n%s", want, head)
			}
		}
		wait.Until(t, "the connection is given up", func() bool { return g.pools.Stats() == Stats{} })
	})
}

// noted keeps what was read.
type noted struct {
	net.Conn
	read strings.Builder
}

func (n *noted) Read(p []byte) (int, error) {
	m, err := n.Conn.Read(p)
	n.read.Write(p[:m])
	return m, err
}

// CloseWrite implements what halfClose asks for.
func (n *noted) CloseWrite() error { return n.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// TestRequestsThatAreNoUpgrade have their wish left out, and are answered all
// the same.
func TestRequestsThatAreNoUpgrade(t *testing.T) {
	ask := func(from, to string) string { return strings.Replace(askWebSocket, from, to, 1) }
	for _, c := range []struct {
		name   string
		raw    string
		change func(g *gate)
	}{
		{"switched off", askWebSocket, func(g *gate) { g.conf.Upgrades = false }},
		{"GraphQL", askWebSocket, func(g *gate) { g.def.GraphQL = &definition.GraphQL{Enabled: true} }},
		{"not named in Connection", ask("keep-alive, Upgrade", "keep-alive"), nil},
		{"POST", ask("GET", "POST"), nil},
		{"a body", ask("\r\n\r\n", "\r\nContent-Length: 2\r\n\r\nhi"), nil},
		{"two lines", ask("Upgrade: websocket", "Upgrade: websocket\r\nUpgrade: h2c"), nil},
		{"HTTP/2", ask("websocket", "h2c"), nil},
		{"HTTP/2 in a list", ask("websocket", "websocket, H2C"), nil},
		{"HTTP", ask("websocket", "HTTP/2.0"), nil},
		{"TLS", ask("websocket", "TLS/1.0"), nil},
		{"nonsense", ask("websocket", "web socket"), nil},
		{"HTTP/1.0", ask("HTTP/1.1", "HTTP/1.0"), nil},
		{"another request in its place", askWebSocket, func(g *gate) {
			g.prepare = func(ex *pipeline.Exchange) { ex.Outgoing.HasBody, ex.Outgoing.Post = true, true }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			heads := make(chan string, 1)
			g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) {
				heads <- readRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, hello)
			}), func(g *gate) {
				upgrading(g)
				if c.change != nil {
					c.change(g)
				}
			})
			cl := g.dial()
			cl.send(c.raw)
			if a := cl.read("GET"); a.StatusCode != 200 || a.body != "hello" {
				t.Errorf("got %v", a)
			}
			if head := <-heads; strings.Contains(head, "\r\nUpgrade:") || strings.Contains(head, "\r\nConnection:") {
				t.Errorf("sent %q", head)
			}
		})
	}
}

func TestAnUpgradeThatIsRefusedIsAnAnswer(t *testing.T) {
	routes(t, func(t *testing.T, r route) {
		g := r.gate(t, func(conn net.Conn, _ int) {
			answerAll(conn, "HTTP/1.1 426 Upgrade Required\r\nUpgrade: chat/2\r\nConnection: Upgrade\r\nContent-Length: 5\r\n\r\nhello")
		}, upgrading)
		cl := g.dial()
		for range 3 { // the connections on both sides go on
			cl.send(askWebSocket)
			if a := cl.read("GET"); a.StatusCode != 426 || a.body != "hello" {
				t.Errorf("got %v", a)
			}
		}
		if s := g.pools.Stats(); s.Open != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAnAgreementToSomethingElseIsMalformed(t *testing.T) {
	for name, with := range map[string]string{
		"another protocol": strings.Replace(agreed, "WebSocket", "h2c", 1),
		"no protocol":      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) { answerAll(conn, with) }), upgrading)
			cl := g.dial()
			cl.send(askWebSocket)
			if a := cl.read("GET"); a.StatusCode != 502 || a.Header.Get("X-Reason") != "upstream_malformed" {
				t.Errorf("got %v", a)
			}
		})
	}
}

func TestTunnelsEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		idle time.Duration
		do   func(g *gate, cl *client, upstream net.Conn)
	}{
		{"when nobody speaks", 100 * time.Millisecond, func(*gate, *client, net.Conn) {}},
		{"when the upstream breaks", time.Minute, func(_ *gate, _ *client, upstream net.Conn) { reset(upstream) }},
		{"when the client breaks", time.Minute, func(_ *gate, cl *client, _ net.Conn) { reset(cl.conn) }},
		{"when connections are closed", time.Minute, func(g *gate, _ *client, _ net.Conn) { g.pools.Close() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			routes(t, func(t *testing.T, r route) {
				upstreams, over := make(chan net.Conn, 1), make(chan error, 1)
				g := r.gate(t, func(conn net.Conn, _ int) {
					readRequest(bufio.NewReader(conn))
					_, _ = io.WriteString(conn, agreed)
					upstreams <- conn
					_, err := io.Copy(io.Discard, conn)
					over <- err
				}, func(g *gate) { g.conf.Upgrades, g.conf.TunnelIdle = true, c.idle })
				cl := g.dial()
				cl.send(askWebSocket)
				cl.switched()
				c.do(g, cl, <-upstreams)
				<-over
				if c.name != "when the client breaks" {
					if _, err := cl.br.ReadByte(); err == nil {
						t.Error("the client read a byte")
					}
				}
				wait.Until(t, "the connection is given up", func() bool { return g.pools.Stats() == Stats{} })
			})
		})
	}
}
