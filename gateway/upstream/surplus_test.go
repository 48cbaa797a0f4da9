package upstream

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

const evil = ok + "Content-Length: 4\r\n\r\nevil"

// TestSurplusAnswersReachNoClient has an upstream send an answer too many, of
// several shapes, behind one to requests of several kinds: in the same packet, or
// once the connection has gone back to its pool.
func TestSurplusAnswersReachNoClient(t *testing.T) {
	const host = " / HTTP/1.1\r\nHost: x\r\n"
	for _, first := range []struct{ name, request, answer string }{
		{"GET", "GET" + host + "\r\n", hello},
		{"HEAD", "HEAD" + host + "\r\n", ok + "Content-Length: 5\r\n\r\n"},
		{"POST", "POST" + host + "Content-Length: 2\r\n\r\nhi", hello},
		{"interim", "GET" + host + "\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n" + hello},
		{"not modified", "GET" + host + "\r\n", "HTTP/1.1 304 Not Modified\r\n\r\n"},
	} {
		for _, surplus := range []struct{ name, bytes string }{
			{"an answer", evil},
			{"chunks", ok + "Transfer-Encoding: chunked\r\n\r\n4\r\nevil\r\n0\r\n\r\n"},
			{"no body", "HTTP/1.1 304 Not Modified\r\n\r\n"},
			{"a large answer", ok + "Content-Length: 100000\r\n\r\n" + strings.Repeat("e", 100000)},
			{"one byte", "x"},
			{"half-close", ""},
		} {
			for _, packet := range []string{"same", "later"} {
				t.Run(first.name+", "+surplus.name+", "+packet, func(t *testing.T) {
					t.Parallel()
					routes(t, func(t *testing.T, r route) {
						testSurplus(t, r, first.request, first.answer, surplus.bytes, packet == "later")
					})
				})
			}
		}
	}
}

func testSurplus(t *testing.T, r route, request, first, surplus string, later bool) {
	send, sent := make(chan struct{}), make(chan struct{})
	g := r.gate(t, func(conn net.Conn, n int) {
		br := bufio.NewReader(conn)
		if n > 0 {
			answerAll(conn, hello)
			return
		}
		readRequest(br)
		if later {
			_, _ = io.WriteString(conn, first)
			<-send
			_, _ = io.WriteString(conn, surplus)
		} else {
			_, _ = io.WriteString(conn, first+surplus)
		}
		if surplus == "" {
			halfClose(conn)
		}
		close(sent)
		readRequest(br)
	}, nil)
	cl := g.dial()
	cl.send(request)
	cl.read(request[:strings.IndexByte(request, ' ')])
	if later {
		wait.Until(t, "the connection idles", func() bool { return g.pools.Stats().Idle == 1 })
		send <- struct{}{}
	}
	<-sent
	for range 2 { // the first is not repeated if it is lost
		cl.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
		if a := cl.read("POST"); a.StatusCode != 200 || a.body != "hello" {
			t.Errorf("got %v", a)
		}
	}
	if n := g.last().Retries; n != 0 {
		t.Errorf("%d retries: nothing had been sent", n)
	}
}

// TestBytesBeforeARequestAreNotItsAnswer uses a connection again before the poller
// can have reported what came on it.
func TestBytesBeforeARequestAreNotItsAnswer(t *testing.T) {
	accepted := make(chan net.Conn, 1)
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) {
		accepted <- conn
		br := bufio.NewReader(conn)
		readRequest(br)
		_, _ = io.WriteString(conn, hello)
		readRequest(br)
	}), nil)
	g.get("/")
	wait.Until(t, "the connection idles", func() bool { return g.pools.Stats().Idle == 1 })
	p, origin := g.stage.(*forward).pool, <-accepted
	c, err := p.take(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.drop()
	_, _ = io.WriteString(origin, evil)
	now := p.now()
	if err := c.begin(now, now+time.Minute, wire.Client{}); err != nil {
		t.Fatal(err)
	}
	if err := c.send([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), true); err != errStale {
		t.Errorf("error %v, received %q; want %v", err, c.buf[c.r:c.w], errStale)
	}
}
