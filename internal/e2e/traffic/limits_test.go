package traffic

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// pattern is a body of any length that is different everywhere.
type pattern struct{ at, size int64 }

// Read implements io.Reader.
func (p *pattern) Read(b []byte) (int, error) {
	if p.at == p.size {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), p.size-p.at)]
	for i := range b {
		at := p.at + int64(i)
		b[i] = byte(at) ^ byte(at>>8) ^ byte(at>>16)
	}
	p.at += int64(len(b))
	return len(b), nil
}

// sumOf is the checksum of a pattern.
func sumOf(size int64) string {
	sum := sha256.New()
	_, _ = io.Copy(sum, &pattern{size: size})
	return hex.EncodeToString(sum.Sum(nil))
}

// bulk serves /up, which answers with the checksum of the body, /down/<size>,
// a pattern, in chunks below /chunks/<size>, and /echo, which answers with the
// body while it reads it.
func bulk(t testing.TB) string {
	return "http://" + testenv.RawOrigin(t, func(c net.Conn, _ int) {
		var none seen
		br := bufio.NewReaderSize(c, 64<<10)
		for {
			req, err := none.readRequest(br)
			if err != nil {
				return
			}
			if err := serveBulk(c, req); err != nil {
				return
			}
		}
	})
}

func serveBulk(c net.Conn, req *request) error {
	_, size, _ := strings.Cut(req.path[1:], "/")
	n, _ := strconv.ParseInt(size, 10, 64)
	switch {
	case strings.HasPrefix(req.path, "/down/"):
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", n)
		_, err := io.Copy(c, &pattern{size: n})
		return err
	case strings.HasPrefix(req.path, "/chunks/"):
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		if _, err := io.Copy(chunkWriter{c}, &pattern{size: n}); err != nil {
			return err
		}
		_, err := io.WriteString(c, "0\r\n\r\n")
		return err
	case strings.HasPrefix(req.path, "/echo"):
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", req.length)
		_, err := io.CopyN(c, req.br, req.length)
		return err
	}
	var sum hash.Hash = sha256.New()
	if err := req.drainTo(sum); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n%x", sum.Sum(nil))
	return err
}

// chunkWriter makes each write a chunk.
type chunkWriter struct{ w io.Writer }

// Write implements io.Writer.
func (c chunkWriter) Write(p []byte) (int, error) {
	if _, err := fmt.Fprintf(c.w, "%x\r\n", len(p)); err != nil {
		return 0, err
	}
	n, err := c.w.Write(p)
	if err == nil {
		_, err = io.WriteString(c.w, "\r\n")
	}
	return n, err
}

// memory is what a process holds, and has held at most, in KiB.
func memory(t testing.TB, pid int) (now, most int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "VmRSS:"):
			now, _ = strconv.Atoi(fields[1])
		case strings.HasPrefix(line, "VmHWM:"):
			most, _ = strconv.Atoi(fields[1])
		}
	}
	return now, most
}

// Bodies far larger than what the gateway may hold go through it in both
// directions, whole.
func TestLargeBodiesStreamInLittleMemory(t *testing.T) {
	t.Parallel()
	g := newTraffic(t, settings{"gateway.max_request_body": "1GiB"}, nil, rig.APIDef("bulk", bulk(t), true))
	rig.Call(t, "POST", g.Traffic+"/bulk/up", strings.Repeat("x", 100_000)) // what is needed once is there
	before, _ := memory(t, g.PID())
	const size = 200 << 20
	want := sumOf(size)
	for _, c := range []struct {
		name, path string
		length     int64
	}{
		{"up, length", "/bulk/up", size},
		{"up, chunked", "/bulk/up", -1},
	} {
		req, err := http.NewRequest("POST", g.Traffic+c.path, &pattern{size: size})
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = c.length
		resp, err := rig.FreshConns.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(got) != want {
			t.Errorf("%s: %d %.80q, %v", c.name, resp.StatusCode, got, err)
		}
	}
	for _, path := range []string{"/bulk/down/", "/bulk/chunks/"} {
		resp, err := rig.FreshConns.Get(g.Traffic + path + strconv.Itoa(size))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.New()
		n, err := io.Copy(sum, resp.Body)
		resp.Body.Close()
		if err != nil || n != size || hex.EncodeToString(sum.Sum(nil)) != want {
			t.Errorf("%s: %d bytes, %v", path, n, err)
		}
	}
	_, most := memory(t, g.PID())
	t.Logf("memory was %d KiB before, and %d KiB at most", before, most)
	if most-before > 30<<10 {
		t.Errorf("four bodies of 200 MiB took %d KiB", most-before)
	}
}

