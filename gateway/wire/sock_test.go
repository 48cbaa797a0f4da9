package wire

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// source is a body of size bytes, of which the n-th is byte(n), that tells when
// it is closed.
type source struct {
	size, at int64
	step     int   // bytes of one read at most; 0: as many as fit
	err      error // at the end, in place of io.EOF
	closed   chan struct{}
}

func newSource(size int64) *source { return &source{size: size, closed: make(chan struct{})} }

func (s *source) Read(p []byte) (int, error) {
	if s.at == s.size {
		if s.err != nil {
			return 0, s.err
		}
		return 0, io.EOF
	}
	if s.step > 0 {
		p = p[:min(len(p), s.step)]
	}
	p = p[:min(int64(len(p)), s.size-s.at)]
	for i := range p {
		p[i] = byte(s.at + int64(i))
	}
	s.at += int64(len(p))
	return len(p), nil
}

func (s *source) Close() error {
	close(s.closed)
	return nil
}

// wrong returns how far b is what a source of its length gives, or -1.
func wrong(b []byte) int {
	for i, c := range b {
		if c != byte(i) {
			return i
		}
	}
	return -1
}

// handle makes a handler of a function.
type handle func(call *Call)

func (h handle) Handle(call *Call) { h(call) }
func (h handle) Refuse(call *Call, fault *Fault) {
	call.Answer.Status, call.Answer.Body = fault.Status, []byte(fault.Text)
}

// streaming answers with sources, which it hands to the test as well.
func streaming(length int64, made chan *source, make func() *source) handle {
	return func(call *Call) {
		s := make()
		call.Answer.Status, call.Answer.Stream, call.Answer.Length = 200, s, length
		if made != nil {
			made <- s
		}
	}
}

func dial(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	return c.(*net.TCPConn)
}

// gone waits until a server has no connection left.
func gone(t testing.TB, s *Server) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(60 * time.Second); s.Stats().Open > 0; <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%d connections are still open", s.Stats().Open)
		}
	}
}

const getX = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"

func TestAClientThatDoesNotReadIsCut(t *testing.T) {
	conf := testConfig()
	conf.WriteTimeout = 200 * time.Millisecond
	whole := bytes.Repeat([]byte("x"), 32<<20)
	for name, h := range map[string]handle{
		"stream of known length":   streaming(1<<40, nil, func() *source { return newSource(1 << 40) }),
		"stream of unknown length": streaming(-1, nil, func() *source { return newSource(1 << 40) }),
		"whole body":               func(call *Call) { call.Answer.Status, call.Answer.Body = 200, whole },
		"fasthttp's response":      func(call *Call) { call.Ctx().Response.SetBodyRaw(whole) },
	} {
		t.Run(name, func(t *testing.T) {
			s, addr := start(t, conf, h)
			c := dial(t, addr)
			_, _ = io.WriteString(c, getX)
			if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, syscall.ECONNRESET) { // it may be cut before it reads at all
				t.Fatal(err)
			}
			gone(t, s)
		})
	}
}

func TestAStreamIsClosedWhenItsClientLeaves(t *testing.T) {
	made := make(chan *source, 1)
	s, addr := start(t, testConfig(), streaming(-1, made, func() *source { return newSource(1 << 40) }))
	c := dial(t, addr)
	_, _ = io.WriteString(c, getX)
	_, _ = io.ReadFull(c, make([]byte, 1<<20))
	_ = c.Close()
	ended(t, "the stream", (<-made).closed)
	gone(t, s)
}

func TestASlowReaderThatKeepsReadingGetsAll(t *testing.T) {
	const size = 24 << 20
	body := make([]byte, size)
	stream, whole := streaming(size, nil, func() *source { return newSource(size) }), handle(func(call *Call) { call.Answer.Status, call.Answer.Body = 200, body })
	impatient := func(c *Config) { c.WriteTimeout = 2 * time.Second }
	for name, h := range map[string]handle{"stream": stream, "whole body": whole} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := testConfig()
			impatient(&conf)
			_, addr := start(t, conf, h)
			c := dial(t, addr)
			_ = c.SetReadBuffer(64 << 10)
			readSlowly(t, c, size)
		})
		t.Run(name+" over TLS", func(t *testing.T) {
			t.Parallel()
			s := startTLS(t, 10, time.Minute, &tls.Config{}, h, impatient)
			c := s.dial(t, s.trust)
			_ = c.NetConn().(*net.TCPConn).SetReadBuffer(64 << 10)
			readSlowly(t, c, size)
		})
	}
}

// readSlowly reads an answer in twenty pieces with a pause before each, which
// takes longer than an impatient server waits for one of them.
func readSlowly(t *testing.T, c net.Conn, size int64) {
	t.Helper()
	_, _ = io.WriteString(c, getX)
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 64<<10), nil)
	if err != nil {
		t.Fatal(err)
	}
	pace := time.NewTicker(150 * time.Millisecond)
	defer pace.Stop()
	for got := int64(0); got < size; {
		<-pace.C
		n, err := io.CopyN(io.Discard, resp.Body, min(size/20+1, size-got))
		if got += n; err != nil {
			t.Fatalf("after %d bytes: %v", got, err)
		}
	}
}

