package upstream

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

const hello = ok + "Content-Length: 5\r\n\r\nhello"

func answerAll(conn net.Conn, with string) {
	for br := bufio.NewReader(conn); readRequest(br) != ""; {
		_, _ = io.WriteString(conn, with)
	}
}

// TestIdleConnectionThatChangedIsNotUsed has an upstream do something to a
// connection that idles; the next request must neither see it nor fail.
func TestIdleConnectionThatChangedIsNotUsed(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(conn net.Conn)
	}{
		{"an answer that nobody asked for", func(conn net.Conn) { _, _ = io.WriteString(conn, ok+"Content-Length: 4\r\n\r\nevil") }},
		{"one byte", func(conn net.Conn) { _, _ = io.WriteString(conn, "x") }},
		{"half-close", halfClose},
		{"close", func(conn net.Conn) { _ = conn.Close() }},
		{"reset", reset},
	} {
		t.Run(c.name, func(t *testing.T) {
			routes(t, func(t *testing.T, r route) {
				idle, done := make(chan struct{}), make(chan struct{})
				g := r.gate(t, func(conn net.Conn, n int) {
					br := bufio.NewReader(conn)
					readRequest(br)
					_, _ = io.WriteString(conn, hello)
					if n > 0 {
						return
					}
					<-idle
					c.do(conn)
					close(done)
					readRequest(br)
				}, nil)
				cl := g.dial()
				if a := cl.get("/"); a.body != "hello" {
					t.Fatalf("first: %v", a)
				}
				idle <- struct{}{}
				<-done
				cl.send("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi") // not repeated, were it lost
				if a := cl.read("POST"); a.StatusCode != 200 || a.body != "hello" {
					t.Errorf("second: %v", a)
				}
				if n := g.last().Retries; n != 0 {
					t.Errorf("%d retries counted: nothing had been sent", n)
				}
			})
		})
	}
}

// TestRepeats has a connection die under a request in different ways.
func TestRepeats(t *testing.T) {
	half := func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 2"); _ = conn.Close() }
	closed := func(conn net.Conn) { _ = conn.Close() }
	post := "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"
	put := strings.Replace(post, "POST", "PUT", 1)
	stream := "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
	get := "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, c := range []struct {
		name    string
		raw     string
		fresh   bool // no request was served on the connection before
		die     func(conn net.Conn)
		retries int
		status  int
		again   uint8
	}{
		{"GET, closed", get, false, closed, 1, 200, 1},
		{"GET, reset", get, false, reset, 1, 200, 1},
		{"PUT with a body at hand", put, false, closed, 1, 200, 1},
		{"PUT with a stream", stream, false, closed, 1, 502, 0},
		{"POST", post, false, closed, 1, 502, 0},
		{"GET on a new connection", get, true, closed, 1, 502, 0},
		{"GET with a byte of the answer", get, false, half, 1, 502, 0},
		{"GET, no retries", get, false, closed, 0, 502, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			routes(t, func(t *testing.T, r route) {
				g := r.gate(t, func(conn net.Conn, n int) {
					if n > 0 {
						answerAll(conn, hello)
						return
					}
					br := bufio.NewReader(conn)
					if !c.fresh {
						readRequest(br)
						_, _ = io.WriteString(conn, hello)
					}
					readRequest(br)
					c.die(conn)
				}, func(g *gate) { g.conf.Retries = c.retries })
				cl := g.dial()
				if !c.fresh {
					cl.get("/")
				}
				cl.send(c.raw)
				a := cl.read("GET")
				if a.StatusCode != c.status || c.status == 502 && a.Header.Get("X-Reason") != "upstream_reset" {
					t.Errorf("got %v, want %d", a, c.status)
				}
				wait.Until(t, "the exchange is recorded", func() bool { return g.last().Retries == c.again })
			})
		})
	}
}

// TestManyDeadConnectionsCostOneRequestNothing has an upstream restart with
// connections pooled.
func TestManyDeadConnectionsCostOneRequestNothing(t *testing.T) {
	routes(t, func(t *testing.T, r route) {
		const many = 20
		var started sync.WaitGroup
		started.Add(many)
		die := make(chan struct{})
		var dead sync.WaitGroup
		dead.Add(many)
		g := r.gate(t, func(conn net.Conn, n int) {
			br := bufio.NewReader(conn)
			readRequest(br)
			if n >= many {
				_, _ = io.WriteString(conn, hello)
				return
			}
			started.Done()
			started.Wait() // so that every request needs a connection of its own
			_, _ = io.WriteString(conn, hello)
			<-die
			reset(conn)
			dead.Done()
		}, nil)
		var asked sync.WaitGroup
		for range many {
			asked.Go(func() { g.get("/") })
		}
		asked.Wait()
		wait.Until(t, "all idle", func() bool { return g.pools.Stats().Idle == many })
		close(die)
		dead.Wait()
		if a := g.get("/"); a.StatusCode != 200 {
			t.Errorf("got %v", a)
		}
	})
}

