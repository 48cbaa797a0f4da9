package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/internal/testenv"
)

// besides serves an upstream that begins to answer before it reads, by path:
// /echo answers with what it reads, /deaf streams and reads nothing, and
// /short gives a short answer at once. /cut goes away in the middle of both.
func besides(t *testing.T) string {
	return "http://" + testenv.RawOrigin(t, func(c net.Conn, _ int) {
		br := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			switch req.URL.Path {
			case "/echo":
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
				w := httputil.NewChunkedWriter(c)
				if _, err := io.Copy(w, req.Body); err != nil {
					return
				}
				_ = w.Close()
				_, _ = io.WriteString(c, "\r\n")
			case "/deaf":
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
				if _, err := io.Copy(c, endless{}); err != nil {
					return
				}
			case "/cut":
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
				if _, err := io.ReadFull(req.Body, make([]byte, 300_000)); err != nil {
					t.Errorf("the upstream read: %v", err)
				}
				return
			case "/short":
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				if n, err := io.Copy(io.Discard, req.Body); err != nil || n != 400_000 {
					t.Errorf("the upstream got %d bytes, %v", n, err)
				}
			}
		}
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// besideClient is one connection that takes its time.
type besideClient struct {
	*net.TCPConn
	t    *testing.T
	resp *http.Response
}

func newBesideClient(t *testing.T, addr, head string) *besideClient {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	b := &besideClient{TCPConn: c.(*net.TCPConn), t: t}
	b.send(head)
	return b
}

func (c *besideClient) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// answered reads the head of the answer.
func (c *besideClient) answered() io.Reader {
	c.t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != 200 {
		c.t.Fatalf("%v, %v", resp, err)
	}
	c.resp = resp
	return resp.Body
}

func TestAnswersGoOutWhileTheBodyComesIn(t *testing.T) {
	g, addr := serve(t)
	g.Apply(bundle("1", keyless("a", "/a", besides(t))))
	half := strings.Repeat("x", 200_000)
	const start = "POST /a/echo HTTP/1.1\r\nHost: a\r\n"
	t.Run("length", func(t *testing.T) {
		c := newBesideClient(t, addr, start+"Content-Length: 400000\r\n\r\n"+half)
		body := c.answered() // before the second half was sent
		if _, err := io.ReadFull(body, make([]byte, 100_000)); err != nil {
			t.Fatal(err)
		}
		c.send(half)
		if n, err := io.Copy(io.Discard, body); err != nil || n != 300_000 || !c.resp.Close {
			t.Errorf("%d bytes more, %v, close %v", n, err, c.resp.Close)
		}
	})
	t.Run("chunks", func(t *testing.T) {
		c := newBesideClient(t, addr, fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", start, len(half), half))
		body := c.answered()
		c.send(fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(half), half))
		if n, err := io.Copy(io.Discard, body); err != nil || n != 400_000 {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	t.Run("body that breaks off", func(t *testing.T) {
		c := newBesideClient(t, addr, start+"Content-Length: 400000\r\n\r\n"+half)
		body := c.answered()
		_ = c.CloseWrite()
		if n, err := io.Copy(io.Discard, body); err == nil {
			t.Errorf("%d bytes were taken for the whole", n)
		}
	})
	t.Run("body above the limit", func(t *testing.T) {
		c := newBesideClient(t, addr, fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", start, len(half), half))
		body := c.answered()
		c.send("fffffff\r\n")
		if n, err := io.Copy(io.Discard, body); err == nil {
			t.Errorf("%d bytes were taken for the whole", n)
		}
	})
	t.Run("client that leaves", func(t *testing.T) {
		c := newBesideClient(t, addr, "POST /a/deaf HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"+half)
		if _, err := io.ReadFull(c.answered(), make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		c.Close()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(10 * time.Second); g.Connections().Open > 0; <-tick.C {
			if time.Now().After(end) {
				t.Fatal("the gateway goes on")
			}
		}
	})
	t.Run("short answer", func(t *testing.T) {
		c := newBesideClient(t, addr, "POST /a/short HTTP/1.1\r\nHost: a\r\nContent-Length: 400000\r\n\r\n"+half)
		c.send(half)
		if got, err := io.ReadAll(c.answered()); err != nil || string(got) != "ok" || c.resp.Close {
			t.Errorf("%q, %v, close %v", got, err, c.resp.Close)
		}
	})
	t.Run("many at once", func(t *testing.T) {
		done := make(chan error, 16)
		for range cap(done) {
			go func() {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					done <- err
					return
				}
				defer c.Close()
				go fmt.Fprintf(c, "%sContent-Length: 1000000\r\n\r\n%s", start, strings.Repeat("y", 1_000_000))
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err == nil {
					var n int64
					if n, err = io.Copy(io.Discard, resp.Body); err == nil && n != 1_000_000 {
						err = fmt.Errorf("%d bytes", n)
					}
				}
				done <- err
			}()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// The call that another API goes on as is over when the answer begins.
func TestABodyEndsWithItsAnswerBehindAnotherAPI(t *testing.T) {
	g, addr := serve(t, func(d *gateway.Deps) { d.Config.Wire.ReadTimeout = time.Minute })
	up := besides(t)
	g.Apply(bundle("1", within(t, "o", "inner", up, open), within(t, "o", "front", "svc://inner", open)))
	half := strings.Repeat("x", 200_000)
	for _, path := range []string{"/inner/cut", "/front/cut"} {
		c := newBesideClient(t, addr, "POST "+path+" HTTP/1.1\r\nHost: a\r\nContent-Length: 400000\r\n\r\n"+half)
		body := c.answered()
		c.send(half[:100_000]) // and nothing more for now
		_, err := io.Copy(io.Discard, body)
		if timeout, ok := err.(net.Error); err == nil || ok && timeout.Timeout() {
			t.Errorf("%s: the answer ended with %v", path, err)
		}
	}
}
