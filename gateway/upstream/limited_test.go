package upstream

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// TestAChunkedBodyOverASmallLimitDoesNotReachTheUpstream sends bodies in pieces, the
// last of which exceeds the limit of the path.
func TestAChunkedBodyOverASmallLimitDoesNotReachTheUpstream(t *testing.T) {
	const head, piece = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "64\r\n"
	for _, c := range []struct {
		name   string
		pieces int
		status int
	}{{"within the limit", 10, 200}, {"over the limit", 11, 400}} {
		t.Run(c.name, func(t *testing.T) {
			routes(t, func(t *testing.T, r route) {
				var heads atomic.Int64
				g := r.gate(t, func(conn net.Conn, _ int) {
					br := bufio.NewReader(conn)
					if readRequest(br) != "" {
						heads.Add(1)
						_, _ = io.WriteString(conn, hello)
					}
				}, func(g *gate) {
					g.prepare = func(ex *pipeline.Exchange) { ex.Call.LimitBody(1000) }
				})
				cl := g.dial()
				cl.send(head)
				for range c.pieces {
					cl.send(piece + strings.Repeat("b", 100) + "\r\n")
					<-time.After(time.Millisecond) // a piece of its own, mostly
				}
				if c.status == 200 {
					cl.send("0\r\n\r\n")
				}
				if a := cl.read("POST"); a.StatusCode != c.status {
					t.Errorf("got %v, want %d", a, c.status)
				}
				if n := heads.Load(); (n > 0) != (c.status == 200) {
					t.Errorf("the upstream saw %d requests", n)
				}
			})
		})
	}
}
