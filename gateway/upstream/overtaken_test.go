package upstream

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/wire"
)

// TestAConnectionIsReusableAfterAnAnswerOvertakesItsUpload has an upstream answer
// before the client has sent its body. The upload then ends when no read waits for
// the answer: the next request must not fail on the deadline that the upload sets.
func TestAConnectionIsReusableAfterAnAnswerOvertakesItsUpload(t *testing.T) {
	for _, r := range []struct {
		name  string
		plain bool
	}{{"raw", false}, {"plain", true}} {
		t.Run(r.name, func(t *testing.T) { testOvertakenUpload(t, r.plain) })
	}
}

func testOvertakenUpload(t *testing.T, plain bool) {
	const post = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) {
		br := bufio.NewReader(conn)
		readRequest(br)
		_, _ = io.WriteString(conn, hello)
		_, _ = br.Discard(len("2\r\nhi\r\n0\r\n\r\n"))
		if readRequest(br) != "" {
			_, _ = io.WriteString(conn, hello)
		}
	}), func(g *gate) { g.conf.PlainIO = plain })
	p := g.stage.(*forward).pool
	c, err := p.take(t.Context(), patience)
	if err != nil {
		t.Fatal(err)
	}
	defer c.drop()

	// All deadlines are an hour away, so that only the upload's can pass.
	now := p.now() + time.Hour
	if err := c.begin(now, now+time.Hour, wire.Client{}); err != nil {
		t.Fatal(err)
	}
	if err := c.send([]byte(post), false); err != nil {
		t.Fatal(err)
	}
	body, client := io.Pipe()
	u := startUpload(c, &wire.Call{Stream: body, Length: -1}, patience)
	readHello(t, c)
	_, _ = io.WriteString(client, "hi")
	_ = client.Close()
	if err := u.result(nil, 200, false); err != nil || !u.complete() {
		t.Fatalf("the upload ended with %v, %v", err, u.err)
	}
	c.finish(true, p.now())

	if again, err := p.take(t.Context(), patience); again != c {
		t.Fatalf("the pool returned another connection, error %v", err)
	}
	if err := c.begin(now, now+time.Hour, wire.Client{}); err != nil {
		t.Fatal(err)
	}
	if err := c.send([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), true); err != nil {
		t.Fatalf("the next request: %v", err)
	}
	readHello(t, c)
}

// readHello reads the whole of one answer.
func readHello(t *testing.T, c *conn) {
	t.Helper()
	for c.w < len(hello) {
		if err := c.fill(); err != nil {
			t.Fatal(err)
		}
	}
	if got := string(c.buf[:c.w]); got != hello {
		t.Fatalf("received %q, want %q", got, hello)
	}
	c.r = c.w
}
