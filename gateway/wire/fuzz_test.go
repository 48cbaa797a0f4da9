package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// FuzzFraming sends arbitrary bytes and holds what the server saw against what
// Go's own server reads: every request that both accept has the same method,
// target, and body, and what either refuses ends the connection.
func FuzzFraming(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /a?b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nA: b\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /2 HTTP/1.0\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		ours := see(raw)
		theirs := readAll(raw)
		for i, seen := range ours {
			if i >= len(theirs) {
				t.Fatalf("request %d was seen as %q, the other reader ends before it; sent %q", i, seen, raw)
			}
			if seen != theirs[i] {
				t.Fatalf("request %d was seen as %q, by the other reader as %q; sent %q", i, seen, theirs[i], raw)
			}
		}
	})
}

// recorder keeps what it was asked to serve; a body that breaks off ends what
// both readers can agree on.
type recorder struct{ seen []string }

func (r *recorder) Handle(call *Call) {
	var body []byte
	if call.Stream == nil {
		body = call.Body
	} else {
		var err error
		if body, err = io.ReadAll(call.Stream); err != nil {
			call.Answer.Status = 400
			return
		}
	}
	r.seen = append(r.seen, fmt.Sprintf("%s %s?%s %q", call.Method, call.Path, call.Query, body))
	call.Answer.Status = 200
}
func (r *recorder) Refuse(*Call, *Fault) {}

// see serves raw over a connection in memory and returns the requests.
func see(raw []byte) []string {
	r := &recorder{}
	conf := testConfig()
	s := New(conf, r, log.New(io.Discard, "", 0))
	c := newConn(s, &script{in: bytes.NewReader(raw)}, peerOf(&script{}))
	c.serve()
	return r.seen
}

// readAll reads the requests in raw with Go's parser until it refuses one.
func readAll(raw []byte) (seen []string) {
	br := bufio.NewReader(bytes.NewReader(raw))
	for {
		if b, _ := br.Peek(2); string(b) == "\r\n" {
			_, _ = br.Discard(2)
		}
		req, err := http.ReadRequest(br)
		if err != nil {
			return seen
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return seen
		}
		path := req.URL.EscapedPath()
		if target := req.RequestURI; target[0] == '/' {
			path, _, _ = cutString(target)
		}
		if path == "" {
			path = "/"
		}
		_, query, _ := cutString(req.RequestURI)
		seen = append(seen, fmt.Sprintf("%s %s?%s %q", req.Method, path, query, body))
	}
}

func cutString(target string) (path, query string, ok bool) {
	p, q, ok := bytes.Cut([]byte(target), []byte{'?'})
	return string(p), string(q), ok
}

// script is a connection that plays bytes back and swallows what it is told.
type script struct{ in *bytes.Reader }

func (s *script) Read(p []byte) (int, error)       { return s.in.Read(p) }
func (s *script) Write(p []byte) (int, error)      { return len(p), nil }
func (s *script) Close() error                     { return nil }
func (s *script) LocalAddr() net.Addr              { return &net.UnixAddr{} }
func (s *script) RemoteAddr() net.Addr             { return &net.UnixAddr{} }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// FuzzTransferCoding checks that a chunked body reads the same however its
// bytes arrive, and never reaches beyond its end.
func FuzzTransferCoding(f *testing.F) {
	f.Add([]byte("3\r\nabc\r\n0\r\n\r\n"), byte(1))
	f.Add([]byte("a;b=\"c\"\r\n0123456789\r\n0\r\nX: y\r\n\r\n"), byte(3))
	f.Fuzz(func(t *testing.T, coded []byte, step byte) {
		head := []byte("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
		whole := see(append(head[:len(head):len(head)], coded...))
		r := &recorder{}
		s := New(testConfig(), r, log.New(io.Discard, "", 0))
		slow := &slowScript{script{bytes.NewReader(append(head, coded...))}, int(step%7) + 1}
		newConn(s, slow, peerOf(slow)).serve()
		if fmt.Sprint(whole) != fmt.Sprint(r.seen) {
			t.Fatalf("at once %q, in pieces %q", whole, r.seen)
		}
	})
}

type slowScript struct {
	script
	step int
}

func (s *slowScript) Read(p []byte) (int, error) { return s.script.Read(p[:min(len(p), s.step)]) }

// FuzzBurst sends bytes over a socket, where requests are served within one wait,
// cut in two at any place, and holds what was seen against the ordinary route.
func FuzzBurst(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\nPOST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET"), 30)
	f.Add([]byte("POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nA: b\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n"), 70)
	f.Add([]byte("POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\naGET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /3"), 9)
	seen := make(chan []string, 1)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { ln.Close() })
	f.Fuzz(func(t *testing.T, raw []byte, cut int) {
		want := see(raw)
		client, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		_ = client.SetDeadline(time.Now().Add(60 * time.Second))
		server, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		r := &recorder{}
		go func() {
			c := newConn(New(testConfig(), r, log.New(io.Discard, "", 0)), server, peerOf(server))
			c.serve()
			_ = server.Close()
			seen <- r.seen
		}()
		cut = min(max(cut, 0), len(raw))
		_, _ = client.Write(raw[:cut])
		_, _ = client.Write(raw[cut:])
		_ = client.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, client)
		if got := <-seen; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("over a socket %q, else %q; sent %q", got, want, raw)
		}
	})
}