func TestPipelinedRequestsWithLargeAnswers(t *testing.T) {
	const requests, size = 40, 300 << 10
	_, addr := start(t, testConfig(), handle(func(call *Call) {
		id, _ := strconv.Atoi(string(call.Path[1:]))
		call.Answer.Status = 200
		call.Answer.Append("X-Id", call.Path[1:])
		switch id % 3 {
		case 0:
			call.Answer.Stream, call.Answer.Length = newSource(size), size
		case 1:
			call.Answer.Stream, call.Answer.Length = newSource(size), -1
		default:
			call.Answer.Body, _ = io.ReadAll(newSource(size))
		}
	}))
	c := dial(t, addr)
	var sending sync.WaitGroup
	sending.Go(func() {
		for i := range requests {
			fmt.Fprintf(c, "POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGET /", i)
		}
	})
	br := bufio.NewReader(c)
	for i := range requests {
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || len(body) != size || wrong(body) >= 0 || resp.Header.Get("X-Id") != strconv.Itoa(i) {
			t.Fatalf("answer %d: %v, %d bytes, wrong at %d, id %q", i, err, len(body), wrong(body), resp.Header.Get("X-Id"))
		}
	}
	sending.Wait()
}

func TestStreamsOfAllShapesArriveWhole(t *testing.T) {
	for _, size := range []int64{0, 1, 15, 16, streamPiece - 1, streamPiece, streamPiece + 1, 200 << 10} {
		for _, step := range []int{0, 1000} {
			for _, length := range []int64{-1, size} {
				_, addr := start(t, testConfig(), streaming(length, nil, func() *source { s := newSource(size); s.step = step; return s }))
				for _, version := range []string{"HTTP/1.1", "HTTP/1.0"} {
					got := exchange(t, addr, "GET / "+version+"\r\nHost: a\r\n\r\n")
					resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(got)), nil)
					if err != nil {
						t.Fatal(err)
					}
					body, err := io.ReadAll(resp.Body)
					if err != nil || int64(len(body)) != size || wrong(body) >= 0 {
						t.Errorf("%s, %d bytes of announced %d in steps of %d: %v, %d bytes, wrong at %d", version, size, length, step, err, len(body), wrong(body))
					}
					if chunked := len(resp.TransferEncoding) > 0; chunked != (length < 0 && version == "HTTP/1.1") {
						t.Errorf("%s, length %d: chunked is %v", version, length, chunked)
					}
				}
			}
		}
	}
}

var errBroken = errors.New("the upstream broke off")

func TestAStreamThatBreaksOffIsNoWholeAnswer(t *testing.T) {
	for _, c := range []struct {
		name    string
		version string
		length  int64
		make    func() *source
	}{
		{"chunked", "HTTP/1.1", -1, func() *source { s := newSource(100 << 10); s.err = errBroken; return s }},
		{"known length", "HTTP/1.1", 200 << 10, func() *source { s := newSource(100 << 10); s.err = errBroken; return s }},
		{"shorter than announced", "HTTP/1.1", 200 << 10, func() *source { return newSource(100 << 10) }},
		{"longer than announced", "HTTP/1.1", 50 << 10, func() *source { return newSource(100 << 10) }},
		{"until the end", "HTTP/1.0", -1, func() *source { s := newSource(100 << 10); s.err = errBroken; return s }},
		{"known length, old client", "HTTP/1.0", 200 << 10, func() *source { s := newSource(100 << 10); s.err = errBroken; return s }},
	} {
		t.Run(c.name, func(t *testing.T) {
			made := make(chan *source, 2)
			s, addr := start(t, testConfig(), streaming(c.length, made, c.make))
			conn := dial(t, addr)
			fmt.Fprintf(conn, "GET / %s\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", c.version)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(resp.Body); err == nil {
				t.Errorf("%d bytes were taken for the whole answer", len(body))
			} else if wrong(body) >= 0 || c.length >= 0 && int64(len(body)) > c.length {
				t.Errorf("%d bytes, wrong at %d", len(body), wrong(body))
			}
			ended(t, "the stream", (<-made).closed)
			_ = conn.Close()
			gone(t, s)
			if len(made) > 0 {
				t.Error("the connection went on")
			}
		})
	}
}

func TestAnUnusedStreamIsClosed(t *testing.T) {
	made := make(chan *source, 1)
	_, addr := start(t, testConfig(), handle(func(call *Call) {
		s := newSource(10)
		made <- s
		call.Answer = Answer{Status: 200, Stream: s, Length: 10, NoBody: true}
	}))
	if got := exchange(t, addr, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"); !strings.HasSuffix(got, "Content-Length: 10\r\n\r\n") {
		t.Errorf("got %q", got)
	}
	ended(t, "the stream", (<-made).closed)
}

