package upstream

import (
	"bufio"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/testenv/race"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

const large = 24 << 20

// allocated runs f and returns how many bytes were allocated meanwhile, by
// everybody.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// pattern is a body of a length that cannot be taken for another one.
type pattern struct{ at, end int }

func (p *pattern) Read(b []byte) (int, error) {
	if p.at == p.end {
		return 0, io.EOF
	}
	n := min(len(b), p.end-p.at)
	for i := range n {
		b[i] = byte((p.at + i) * 31 >> 3)
	}
	p.at += n
	return n, nil
}

func sumOf(r io.Reader) (int64, uint64, error) {
	h := fnv.New64a()
	n, err := io.Copy(h, struct{ io.Reader }{r})
	return n, h.Sum64(), err
}

func TestLargeBodiesPassInBoundedMemory(t *testing.T) {
	routes(t, func(t *testing.T, r route) {
		_, want, _ := sumOf(&pattern{end: large})
		bound := int64(large / 8)
		if race.Enabled {
			bound = large / 2 // the race detector drops pooled buffers at random
		}
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("up, chunked=%t", chunked), func(t *testing.T) {
				g := r.gate(t, func(conn net.Conn, _ int) {
					req, err := http.ReadRequest(bufio.NewReader(conn))
					if err != nil {
						return
					}
					if (req.ContentLength < 0) != chunked {
						t.Errorf("length %d", req.ContentLength)
					}
					n, sum, err := sumOf(req.Body)
					body := fmt.Sprint(n, sum, err)
					_, _ = fmt.Fprintf(conn, ok+"Content-Length: %d\r\n\r\n%s", len(body), body)
				}, nil)
				cl := g.dial()
				used := allocated(func() {
					req, _ := http.NewRequest("POST", "http://gate.test/", &pattern{end: large})
					if !chunked {
						req.ContentLength = large
					}
					go func() {
						if err := req.Write(cl.conn); err != nil {
							t.Errorf("writing: %v", err)
						}
					}()
					if a := cl.read("POST"); a.body != fmt.Sprint(int64(large), want, nil) {
						t.Errorf("got %v", a)
					}
				})
				if used > bound {
					t.Errorf("%d bytes were allocated for a body of %d", used, large)
				}
			})
			t.Run(fmt.Sprintf("down, chunked=%t", chunked), func(t *testing.T) {
				g := r.gate(t, func(conn net.Conn, _ int) {
					readRequest(bufio.NewReader(conn))
					resp := http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(&pattern{end: large}), ContentLength: large}
					if chunked {
						resp.ContentLength, resp.TransferEncoding = -1, []string{"chunked"}
					}
					if err := resp.Write(conn); err != nil {
						t.Errorf("writing: %v", err)
					}
				}, nil)
				used := allocated(func() {
					cl := g.dial()
					cl.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
					resp, err := http.ReadResponse(cl.br, nil)
					if err != nil {
						t.Fatal(err)
					}
					n, sum, err := sumOf(resp.Body)
					if n != large || sum != want || err != nil || (resp.ContentLength < 0) != chunked {
						t.Errorf("got %d bytes, right sum %t, error %v", n, sum == want, err)
					}
				})
				if used > bound {
					t.Errorf("%d bytes were allocated for a body of %d", used, large)
				}
			})
		}
	})
}

func TestSlowClientHoldsTheUpstreamBack(t *testing.T) {
	routes(t, func(t *testing.T, r route) {
		stuck, gone := make(chan int), make(chan error)
		g := r.gate(t, func(conn net.Conn, _ int) {
			holdLittle(t, conn)
			readRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, ok+"Content-Length: 1000000000000\r\n\r\n")
			piece, sent := make([]byte, 64<<10), 0
			for {
				_ = conn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
				n, err := conn.Write(piece)
				sent += n
				if errors.Is(err, os.ErrDeadlineExceeded) {
					break
				}
			}
			stuck <- sent
			_ = conn.SetReadDeadline(time.Now().Add(60 * time.Second))
			_, err := conn.Read(piece)
			gone <- err
		}, nil)
		cl := g.dial()
		holdLittle(t, cl.conn)
		cl.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if sent := <-stuck; sent > 32<<20 {
			t.Errorf("%d bytes were taken for a client that reads none", sent)
		}
		_ = cl.conn.Close()
		if err := <-gone; errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the upstream's connection outlived the client's")
		}
	})
}

// holdLittle keeps a connection's own buffers from growing with the machine's
// settings, so that what is taken is what the gateway takes.
func holdLittle(t *testing.T, conn net.Conn) {
	t.Helper()
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return // TLS; its connection is inside
	}
	if err := errors.Join(tcp.SetReadBuffer(64<<10), tcp.SetWriteBuffer(64<<10)); err != nil {
		t.Error(err)
	}
}

// TestEarlyRefusalEndsTheUpload has an upstream answer before it has the body.
func TestEarlyRefusalEndsTheUpload(t *testing.T) {
	routes(t, func(t *testing.T, r route) {
		for name, more := range map[string]bool{"client waits": false, "client goes on": true} {
			t.Run(name, func(t *testing.T) {
				gone := make(chan error, 1)
				g := r.gate(t, func(conn net.Conn, n int) {
					br := bufio.NewReader(conn)
					for line := ""; line != "\r\n"; line, _ = br.ReadString('\n') {
					}
					_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!")
					if n > 0 {
						return
					}
					_ = conn.SetReadDeadline(time.Now().Add(60 * time.Second))
					_, err := io.Copy(io.Discard, br)
					gone <- err
				}, nil)
				cl := g.dial()
				cl.send("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n\r\npart")
				if more {
					go func() { _, _ = io.Copy(cl.conn, &pattern{end: 40_000_000}) }()
				}
				a := cl.read("PUT")
				if a.StatusCode != 413 || a.body != "no!" || !a.Close {
					t.Errorf("got %v, close %t", a, a.Close)
				}
				if err := <-gone; errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("the upstream's connection is still open")
				}
				wait.Until(t, "it is not kept", func() bool { return g.pools.Stats() == Stats{} })
			})
		}
	})
}

