package upstream

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// TestABodyInPlaceOfTheClientsLeavesNothingBehind has clients send bodies that
// never go upstream, in every framing. What is left of one must not be taken for
// the next request: the connection either serves that, or ends.
func TestABodyInPlaceOfTheClientsLeavesNothingBehind(t *testing.T) {
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, request := range map[string]string{
		"none":     "GET /first HTTP/1.1\r\nHost: x\r\n\r\n",
		"small":    "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: 35\r\n\r\n" + smuggled,
		"large":    "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: 35000\r\n\r\n" + strings.Repeat(smuggled, 1000),
		"chunked":  "POST /first HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n23\r\n" + smuggled + "\r\n0\r\n\r\n",
		"expected": "POST /first HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 35\r\n\r\n" + smuggled,
	} {
		t.Run(name, func(t *testing.T) {
			routes(t, func(t *testing.T, r route) {
				g := r.gate(t, func(conn net.Conn, _ int) {
					for br := bufio.NewReader(conn); ; {
						req, err := http.ReadRequest(br)
						if err != nil {
							return
						}
						body, err := io.ReadAll(req.Body)
						if err != nil || req.Method != "POST" || req.URL.Path == "/smuggled" || string(body) != "{}" {
							t.Errorf("%s %s %q, %v", req.Method, req.URL, body, err)
						}
						_, _ = io.WriteString(conn, hello)
					}
				}, func(g *gate) {
					g.prepare = func(ex *pipeline.Exchange) {
						ex.Outgoing.HasBody, ex.Outgoing.Post, ex.Outgoing.Root = true, true, true
						ex.Outgoing.Body = append(ex.BodyBuf[:0], "{}"...)
						ex.BodyBuf = ex.Outgoing.Body
					}
				})
				cl := g.dial()
				cl.send(request)
				if a := cl.read("GET"); a.StatusCode != 200 || a.body != "hello" {
					t.Fatalf("first: %v", a)
				}
				if _, err := io.WriteString(cl.conn, "GET /second HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
					return
				}
				rest, _ := io.ReadAll(cl.br)
				if n := strings.Count(string(rest), "HTTP/1.1 "); n > 1 {
					t.Errorf("%d answers to one more request:\n%s", n, rest)
				}
			})
		})
	}
}

func TestALargeBodyInPlaceOfTheClientsIsSentWhole(t *testing.T) {
	body := strings.Repeat("0123456789abcdef", 40<<10)
	routes(t, func(t *testing.T, r route) {
		g := r.gate(t, func(conn net.Conn, _ int) {
			for br := bufio.NewReader(conn); ; {
				req, err := http.ReadRequest(br)
				if err != nil {
					return
				}
				if got, err := io.ReadAll(req.Body); err != nil || string(got) != body {
					t.Errorf("%d bytes, %v", len(got), err)
				}
				_, _ = io.WriteString(conn, hello)
			}
		}, func(g *gate) {
			g.prepare = func(ex *pipeline.Exchange) {
				ex.Outgoing.HasBody, ex.Outgoing.Body, ex.Outgoing.Post = true, []byte(body), true
			}
		})
		cl := g.dial()
		for range 3 {
			if a := cl.get("/"); a.StatusCode != 200 || a.body != "hello" {
				t.Errorf("got %v", a)
			}
		}
	})
}

func TestHeadForAnUpstreamThatIsPostedToHasNoBody(t *testing.T) {
	for name, answer := range map[string]string{
		"whole":   hello,
		"chunked": ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"large":   ok + "Content-Length: 100000\r\n\r\n" + strings.Repeat("x", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			target := plainOrigin(t, func(conn net.Conn, _ int) { answerAll(conn, answer) })
			g := newGate(t, target, func(g *gate) {
				g.prepare = func(ex *pipeline.Exchange) { ex.Outgoing.HasBody, ex.Outgoing.Post = true, true }
			})
			cl := g.dial()
			for range 2 {
				cl.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
				if a := cl.read("HEAD"); a.StatusCode != 200 {
					t.Errorf("got %v", a)
				}
			}
		})
	}
}