// An upstream may answer while it is still reading, as converters do.
func TestAnUpstreamMayAnswerWhileItReads(t *testing.T) {
	t.Parallel()
	g := newTraffic(t, settings{"gateway.max_request_body": "1GiB"}, nil, rig.APIDef("bulk", bulk(t), true))
	const size = 50 << 20
	c := connect(t, g.addr)
	go func() {
		fmt.Fprintf(c, "POST /bulk/echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", size)
		_, _ = io.Copy(c, &pattern{size: size})
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, resp.Body)
	if err != nil || n != size || hex.EncodeToString(sum.Sum(nil)) != sumOf(size) {
		t.Errorf("%d: %d bytes of %d came back, %v", resp.StatusCode, n, size, err)
	}
}

// Whatever a client presses has a limit and a status of its own.
func TestLimitsThatAClientCanPress(t *testing.T) {
	t.Parallel()
	asked := &seen{}
	g := newTraffic(t, settings{
		"gateway.max_request_body": "64KiB", "gateway.max_header": "4KiB", "gateway.max_header_count": "20", "gateway.max_url": "1KiB",
	}, nil, rig.APIDef("open", honest(t, asked), true))
	const start = "POST /open/x HTTP/1.1\r\nHost: a\r\n"
	length, chunks := sized, chunked
	framed := func(frame func(string) (string, string), size int) string {
		headers, body := frame(strings.Repeat("x", size))
		return start + headers + "\r\n" + body
	}
	for _, c := range []struct {
		name, raw string
		status    int
		reason    string
	}{
		{"URL at the limit", "GET /open/" + strings.Repeat("x", 1024-6) + " HTTP/1.1\r\nHost: a\r\n\r\n", 200, ""},
		{"URL above the limit", "GET /open/" + strings.Repeat("x", 1024-5) + " HTTP/1.1\r\nHost: a\r\n\r\n", 414, "url_too_long"},
		{"URL far above", "GET /open/" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\nHost: a\r\n\r\n", 414, "url_too_long"},
		{"query above the limit", "GET /open/x?" + strings.Repeat("x", 1024) + " HTTP/1.1\r\nHost: a\r\n\r\n", 414, "url_too_long"},
		{"headers at the limit", "GET /open/x HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 19) + "\r\n", 200, ""},
		{"headers above the limit", "GET /open/x HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 20) + "\r\n", 431, "header_too_large"},
		{"head above the limit", "GET /open/x HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("y", 4<<10) + "\r\n\r\n", 431, "header_too_large"},
		{"head without end", "GET /open/x HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("y", 1<<20), 431, "header_too_large"},
		{"body at the limit", framed(length, 64<<10), 200, ""},
		{"body above the limit", framed(length, 64<<10+1), 413, "body_too_large"},
		{"body far above the limit", start + "Content-Length: 999999999999999999\r\n\r\n", 413, "body_too_large"},
		{"chunks at the limit", framed(chunks, 64<<10), 200, ""},
		{"chunks above the limit", framed(chunks, 64<<10+1), 413, "body_too_large"},
		{"many chunks above the limit", start + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("400\r\n"+strings.Repeat("x", 1024)+"\r\n", 65), 413, "body_too_large"},
		{"chunk beyond all numbers", start + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", 400, "bad_request"},
		{"chunk line without end", start + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 100_000), 400, "bad_request"},
		{"trailers without end", start + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("X: y\r\n", 20_000), 400, "bad_request"},
	} {
		got := parse(t, conversation(t, g.addr, c.raw))
		if len(got) != 1 || got[0].Status != c.status || got[0].Reason() != c.reason {
			t.Errorf("%s: %v, want %d %s", c.name, got, c.status, c.reason)
		}
	}
	g = newTraffic(t, settings{"gateway.read_timeout": "400ms"}, nil, rig.APIDef("open", honest(t, asked), true))
	t.Run("slow head", func(t *testing.T) {
		expectTimeout(t, g.addr, "GET /open/x HTTP/1.1\r\nX: ", 1, 50*time.Millisecond)
	})
	t.Run("slow small body", func(t *testing.T) {
		expectTimeout(t, g.addr, start+"Content-Length: 4000\r\n\r\n", 10, 50*time.Millisecond)
	})
	t.Run("slow large body", func(t *testing.T) {
		expectTimeout(t, g.addr, start+"Content-Length: 60000\r\n\r\n", 10, 50*time.Millisecond)
	})
	t.Run("slow chunks", func(t *testing.T) {
		c := drip(t, g.addr, start+"Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n", 50*time.Millisecond)
		expectStatus(t, c, 408)
	})
	t.Run("body that stalls", func(t *testing.T) {
		c := connect(t, g.addr)
		fmt.Fprintf(c, "%sContent-Length: 60000\r\n\r\n%s", start, strings.Repeat("x", 50_000))
		expectStatus(t, c, 408)
	})
}

// expectTimeout sends a few bytes at a time and wants a 408 before all is sent.
func expectTimeout(t *testing.T, addr, start string, bytes int, every time.Duration) {
	t.Helper()
	expectStatus(t, drip(t, addr, start, strings.Repeat("x", bytes), every), 408)
}

// drip sends the start of a request, and then pieces of it until the other side
// has had enough.
func drip(t *testing.T, addr, start, piece string, every time.Duration) net.Conn {
	c := connect(t, addr)
	if _, err := io.WriteString(c, start); err != nil {
		t.Fatal(err)
	}
	go func() {
		pace := time.NewTicker(every)
		defer pace.Stop()
		for {
			<-pace.C
			if _, err := io.WriteString(c, piece); err != nil {
				return
			}
		}
	}()
	return c
}

func expectStatus(t *testing.T, c net.Conn, status int) {
	t.Helper()
	began := time.Now()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != status {
		t.Fatalf("after %s: %v, %v; want %d", time.Since(began), resp, err, status)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
}

// A client that does not take its answer does not hold it for ever, nor the
// upstream's connection.
func TestAClientThatDoesNotTakeItsAnswerIsCut(t *testing.T) {
	t.Parallel()
	g := newTraffic(t, settings{"gateway.write_timeout": "300ms"}, nil, rig.APIDef("bulk", bulk(t), true))
	c := connect(t, g.addr)
	fmt.Fprint(c, "GET /bulk/down/1000000000 HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
		t.Fatal(err)
	}
	g.awaitMetric("sluice_client_connections", 0)
	g.awaitMetric("sluice_upstream_connections", 0)
}

// awaitMetric waits until all series of a metric add up to a value.
func (g *traffic) awaitMetric(name string, want float64) {
	g.T.Helper()
	rig.Eventually(g.T, fmt.Sprintf("%s %v", name, want), func() error {
		if got := g.metric(name); got != want {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
}

// metric returns the sum of a metric's series.
func (g *traffic) metric(name string) (sum float64) {
	g.T.Helper()
	got := rig.Call(g.T, "GET", g.Telemetry+"/metrics", nil)
	found := false
	for line := range strings.Lines(got.Body) {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == ' ' || rest[0] == '{') {
			value, _ := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			sum += value
			found = true
		}
	}
	if !found {
		g.T.Fatalf("there is no metric %s", name)
	}
	return sum
}

func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"gateway.max_connections", "gateway.max_connections_per_ip"} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			asked := &seen{}
			g := newTraffic(t, settings{key: "20"}, nil, rig.APIDef("open", honest(t, asked), true))
			use := func(c net.Conn) (int, error) {
				fmt.Fprint(c, "GET /open/x HTTP/1.1\r\nHost: a\r\n\r\n")
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					return 0, err
				}
				_, err = io.Copy(io.Discard, resp.Body)
				return resp.StatusCode, err
			}
			var open []net.Conn
			for i := range 20 {
				c := connect(t, g.addr)
				if status, err := use(c); err != nil || status != 200 {
					t.Fatalf("connection %d: %d, %v", i, status, err)
				}
				open = append(open, c)
			}
			for i := range 50 {
				if status, err := use(connect(t, g.addr)); err != nil || status != 503 {
					t.Errorf("connection %d above the limit: %d, %v", i+1, status, err)
				}
			}
			for i, c := range open {
				if status, err := use(c); err != nil || status != 200 {
					t.Errorf("connection %d, used again: %d, %v", i, status, err)
				}
			}
			open[0].Close()
			rig.Eventually(t, "a place to come free", func() error {
				if status, err := use(connect(t, g.addr)); err != nil || status != 200 {
					return fmt.Errorf("%d, %w", status, errors.Join(err))
				}
				return nil
			})
		})
	}
}

// Idle connections are cheap; the bound is checked by a benchmark, this one is
// for what nobody may do without noticing.
func TestIdleConnectionsTakeLittleMemory(t *testing.T) {
	t.Parallel()
	asked := &seen{}
	g := newTraffic(t, nil, nil, rig.APIDef("open", honest(t, asked), true))
	const connections = 2000
	use := func() {
		c := connect(t, g.addr)
		fmt.Fprint(c, "GET /open/x HTTP/1.1\r\nHost: a\r\n\r\n")
		if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 50 {
		use()
	}
	before, _ := memory(t, g.PID())
	for range connections {
		use()
	}
	after, _ := memory(t, g.PID())
	each := float64(after-before) / connections
	t.Logf("%d idle connections: %.1f KiB each", connections, each)
	if each > 16 {
		t.Errorf("an idle connection takes %.1f KiB", each)
	}
}
