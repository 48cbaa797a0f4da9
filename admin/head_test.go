package admin

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// sent sends bytes over a connection of its own and returns all that comes back.
func (b *bench) sent(raw string) string {
	b.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.URL, "http://"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		b.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, raw); err != nil {
		b.t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		b.t.Fatal(err)
	}
	got, _ := io.ReadAll(conn) // a reset after the answer does not matter
	return string(got)
}

// TestHeadsThatCouldBeReadInTwoWaysAreRefused sends heads whose end or meaning a proxy in
// front could read in another way, each with a request behind that must not be answered.
func TestHeadsThatCouldBeReadInTwoWaysAreRefused(t *testing.T) {
	b := start(t)
	const behind = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, head := range map[string]string{
		"length and coding":        "POST /api/apis HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"coding and length":        "POST /api/apis HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
		"two lengths":              "POST /api/apis HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
		"a list of lengths":        "POST /api/apis HTTP/1.1\r\nHost: x\r\nContent-Length: 2, 2\r\n\r\n{}",
		"a signed length":          "POST /api/apis HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n\r\n{}",
		"two codings":              "POST /api/apis HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"another coding":           "POST /api/apis HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
		"identity":                 "POST /api/apis HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n",
		"coding in HTTP/1.0":       "POST /api/apis HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"space before the colon":   "POST /api/apis HTTP/1.1\r\nHost: x\r\nContent-Length : 2\r\n\r\n{}",
		"space in a name":          "POST /api/apis HTTP/1.1\r\nHost: x\r\nContent Length: 2\r\n\r\n",
		"folded line":              "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: b\r\n Content-Length: 2\r\n\r\n",
		"line without CR":          "GET /healthz HTTP/1.1\r\nHost: x\nX-A: b\r\n\r\n",
		"blank line without CR":    "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: b\n\nX-B: c\r\n\r\n",
		"CR in a value":            "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: b\rContent-Length: 2\r\n\r\n",
		"no host":                  "GET /healthz HTTP/1.1\r\nX-A: b\r\n\r\n",
		"two hosts":                "GET /healthz HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
		"malformed host":           "GET /healthz HTTP/1.1\r\nHost: x/y\r\n\r\n",
		"target of another host":   "GET http://y/healthz HTTP/1.1\r\nHost: x\r\n\r\n",
		"no colon":                 "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A\r\n\r\n",
		"chunk size with a sign":   "POST /api/apis HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n",
		"chunk size without CR":    "POST /api/apis HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n",
		"chunk longer than it is":  "POST /api/apis HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}}\r\n0\r\n\r\n",
		"chunk size out of bounds": "POST /api/apis HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff2\r\n{}\r\n0\r\n\r\n",
	} {
		got := b.sent(head + behind)
		if !strings.HasPrefix(got, "HTTP/1.1 400 ") || strings.Count(got, "HTTP/1.1 ") != 1 {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, head := range map[string]string{
		"plain": "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.0 without a host": "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
		"chunked":         fmt.Sprintf("POST /api/apis/validate HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", b.viewer),
		"absolute target": "GET http://x/healthz HTTP/1.1\r\nHost: X\r\n\r\n",
	} {
		if got := b.sent(head + behind); strings.Count(got, "HTTP/1.1 ") != 2 {
			t.Errorf("%s: %q", name, got)
		}
	}
}
