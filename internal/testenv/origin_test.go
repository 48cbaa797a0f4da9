package testenv_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/internal/testenv"
)

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(60 * time.Second))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestAnOriginAnswersUntilItsTestEnds(t *testing.T) {
	var idle net.Conn
	t.Run("owner", func(t *testing.T) {
		addr := testenv.Origin(t, func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("you sent " + string(ctx.PostBody())) })
		status, body, err := fasthttp.Get(nil, "http://"+addr)
		if err != nil || status != 200 || string(body) != "you sent " {
			t.Errorf("got %d %q, %v", status, body, err)
		}
		var errDial error
		if idle, errDial = net.Dial("tcp", addr); errDial != nil {
			t.Fatal(errDial)
		}
		// One answered request: the connection is known to have been accepted.
		if _, err := io.WriteString(idle, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(idle).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatalf("got %q, %v", line, err)
		}
	})
	defer idle.Close()
	if err := idle.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, idle); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Error("the connection outlived its test")
	}
	if _, err := net.Dial("tcp", idle.RemoteAddr().String()); err == nil {
		t.Error("the port outlived its test")
	}
}

func TestARawOriginSaysWhatItIsTold(t *testing.T) {
	addr := testenv.RawOrigin(t, func(conn net.Conn, n int) {
		_, _ = conn.Write([]byte{'0' + byte(n)})
		if n == 1 {
			_ = conn.(*net.TCPConn).SetLinger(0) // closing resets
			_, _ = conn.Read(make([]byte, 1))
		}
	})
	if got, err := io.ReadAll(dial(t, addr)); string(got) != "0" || err != nil {
		t.Errorf("first connection: %q, %v", got, err)
	}
	second := dial(t, addr)
	if _, err := second.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(second); err == nil {
		t.Errorf("second connection: %q and no reset", got)
	}
}

func TestARawOriginIsWaitedFor(t *testing.T) {
	ended := false
	outer := t
	t.Run("owner", func(t *testing.T) {
		entered := make(chan struct{})
		addr := testenv.RawOrigin(t, func(conn net.Conn, _ int) {
			close(entered)
			_, _ = io.Copy(io.Discard, conn) // until cut
			ended = true
		})
		dial(outer, addr) // stays: to be cut by the origin
		<-entered
	})
	if !ended {
		t.Error("the owner ended before its connection's goroutine")
	}
}
