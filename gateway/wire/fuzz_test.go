package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
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
