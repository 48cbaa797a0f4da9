package upstream

import (
	"bufio"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/rawio"
)

// TestWhatThePollerHasNotToldYetIsNoAnswer has an upstream say more than one
// answer to what upstreams tend to say more to, right before the connection is
// used again, in a gateway whose poller has had no time to notice. It would
// notice while the next answer is waited for, and wake who waits to this.
func TestWhatThePollerHasNotToldYetIsNoAnswer(t *testing.T) {
	const head, interim = "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n"
	for _, c := range []struct{ name, request, answer string }{
		{"a body that is taken for a request", "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi", hello},
		{"the same, of a GET", "GET /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi", hello},
		{"HEAD", "HEAD /1 HTTP/1.1\r\nHost: x\r\n\r\n", strings.TrimSuffix(hello, "hello")},
		{"204", "GET /1 HTTP/1.1\r\nHost: x\r\n\r\n", head},
		{"an interim answer", "GET /1 HTTP/1.1\r\nHost: x\r\n\r\n", interim + hello},
	} {
		t.Run(c.name, func(t *testing.T) { testNotToldYet(t, c.request, c.answer) })
	}
}

func testNotToldYet(t *testing.T, request, answer string) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	conns := make(chan net.Conn, 1)
	origin := plainOrigin(t, func(conn net.Conn, n int) {
		if n == 0 {
			conns <- conn
		}
		for br := bufio.NewReader(conn); ; {
			switch head := readRequest(br); {
			case head == "":
				return
			case strings.Contains(head, " /1 "):
				_, _ = io.WriteString(conn, answer)
			default:
				<-time.After(5 * time.Millisecond)
				_, _ = io.WriteString(conn, hello)
			}
		}
	})
	pools := NewPools()
	defer pools.Close()
	stage, err := Compile(&definition.API{ID: "test", Proxy: definition.Proxy{TargetURL: origin}}, pools, testConfig())
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, stage, request); got != "" && got != "hello" {
		t.Fatalf("first: %q", got)
	}
	p := stage.(*forward).pool
	p.mu.Lock()
	p.idle[0].since = p.now() + time.Minute
	p.mu.Unlock()
	if raw := rawio.Conn(<-conns); rawio.Supported { // nothing else may run until the next request is out
		_ = raw.Control(func(fd uintptr) { _, _ = rawio.Write(fd, []byte(evil)) })
	}
	for range 2 {
		if got := ask(t, stage, "GET /2 HTTP/1.1\r\nHost: x\r\n\r\n"); got != "hello" {
			t.Errorf("next: %q", got)
		}
	}
}

// ask has a stage answer a request on this goroutine.
func ask(t *testing.T, stage pipeline.Stage, request string) string {
	t.Helper()
	call, fault := wire.NewCall([]byte(request), wireConfig())
	if fault != nil {
		t.Fatal(fault)
	}
	ex := pipeline.For(call)
	defer ex.Release()
	ex.Rest = call.Path
	if stage.Handle(ex) != pipeline.Answered {
		return ex.Rejection.Reason.String()
	}
	return string(ex.Answer.Body)
}

// TestASurplusIsSeenBehindAnAnswerInPieces has the beginning of an answer come
// before the request, so that what answers that one completes it. The rest of it
// is not read, and still a surplus.
func TestASurplusIsSeenBehindAnAnswerInPieces(t *testing.T) {
	const part = ok + "Content-Length: 20\r\n\r\nevil"
	act, acted := make(chan struct{}), make(chan struct{})
	g := newGate(t, plainOrigin(t, func(conn net.Conn, n int) {
		for br := bufio.NewReader(conn); readRequest(br) != ""; n++ {
			_, _ = io.WriteString(conn, hello[:10])
			if n == 1 {
				<-time.After(20 * time.Millisecond)
			}
			_, _ = io.WriteString(conn, hello[10:])
			if n == 0 {
				<-act
				_, _ = io.WriteString(conn, part)
				close(acted)
			}
		}
	}), nil)
	cl := g.dial()
	cl.get("/")
	act <- struct{}{}
	<-acted
	if a := cl.get("/"); a.body != "hello" {
		t.Errorf("got %q", a.body)
	}
}