// FuzzFields holds the fields of a head against what Go's own parser finds, and
// against what is promised of them.
func FuzzFields(f *testing.F) {
	f.Add("Accept: */*\r\nx-forwarded-for:1.1.1.1 \r\nX-Forwarded-Else: \t a\tb \r\nAccept: text/html\r\n")
	f.Add("Proxy-Connection: a\r\ncontent-encoding: gzip\r\nX-Real-IP: ::1\r\nTE: trailers\r\nUpgrade: h2c\r\nOrigin: null\r\n")
	names := map[string]Name{
		"te": NameTE, "host": NameHost, "accept": NameAccept, "cookie": NameCookie, "expect": NameExpect, "origin": NameOrigin,
		"trailer": NameTrailer, "upgrade": NameUpgrade, "forwarded": NameForwarded, "x-real-ip": NameXRealIP, "connection": NameConnection,
		"keep-alive": NameKeepAlive, "user-agent": NameUserAgent, "content-type": NameContentType, "x-request-id": NameXRequestID,
		"authorization": NameAuthorization, "traceparent": NameTraceparent, "tracestate": NameTracestate, "content-length": NameContentLength, "x-forwarded-for": NameXForwardedFor,
		"accept-encoding": NameAcceptEncoding, "content-encoding": NameContentEncoding, "proxy-connection": NameProxyConnection,
		"x-forwarded-host": NameXForwardedHost, "x-forwarded-port": NameXForwardedPort, "transfer-encoding": NameTransferEncoding,
		"x-forwarded-proto": NameXForwardedProto, "proxy-authenticate": NameProxyAuthenticate, "proxy-authorization": NameProxyAuthorization,
	}
	for name := range names {
		f.Add(name + ": 1\r\n" + strings.ToUpper(name) + "x: 2\r\n")
	}
	f.Fuzz(func(t *testing.T, lines string) {
		raw := "GET / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n"
		call, fault := NewCall([]byte(raw), testConfig())
		if fault != nil {
			return
		}
		theirs, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
		if err != nil {
			t.Fatalf("the other reader refuses %q: %v", raw, err)
		}
		end := int32(0)
		found := make(http.Header)
		for i := range call.Fields {
			field := &call.Fields[i]
			name, value := string(call.NameOf(field)), string(call.ValueOf(field))
			if field.Start != end || tokenEnd([]byte(name)) != len(name) || name == "" || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				t.Fatalf("field %+v, %q, %q in %q", field, name, value, raw)
			}
			end = field.End
			want, known := names[strings.ToLower(name)]
			if !known && len(name) >= len(forwardedPrefix) && strings.EqualFold(name[:len(forwardedPrefix)], forwardedPrefix) {
				want = NameXForwarded
			}
			if field.Name != want {
				t.Fatalf("%q is %d, want %d", name, field.Name, want)
			}
			if found.Values(name) == nil && string(call.Header(name)) != value {
				t.Fatalf("the first %s is %q, want %q", name, call.Header(name), value)
			}
			found.Add(name, value)
		}
		if int(end) != len(call.Lines) {
			t.Fatalf("fields end at %d of %d", end, len(call.Lines))
		}
		for name, values := range theirs.Header {
			if ours := found.Values(name); fmt.Sprint(ours) != fmt.Sprint(values) {
				t.Fatalf("%s: %q, the other reader found %q", name, ours, values)
			}
		}
	})
}
