package upstream

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const evil = ok + "Content-Length: 4\r\n\r\nevil"

// idleFor makes the one idle connection look as if it had been used last so long
// ago; a negative time is one that has not passed when its next request comes.
func (g *gate) idleFor(d time.Duration) {
	g.t.Helper()
	p := g.stage.(*forward).pool
	eventually(g.t, "one connection idles", func() bool { return g.pools.Stats() == Stats{Open: 1, Idle: 1} })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle[0].since = p.now() - d
}

// TestWhatComesJustBeforeARequestIsNotItsAnswer has an upstream do something to
// a connection that is used again at once. On the raw route nobody looks before a
// GET; otherwise somebody does, and another connection is used.
func TestWhatComesJustBeforeARequestIsNotItsAnswer(t *testing.T) {
	const get, post = "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"
	big := ok + "Content-Length: 40000\r\n\r\n" + strings.Repeat("e", 40000)
	write := func(s string) func(net.Conn) {
		return func(conn net.Conn) { _, _ = io.WriteString(conn, s) }
	}
	for _, c := range []struct {
		name string
		do   func(conn net.Conn)
	}{
		{"an answer", write(evil)},
		{"an answer in chunks", write(ok + "Transfer-Encoding: chunked\r\n\r\n4\r\nevil\r\n0\r\n\r\n")},
		{"an answer without a body", write("HTTP/1.1 304 Not Modified\r\n\r\n")},
		{"an answer larger than what is read at once", write(big)},
		{"one byte", write("x")},
		{"an empty line", write("\r\n")},
		{"half-close", halfClose},
		{"an answer and half-close", func(conn net.Conn) { write(evil)(conn); halfClose(conn) }},
	} {
		for _, raw := range []string{get, post} {
			t.Run(c.name+" before "+raw[:4], func(t *testing.T) {
				t.Parallel()
				routes(t, func(t *testing.T, r route) {
					testJustBefore(t, r, c.do, raw)
				})
			})
		}
	}
}

func testJustBefore(t *testing.T, r route, do func(net.Conn), raw string) {
	act, acted := make(chan struct{}), make(chan struct{})
	var asked atomic.Int32
	g := r.gate(t, func(conn net.Conn, n int) {
		br := bufio.NewReader(conn)
		for readRequest(br) != "" {
			asked.Add(1)
			_, _ = io.WriteString(conn, hello)
			if n == 0 {
				<-act
				do(conn)
				close(acted)
				n++
			}
		}
	}, nil)
	cl := g.dial()
	cl.get("/")
	act <- struct{}{}
	<-acted
	g.idleFor(-time.Minute)
	cl.send(raw)
	a := cl.read("GET")
	again := uint8(0)
	if r.name == "raw" && raw[:3] == "GET" {
		again = 1
	}
	if a.StatusCode != 200 || a.body != "hello" {
		t.Errorf("%.4s: %v", raw, a)
	}
	eventually(t, "the exchange is recorded", func() bool { return g.last().Retries == again })
	if n := asked.Load(); strings.HasPrefix(raw, "POST") && n > 2 {
		t.Errorf("a POST was sent %d times", n-1)
	}
	if b := cl.get("/"); b.StatusCode != 200 || b.body != "hello" {
		t.Errorf("next: %v", b)
	}
}

// TestAClosedConnectionThatIsUsedAtOnce has nobody there any more.
func TestAClosedConnectionThatIsUsedAtOnce(t *testing.T) {
	for name, do := range map[string]func(net.Conn){"close": func(c net.Conn) { _ = c.Close() }, "reset": reset} {
		t.Run(name, func(t *testing.T) {
			act, acted := make(chan struct{}), make(chan struct{})
			g := newGate(t, plainOrigin(t, func(conn net.Conn, n int) {
				br := bufio.NewReader(conn)
				readRequest(br)
				_, _ = io.WriteString(conn, hello)
				if n == 0 {
					<-act
					do(conn)
					close(acted)
				}
			}), nil)
			cl := g.dial()
			cl.get("/")
			act <- struct{}{}
			<-acted
			g.idleFor(-time.Minute)
			if a := cl.get("/"); a.StatusCode != 200 {
				t.Errorf("got %v", a)
			}
		})
	}
}