func TestBodyIsDeadAfterItsCall(t *testing.T) {
	kept := make(chan io.Reader, 1)
	s, addr := start(t, testConfig(), handle(func(call *Call) {
		kept <- call.Stream
		call.Answer.Status = 200
	}))
	c := dial(t, addr)
	_, _ = io.WriteString(c, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
		t.Fatal(err)
	}
	_ = c.CloseWrite()
	gone(t, s)
	if n, err := (<-kept).Read(make([]byte, 10)); n != 0 || err == nil {
		t.Errorf("read %d, %v from the body of a call that ended", n, err)
	}
}

func TestAMovedDeadlineHarmsNoLaterRequest(t *testing.T) {
	conf := testConfig()
	conf.IdleTimeout = conf.ReadTimeout
	_, addr := start(t, conf, handle(func(call *Call) {
		if call.Stream != nil {
			_, _ = io.Copy(io.Discard, call.Stream)
			call.Client().Interrupt()
		}
		call.Answer.Status = 200
	}))
	c := dial(t, addr)
	br := bufio.NewReader(c)
	for i := range 3 {
		fmt.Fprintf(c, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n%s", strings.Repeat("x", 20000))
		resp, err := http.ReadResponse(br, nil)
		if err != nil || resp.StatusCode != 200 || resp.Close {
			t.Fatalf("request %d: %v, %v", i, resp, err)
		}
	}
}

func TestIdleConnectionsEnd(t *testing.T) {
	conf := testConfig()
	conf.IdleTimeout = 100 * time.Millisecond
	s, addr := start(t, conf, &echo{})
	fresh, used := dial(t, addr), dial(t, addr)
	_, _ = io.WriteString(used, getX)
	if _, err := http.ReadResponse(bufio.NewReader(used), nil); err != nil {
		t.Fatal(err)
	}
	if n, err := fresh.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("a connection without a request: %d, %v", n, err)
	}
	gone(t, s)
}

func TestClientsThatLeaveLeaveNothing(t *testing.T) {
	s, addr := start(t, testConfig(), &echo{readBody: true})
	for _, raw := range []string{"", "G", "GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\nab", getX + getX + getX} {
		c := dial(t, addr)
		_, _ = io.WriteString(c, raw)
		_ = c.SetLinger(0)
		_ = c.Close()
	}
	gone(t, s)
}

// TestTheOrdinaryRouteMeansTheSame repeats what matters over TLS, where no raw
// system calls are made.
func TestTheOrdinaryRouteMeansTheSame(t *testing.T) {
	conf := testConfig()
	conf.ReadTimeout, conf.WriteTimeout = 2*time.Second, 2*time.Second
	s := newTestServer(conf, handle(func(call *Call) {
		if !call.TLS {
			t.Error("the call does not say that it came over TLS")
		}
		call.Answer.Status = 200
		if string(call.Path) == "/endless" {
			call.Answer.Stream, call.Answer.Length = newSource(1<<40), -1
			return
		}
		if stream := call.Stream; stream != nil {
			call.Answer.Body, _ = io.ReadAll(stream)
		}
	}))
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(ln) }()
	t.Cleanup(func() { ln.Close() })
	connect := func() *tls.Conn {
		c, err := tls.Dial("tcp", ln.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(60 * time.Second))
		t.Cleanup(func() { c.Close() })
		return c
	}
	c := connect()
	br := bufio.NewReader(c)
	for range 3 {
		body := strings.Repeat("x", 40_000)
		fmt.Fprintf(c, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(resp.Body); string(got) != body {
			t.Errorf("%d bytes came back", len(got))
		}
	}
	slow := connect()
	_, _ = io.WriteString(slow, "GET / HTTP/1.1\r\nHo")
	if got, _ := io.ReadAll(slow); !bytes.HasPrefix(got, []byte("HTTP/1.1 408 ")) {
		t.Errorf("a slow head got %q", got)
	}
	_, _ = io.WriteString(c, "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
	gone(t, s) // c does not read
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestAnswerRemovesLines(t *testing.T) {
	for _, c := range []struct{ lines, want string }{
		{"", ""},
		{"A: 1\r\nX-Y: 2\r\nB: 3\r\n", "A: 1\r\nB: 3\r\n"},
		{"x-y: 2\r\nX-Y:\r\n", ""},
		{"X-Yz: 2\r\nX: 1\r\n", "X-Yz: 2\r\nX: 1\r\n"},
		{"X-Y", "X-Y"},
	} {
		a := Answer{Lines: []byte(c.lines)}
		a.Remove("x-y")
		if string(a.Lines) != c.want {
			t.Errorf("%q became %q, want %q", c.lines, a.Lines, c.want)
		}
	}
}