// TestNoAnswerGoesToAnotherCaller hammers an upstream that ends connections and
// sends junk at random, and checks that every answer is the one asked for.
func TestNoAnswerGoesToAnotherCaller(t *testing.T) {
	routes(t, func(t *testing.T, r route) {
		g := r.gate(t, func(conn net.Conn, _ int) {
			br := bufio.NewReader(conn)
			for {
				head := readRequest(br)
				if head == "" {
					return
				}
				path := strings.Fields(head)[1]
				switch rand.IntN(6) {
				case 0:
					_, _ = fmt.Fprintf(conn, ok+"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(path), path)
				case 1:
					_, _ = fmt.Fprintf(conn, ok+"Connection: close\r\n\r\n%s", path)
					return
				case 2:
					_, _ = fmt.Fprintf(conn, ok+"Content-Length: %d\r\n\r\n%s", len(path), path+hello)
				case 3:
					_, _ = fmt.Fprintf(conn, ok+"Content-Length: %d\r\n\r\n%s", len(path), path)
					return
				default:
					_, _ = fmt.Fprintf(conn, ok+"Content-Length: %d\r\n\r\n%s", len(path), path)
				}
			}
		}, func(g *gate) { g.conf.MaxConns = 4 })
		var callers sync.WaitGroup
		for caller := range 8 {
			callers.Go(func() {
				cl := g.dial()
				for i := range 100 {
					want := fmt.Sprintf("/%d/%d", caller, i)
					a := cl.get(want)
					// A connection may die between the probe and the request, twice even.
					if a.StatusCode != 502 && (a.StatusCode != 200 || a.body != want) {
						t.Errorf("asked for %s, got %v", want, a)
					}
				}
			})
		}
		callers.Wait()
	})
}

func TestCallersWaitInTheirOrder(t *testing.T) {
	release, arrived := make(chan struct{}), make(chan string, 10)
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) {
		for br := bufio.NewReader(conn); ; {
			head := readRequest(br)
			if head == "" {
				return
			}
			arrived <- strings.Fields(head)[1]
			<-release
			_, _ = io.WriteString(conn, hello)
		}
	}), func(g *gate) { g.conf.MaxConns = 1 })
	p := g.stage.(*forward).pool
	var asked sync.WaitGroup
	for i := range 5 {
		asked.Go(func() {
			if a := g.get(fmt.Sprintf("/%d", i)); a.StatusCode != 200 {
				t.Errorf("%d: %v", i, a)
			}
		})
		if i == 0 {
			arrived <- <-arrived
			continue
		}
		wait.Until(t, "it waits", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			n := 0
			for w := p.queue.first; w != nil; w = w.next {
				n++
			}
			return n == i
		})
	}
	for i := range 5 {
		if got := <-arrived; got != fmt.Sprintf("/%d", i) {
			t.Errorf("number %d was %s", i, got)
		}
		release <- struct{}{}
	}
	asked.Wait()
	if s := g.pools.Stats(); s.Open != 1 {
		t.Errorf("%d connections, at most 1 was allowed", s.Open)
	}
}

func TestBusyUpstreamIs503(t *testing.T) {
	for _, wait := range []time.Duration{0, 50 * time.Millisecond} {
		t.Run(wait.String(), func(t *testing.T) {
			release, arrived := make(chan struct{}), make(chan struct{}, 2)
			g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) {
				for br := bufio.NewReader(conn); readRequest(br) != ""; {
					arrived <- struct{}{}
					<-release
					_, _ = io.WriteString(conn, hello)
				}
			}), func(g *gate) { g.conf.MaxConns, g.conf.MaxConnWait = 1, wait })
			first := make(chan answer)
			go func() { first <- g.get("/") }()
			<-arrived
			if a := g.get("/"); a.StatusCode != 503 || a.Header.Get("X-Reason") != "upstream_busy" {
				t.Errorf("got %v", a)
			}
			close(release)
			if a := <-first; a.StatusCode != 200 {
				t.Errorf("first: %v", a)
			}
			if a := g.get("/"); a.StatusCode != 200 {
				t.Errorf("afterwards: %v", a)
			}
		})
	}
}