// TestEarlyAcceptanceLetsTheUploadGoOn has an upstream answer 200 first and
// read afterwards.
func TestEarlyAcceptanceLetsTheUploadGoOn(t *testing.T) {
	routes(t, func(t *testing.T, r route) {
		g := r.gate(t, func(conn net.Conn, _ int) {
			req, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, ok+"Content-Length: 4\r\n\r\n")
			n, _, err := sumOf(req.Body)
			if n != 1_000_000 || err != nil {
				t.Errorf("body of %d bytes, %v", n, err)
			}
			_, _ = io.WriteString(conn, "done")
		}, nil)
		cl := g.dial()
		cl.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
		go func() { _, _ = io.Copy(cl.conn, &pattern{end: 1_000_000}) }()
		if a := cl.read("POST"); a.StatusCode != 200 || a.body != "done" || a.Close {
			t.Errorf("got %v, close %t", a, a.Close)
		}
	})
}

func TestUploadsThatEndBadly(t *testing.T) {
	for _, c := range []struct {
		name   string
		raw    string
		then   func(conn net.Conn)
		status int // 0: nobody is there to read it
		reason string
	}{
		{"client stalls", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\npart", nil, 408, "request_timeout"},
		{"client leaves", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\npart", func(c net.Conn) { _ = c.Close() }, 0, ""},
		{"client ends its half", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", halfClose, 499, "client_gone"},
		{"malformed chunk", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX", nil, 400, "bad_request"},
		{"too large", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nfffffffff\r\n", nil, 413, "body_too_large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			routes(t, func(t *testing.T, r route) {
				gone := make(chan error, 1)
				g := r.gate(t, func(conn net.Conn, _ int) {
					_ = conn.SetReadDeadline(time.Now().Add(60 * time.Second))
					req, err := http.ReadRequest(bufio.NewReader(conn))
					if err == nil {
						_, err = io.Copy(io.Discard, req.Body)
					}
					gone <- err
				}, func(g *gate) {
					if c.status == 408 {
						g.readTimeout = 200 * time.Millisecond
					}
				})
				cl := g.dial()
				cl.send(c.raw)
				if c.then != nil {
					c.then(cl.conn)
				}
				if c.status != 0 {
					if a := cl.read("POST"); a.StatusCode != c.status || a.Header.Get("X-Reason") != c.reason {
						t.Errorf("got %v, want %d %s", a, c.status, c.reason)
					}
				}
				if err := <-gone; err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("the upstream read the body to the end %v; it was not to take a part for the whole", err)
				}
				wait.Until(t, "the connection is not kept", func() bool { return g.pools.Stats() == Stats{} })
			})
		})
	}
}

func TestUpstreamThatTakesNoBodyIsATimeout(t *testing.T) {
	routes(t, func(t *testing.T, r route) {
		done := make(chan struct{})
		g := r.gate(t, func(conn net.Conn, _ int) { <-done }, func(g *gate) { g.conf.ResponseTimeout = 200 * time.Millisecond })
		defer close(done)
		cl := g.dial()
		cl.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n")
		go func() { _, _ = io.Copy(cl.conn, &pattern{end: 100_000_000}) }()
		if a := cl.read("POST"); a.StatusCode != 504 {
			t.Errorf("got %v", a)
		}
	})
}

func TestUpstreamThatLeavesDuringTheBodyIsAReset(t *testing.T) {
	routes(t, func(t *testing.T, r route) {
		g := r.gate(t, func(conn net.Conn, _ int) {
			_, _ = io.ReadFull(conn, make([]byte, 100_000))
			reset(conn)
		}, nil)
		cl := g.dial()
		cl.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n")
		go func() { _, _ = io.Copy(cl.conn, &pattern{end: 100_000_000}) }()
		if a := cl.read("POST"); a.StatusCode != 502 || a.Header.Get("X-Reason") != "upstream_reset" {
			t.Errorf("got %v", a)
		}
	})
}

func TestSlowUploadIsNotATimeoutOfTheUpstream(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second // within which a busy machine's upstream answers
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) {
		req, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		_, _ = io.WriteString(conn, hello)
	}), func(g *gate) { g.conf.ResponseTimeout = timeout })
	cl := g.dial()
	cl.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n")
	for range 5 {
		<-time.After(timeout / 4) // the client is slow: it takes longer than the upstream may
		cl.send(strings.Repeat("x", 4000))
	}
	if a := cl.read("POST"); a.StatusCode != 200 {
		t.Errorf("got %v", a)
	}
}

// TestPanicOfABodyEndsOneCallOnly has the body's reader fail in the worst way.
func TestPanicOfABodyEndsOneCallOnly(t *testing.T) {
	caught := make(chan any, 1)
	g := newGate(t, plainOrigin(t, func(conn net.Conn, _ int) { _, _ = io.Copy(io.Discard, conn) }), func(g *gate) {
		g.recovered = caught
		g.prepare = func(ex *pipeline.Exchange) { ex.Call.Stream, ex.Call.Length = panics{}, -1 }
	})
	cl := g.dial()
	cl.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if got := <-caught; got != "boom" {
		t.Errorf("caught %v", got)
	}
	wait.Until(t, "the connection is given up", func() bool { return g.pools.Stats() == Stats{} })
}

type panics struct{}

func (panics) Read([]byte) (int, error) { panic("boom") }
