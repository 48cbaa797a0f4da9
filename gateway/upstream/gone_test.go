package upstream

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// TestAClientThatLeavesEndsItsUpstreamRequest has clients close their connection,
// or their sending side, while the upstream is silent: before its answer, within the
// answer's head, and within its body.
func TestAClientThatLeavesEndsItsUpstreamRequest(t *testing.T) {
	const get, host = "GET / HTTP/1.1\r\nHost: x\r\n", " / HTTP/1.1\r\nHost: x\r\n"
	for _, c := range []struct{ name, request, begin string }{
		{"GET", get + "\r\n", ""},
		{"POST", "POST" + host + "Content-Length: 2\r\n\r\nhi", ""},
		{"a large body", "POST" + host + "Content-Length: 40000\r\n\r\n" + strings.Repeat("b", 40000), ""},
		{"a chunked body", "POST" + host + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", ""},
		{"another request behind it", get + "\r\n" + get + "\r\n", ""},
		{"part of a head", get + "\r\n", "HTTP/1.1 200 OK\r\nX-A: "},
		{"part of a body", get + "\r\n", ok + "Content-Length: 5\r\n\r\nhe"},
	} {
		for name, leave := range map[string]func(net.Conn){
			"close": func(conn net.Conn) { _ = conn.Close() }, "half-close": halfClose, "reset": reset,
		} {
			if c.name != "GET" && name != "close" {
				continue
			}
			t.Run(c.name+", "+name, func(t *testing.T) {
				t.Parallel()
				routes(t, func(t *testing.T, r route) { testLeaving(t, r, c.request, c.begin, leave) })
			})
		}
	}
}

func testLeaving(t *testing.T, r route, request, begin string, leave func(net.Conn)) {
	arrived, ended := make(chan struct{}), make(chan struct{})
	g := r.gate(t, func(conn net.Conn, n int) {
		if n > 0 {
			return
		}
		br := bufio.NewReader(conn)
		head := readRequest(br)
		if strings.Contains(head, "chunked") {
			_, _ = br.ReadString('0')
			_, _ = br.Discard(len("\r\n\r\n"))
		}
		_, _ = io.WriteString(conn, begin)
		close(arrived)
		_, _ = br.ReadByte() // until the gateway closes the connection
		close(ended)
	}, func(g *gate) { g.conf.ResponseTimeout = 2 * patience })
	cl := g.dial()
	cl.send(request)
	<-arrived
	left := time.Now()
	leave(cl.conn)
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the upstream request goes on")
	}
	if took := time.Since(left); took > 10*time.Second {
		t.Errorf("it ended after %s", took)
	}
	wait.Until(t, "the exchange is recorded", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.seen) > 0
	})
	if reason := g.lastReason(); reason != pipeline.ReasonClientGone {
		t.Errorf("reason %s", reason)
	}
}

// TestAClientThatStaysGetsALateAnswer has an upstream answer in pieces, each later
// than several checks on the client.
func TestAClientThatStaysGetsALateAnswer(t *testing.T) {
	const step = pollAnswer * 2
	for name, c := range map[string]struct{ request string }{
		"GET":            {"GET / HTTP/1.1\r\nHost: x\r\n\r\n"},
		"a chunked body": {"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			routes(t, func(t *testing.T, r route) {
				t.Parallel()
				g := r.gate(t, func(conn net.Conn, _ int) {
					br := bufio.NewReader(conn)
					readRequest(br)
					for _, at := range [][2]int{{0, 10}, {10, 30}, {30, len(hello) - 2}, {len(hello) - 2, len(hello)}} {
						<-time.After(step)
						_, _ = io.WriteString(conn, hello[at[0]:at[1]])
					}
				}, nil)
				cl := g.dial()
				cl.send(c.request)
				if a := cl.read("GET"); a.StatusCode != 200 || a.body != "hello" {
					t.Errorf("got %v", a)
				}
			})
		})
	}
}