func TestOnlySoManyWaitForABusyUpstream(t *testing.T) {
	release, arrived := make(chan struct{}), make(chan struct{}, 4)
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) {
		for br := bufio.NewReader(conn); readRequest(br) != ""; {
			arrived <- struct{}{}
			<-release
			_, _ = io.WriteString(conn, hello)
		}
	}), func(g *gate) { g.conf.MaxConns, g.conf.MaxConnWait, g.conf.MaxWaiting = 1, time.Minute, 2 })
	answers := make(chan answer, 3)
	ask := func() { answers <- g.get("/") }
	go ask()
	<-arrived
	go ask()
	go ask()
	p := g.stage.(*forward).pool
	wait.Until(t, "two wait", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.queue.n == 2
	})
	if a := g.get("/"); a.StatusCode != 503 || a.Header.Get("X-Reason") != "upstream_busy" {
		t.Errorf("the third who would wait: %v", a)
	}
	close(release)
	for range 3 {
		if a := <-answers; a.StatusCode != 200 {
			t.Errorf("who came in time: %v", a)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.n != 0 {
		t.Errorf("%d wait when nobody does", p.queue.n)
	}
}

func TestPlaceOfALostConnectionGoesToWhoeverWaits(t *testing.T) {
	kill, arrived := make(chan struct{}), make(chan struct{}, 2)
	g := newGate(t, plainOrigin(t, func(conn net.Conn, n int) {
		br := bufio.NewReader(conn)
		readRequest(br)
		arrived <- struct{}{}
		if n == 0 {
			<-kill
			return
		}
		_, _ = io.WriteString(conn, hello)
	}), func(g *gate) { g.conf.MaxConns = 1 })
	first, second := make(chan answer), make(chan answer)
	go func() { first <- g.get("/") }()
	<-arrived
	go func() { second <- g.get("/") }()
	p := g.stage.(*forward).pool
	wait.Until(t, "the second waits", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.queue.first != nil
	})
	close(kill)
	if a := <-first; a.StatusCode != 502 {
		t.Errorf("first: %v", a)
	}
	if a := <-second; a.StatusCode != 200 {
		t.Errorf("second: %v", a)
	}
}

func TestKeepLetsGoOfOthersWithoutDisturbingCalls(t *testing.T) {
	release, arrived := make(chan struct{}), make(chan struct{}, 4)
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) {
		for br := bufio.NewReader(conn); ; {
			head := readRequest(br)
			if head == "" {
				return
			}
			arrived <- struct{}{}
			if strings.Contains(head, "/slow") {
				<-release
			}
			_, _ = io.WriteString(conn, hello)
		}
	}), nil)
	slow := make(chan answer)
	go func() { slow <- g.get("/slow") }()
	<-arrived
	g.get("/")
	wait.Until(t, "one idles", func() bool { return g.pools.Stats() == Stats{Open: 2, Idle: 1} })
	calls := []*pipeline.Version{{Upstream: g.stage}}
	one, other := &pipeline.API{Versions: calls}, &pipeline.API{Versions: calls}
	g.pools.Swap([]*pipeline.API{one, other}, nil)
	g.pools.Swap(nil, []*pipeline.API{other})
	if s := g.pools.Stats(); s.Idle != 1 {
		t.Errorf("kept: %+v", s)
	}
	g.pools.Swap(nil, []*pipeline.API{one})
	wait.Until(t, "the idle one is closed", func() bool { return g.pools.Stats() == Stats{Open: 1} })
	close(release)
	if a := <-slow; a.StatusCode != 200 {
		t.Errorf("call in flight: %v", a)
	}
	wait.Until(t, "none is left", func() bool { return g.pools.Stats() == Stats{} })
	if a := g.get("/"); a.StatusCode != 200 { // a request that still holds the old snapshot
		t.Errorf("afterwards: %v", a)
	}
	wait.Until(t, "none is kept", func() bool { return g.pools.Stats() == Stats{} })
}

func TestCloseEndsCallsInFlightAndThoseThatWait(t *testing.T) {
	arrived := make(chan struct{}, 2)
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) {
		br := bufio.NewReader(conn)
		readRequest(br)
		arrived <- struct{}{}
		readRequest(br)
	}), func(g *gate) { g.conf.MaxConns, g.conf.ResponseTimeout = 1, time.Minute })
	answers := make(chan answer, 2)
	go func() { answers <- g.get("/") }()
	<-arrived
	go func() { answers <- g.get("/") }()
	p := g.stage.(*forward).pool
	wait.Until(t, "the second waits", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.queue.first != nil
	})
	g.pools.Close()
	g.pools.Close()
	for range 2 {
		if a := <-answers; a.StatusCode != 502 && a.StatusCode != 503 {
			t.Errorf("got %v", a)
		}
	}
	if a := g.get("/"); a.StatusCode != 503 {
		t.Errorf("afterwards: %v", a)
	}
}