// TestAfterASurpriseConnectionsAreLookedAtFirst has an upstream that always says
// too much. Once that is known nothing is asked twice for it.
func TestAfterASurpriseConnectionsAreLookedAtFirst(t *testing.T) {
	var asked atomic.Int32
	g := newGate(t, plainOrigin(t, func(conn net.Conn, n int) {
		br := bufio.NewReader(conn)
		readRequest(br)
		asked.Add(1)
		_, _ = io.WriteString(conn, hello)
		for readRequest(br) != "" {
			asked.Add(1)
			_, _ = io.WriteString(conn, hello+evil)
		}
	}), nil)
	cl := g.dial()
	p := g.stage.(*forward).pool
	const calls = 8
	for i := range calls {
		if i == 1 {
			g.idleFor(-time.Minute)
		}
		p.mu.Lock()
		for _, c := range p.idle {
			c.since = p.now() + time.Minute
		}
		p.mu.Unlock()
		if a := cl.get("/"); a.StatusCode != 200 || a.body != "hello" {
			t.Errorf("call %d: %v", i, a)
		}
	}
	if n := asked.Load(); n != calls+1 {
		t.Errorf("asked %d times for %d calls: only the first surprise is asked about again", n, calls)
	}
}

// TestSlowAnswersOfBlindRequestsAreTheirs has answers take as long as the
// lookout's looks, and in pieces.
func TestSlowAnswersOfBlindRequestsAreTheirs(t *testing.T) {
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) {
		for br := bufio.NewReader(conn); ; {
			head := readRequest(br)
			if head == "" {
				return
			}
			var wait time.Duration
			_, _ = fmt.Sscanf(head, "GET /%d ", &wait)
			<-time.After(wait * time.Millisecond)
			_, _ = io.WriteString(conn, hello[:20])
			runtime.Gosched()
			_, _ = io.WriteString(conn, hello[20:])
		}
	}), nil)
	cl := g.dial()
	cl.get("/")
	for wait := 30; wait < 130; wait += 7 {
		g.idleFor(-time.Minute)
		if a := cl.get(fmt.Sprintf("/%d", wait)); a.StatusCode != 200 || a.body != "hello" || g.last().Retries > 0 {
			t.Errorf("after %d ms: %v, %d retries", wait, a, g.last().Retries)
		}
	}
	if s := g.pools.Stats(); s.Open != 1 {
		t.Errorf("%d connections, want the one", s.Open)
	}
}

// TestAStreamThatMayBeAnothersIsCut has an answer too large to be held arrive
// before its request, which is seen at its end only.
func TestAStreamThatMayBeAnothersIsCut(t *testing.T) {
	for name, with := range map[string]string{
		"length": ok + "Content-Length: 100000\r\n\r\n" + strings.Repeat("e", 100000),
		"chunks": ok + "Transfer-Encoding: chunked\r\n\r\n186a0\r\n" + strings.Repeat("e", 100000) + "\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			act, acted := make(chan struct{}), make(chan struct{})
			g := newGate(t, plainOrigin(t, func(conn net.Conn, n int) {
				for br := bufio.NewReader(conn); readRequest(br) != ""; n++ {
					_, _ = io.WriteString(conn, hello)
					if n == 0 {
						<-act
						_, _ = io.WriteString(conn, with)
						close(acted)
					}
				}
			}), nil)
			cl := g.dial()
			cl.get("/")
			act <- struct{}{}
			<-acted
			g.idleFor(-time.Minute)
			if a := cl.get("/"); a.err == nil {
				t.Errorf("got %d bytes as a whole answer", len(a.body))
			}
			if a := g.get("/"); a.body != "hello" {
				t.Errorf("next: %v", a)
			}
		})
	}
}

// TestTheLookoutRestsWhenNobodyWaits has it forget pools that are idle.
func TestTheLookoutRestsWhenNobodyWaits(t *testing.T) {
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) { answerAll(conn, hello) }), nil)
	cl := g.dial()
	cl.get("/")
	g.idleFor(-time.Minute)
	cl.get("/")
	p := g.stage.(*forward).pool
	eventually(t, "it is no longer looked at", func() bool { return !p.watched.Load() })
	g.pools.late.mu.Lock()
	defer g.pools.late.mu.Unlock()
	if n := len(g.pools.late.pools); n != 0 {
		t.Errorf("%d pools are still to be looked at", n)
	}
}
