package wire

import (
	"net"
	"testing"
)

// BenchmarkRequest has one client ask and wait for the answer, over loopback.
// Half of the time is the client's.
func BenchmarkRequest(b *testing.B) {
	const ask = "GET /some/path?a=b HTTP/1.1\r\nHost: gate.test\r\nUser-Agent: bench\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nAuthorization: 0123456789abcdef0123456789abcdef\r\n\r\n"
	body := make([]byte, 1<<10)
	_, addr := start(b, testConfig(), handle(func(call *Call) {
		call.Answer.Status, call.Answer.Body = 200, body
		call.Answer.Append("Content-Type", body[:0])
	}))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	request, buf := []byte(ask), make([]byte, 16<<10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(request); err != nil {
			b.Fatal(err)
		}
		if n, err := c.Read(buf); err != nil || n < len(body) {
			b.Fatal(n, err)
		}
	}
}

// BenchmarkHead reads a head as browsers send them.
func BenchmarkHead(b *testing.B) {
	raw := []byte("GET /some/path?a=b HTTP/1.1\r\nHost: gate.example.test\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n" +
		"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\n" +
		"Connection: keep-alive\r\nCookie: session=0123456789abcdef0123456789abcdef\r\nAuthorization: Bearer 0123456789abcdef0123456789abcdef\r\n\r\n")
	conf := testConfig()
	var call Call
	var h head
	b.ReportAllocs()
	for b.Loop() {
		if end := headEnd(raw); end != len(raw) || h.parse(raw, &call, &conf) != nil {
			b.Fatal("refused")
		}
	}
}