func TestIdleConnectionsAreSwept(t *testing.T) {
	var open atomic.Int32
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) {
		open.Add(1)
		answerAll(conn, hello)
		open.Add(-1)
	}), func(g *gate) { g.conf.IdleTimeout = 100 * time.Millisecond })
	g.get("/")
	wait.Until(t, "it is swept", func() bool { return g.pools.Stats() == Stats{} && open.Load() == 0 })
}

func TestAConnectionServesOneRequestWhereReuseIsOff(t *testing.T) {
	var made atomic.Int32
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) {
		made.Add(1)
		answerAll(conn, hello)
	}), func(g *gate) { g.def.Proxy.Transport = &definition.Transport{Reuse: new(bool)} })
	for i := range 3 {
		if a := g.get("/"); a.StatusCode != 200 || a.body != "hello" {
			t.Errorf("call %d: %v", i, a)
		}
	}
	wait.Until(t, "no connection is kept", func() bool { return g.pools.Stats() == Stats{} })
	if n := made.Load(); n != 3 {
		t.Errorf("%d connections for 3 calls", n)
	}
}

func TestOldConnectionsAreReplaced(t *testing.T) {
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) { answerAll(conn, hello) }), nil)
	g.get("/")
	p := g.stage.(*forward).pool
	wait.Until(t, "it idles", func() bool { return g.pools.Stats().Idle == 1 })
	p.mu.Lock()
	p.idle[0].born -= maxAge
	p.mu.Unlock()
	g.get("/")
	wait.Until(t, "it is closed", func() bool { return g.pools.Stats() == Stats{} })
}

func TestIdleConnectionsHoldNoBuffer(t *testing.T) {
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) {
		answerAll(conn, ok+"X-A: "+strings.Repeat("a", 50<<10)+"\r\nContent-Length: 0\r\n\r\n")
	}), nil)
	g.get("/")
	wait.Until(t, "it idles", func() bool { return g.pools.Stats().Idle == 1 })
	p := g.stage.(*forward).pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.idle[0]; c.buf != nil || c.spare != nil || c.in != nil || c.out != nil {
		t.Error("an idle connection holds a buffer")
	}
}

// batch keeps what is written until it is flushed, so that several TLS records
// travel together.
type batch struct {
	net.Conn
	held []byte
	hold bool
}

func (b *batch) Write(p []byte) (int, error) {
	if !b.hold {
		return b.Conn.Write(p)
	}
	b.held = append(b.held, p...)
	return len(p), nil
}

// TestBytesThatTLSHasTakenAreNotTheNextAnswer has junk arrive with the answer
// in a TLS record of its own: nothing is left on the connection to find.
func TestBytesThatTLSHasTakenAreNotTheNextAnswer(t *testing.T) {
	ca := authority(t)
	addr := testenv.RawOrigin(t, func(conn net.Conn, n int) {
		b := &batch{Conn: conn}
		secure := tls.Server(b, &tls.Config{Certificates: []tls.Certificate{ca.server}})
		br := bufio.NewReader(secure)
		readRequest(br)
		b.hold = n == 0
		_, _ = io.WriteString(secure, hello)
		if n > 0 {
			return
		}
		_, _ = io.WriteString(secure, ok+"Content-Length: 4\r\n\r\nevil")
		_, _ = conn.Write(b.held)
		b.hold = false
		readRequest(br)
	})
	g := newGate(t, "https://"+addr, func(g *gate) { g.conf.CAFile = ca.file })
	cl := g.dial()
	for i := range 2 {
		if a := cl.get("/"); a.StatusCode != 200 || a.body != "hello" {
			t.Errorf("request %d: %v", i, a)
		}
	}
}

// TestEachRequestHasItsOwnTimeout has APIs of different patience share a
// connection.
func TestEachRequestHasItsOwnTimeout(t *testing.T) {
	routes(t, func(t *testing.T, r route) {
		g := r.gate(t, func(conn net.Conn, _ int) {
			br := bufio.NewReader(conn)
			readRequest(br)
			_, _ = io.WriteString(conn, hello)
			readRequest(br)
			readRequest(br) // silent until it is closed
		}, func(g *gate) { g.conf.ResponseTimeout = 2 * patience })
		cl := g.dial()
		cl.get("/")
		conf := g.conf
		conf.ResponseTimeout = 100 * time.Millisecond
		hasty, err := Compile(g.def, g.pools, conf)
		if err != nil {
			t.Fatal(err)
		}
		if hasty.(*forward).pool != g.stage.(*forward).pool {
			t.Fatal("they do not share connections")
		}
		g.mu.Lock()
		g.stage = hasty
		g.mu.Unlock()
		start := time.Now()
		if a := cl.get("/"); a.StatusCode != 504 {
			t.Errorf("got %v", a)
		}
		if took := time.Since(start); took < 100*time.Millisecond {
			t.Errorf("given up after %v, want 100 ms", took)
		}
	})
}
