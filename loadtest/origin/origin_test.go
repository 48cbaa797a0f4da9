package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/bench/answer"
)

// start serves until the test binary ends, because the server cannot be stopped.
func start(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = serve(ln) }()
	return ln.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestAnswersByPathAndMethod(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 20<<10)
	post := func(path, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\ncontent-length: %d\r\n\r\n%s", path, len(body), body)
	}
	get := func(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" }
	body := func(name string) string { b, _ := answer.Body([]byte(name)); return string(b) }
	addr := start(t)
	for _, c := range []struct {
		request string
		status  int
		kind    string
		body    string
	}{
		{get("/1k"), 200, "text/plain", body("1k")},
		{get("/bench/16k?a=/b"), 200, "text/plain", body("16k")},
		{get("/x/64k"), 200, "text/plain", body("64k")},
		{get("/graphql"), 200, "application/json", body("graphql")},
		{post("/bench/graphql", "{}"), 200, "application/json", body("graphql")},
		{post("/bench/1k", "mine"), 200, "text/plain", "mine"},
		{post("/", large), 200, "text/plain", large},
		{get("/2k"), 404, "", ""},
	} {
		conn := dial(t, addr)
		in := bufio.NewReader(conn)
		for _, pieces := range []int{1, 7} {
			for i := range pieces {
				at, end := len(c.request)*i/pieces, len(c.request)*(i+1)/pieces
				if _, err := io.WriteString(conn, c.request[at:end]); err != nil {
					t.Fatal(err)
				}
			}
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("%.40q: %v", c.request, err)
			}
			got, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != c.status || string(got) != c.body && c.status == 200 || resp.Header.Get("Content-Type") != c.kind && c.status == 200 {
				t.Errorf("%.40q: %d, %s, %d bytes, %v; want %d, %s, %d bytes", c.request, resp.StatusCode, resp.Header.Get("Content-Type"), len(got), err, c.status, c.kind, len(c.body))
			}
		}
	}
}

// The client reads nothing until it has sent everything: responses beyond the socket's
// buffer must wait in the server, in order.
func TestPipelinedAnswersKeepTheirOrder(t *testing.T) {
	conn := dial(t, start(t))
	const rounds = 200
	var out bytes.Buffer
	for range rounds {
		out.WriteString("GET /64k HTTP/1.1\r\nHost: x\r\n\r\nPOST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
	}
	if _, err := conn.Write(out.Bytes()); err != nil {
		t.Fatal(err)
	}
	want, _ := answer.Body([]byte("64k"))
	in := bufio.NewReader(conn)
	for i := range 2 * rounds {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil || i%2 == 0 && !bytes.Equal(got, want) || i%2 == 1 && string(got) != "hi" {
			t.Fatalf("answer %d has %d bytes, %v", i, len(got), err)
		}
	}
}

func TestConnectionsEndAsTheClientWishes(t *testing.T) {
	addr := start(t)
	for request, answered := range map[string]bool{
		"GET /64k HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n": true,
		"GET /64k HTTP/1.0\r\nHost: x\r\n\r\n":                      true,
		"nonsense\r\n\r\n":                                          false,
	} {
		conn := dial(t, addr)
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		if err != nil || answered != strings.HasPrefix(string(got), "HTTP/1.1 200 OK\r\n") || answered && len(got) < 64<<10 {
			t.Errorf("%.30q: %d bytes, %v", request, len(got), err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n"))
	f.Add([]byte("POST /a HTTP/1.0\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parse(b)
		if err != nil || r.size == 0 {
			return
		}
		if r.size > len(b) || len(r.body) > r.size {
			t.Fatalf("%d of %d bytes, body of %d", r.size, len(b), len(r.body))
		}
		if again, err := parse(b[:r.size]); err != nil || again.size != r.size {
			t.Fatalf("alone it is %d bytes, not %d: %v", again.size, r.size, err)
		}
		if part, err := parse(b[:r.size-1]); err == nil && part.size != 0 {
			t.Fatalf("%d of its %d bytes are a whole request of %d", r.size-1, r.size, part.size)
		}
	})
}
