package upstream

import (
	"bufio"
	"bytes"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/valyala/fasthttp"
)

// parsed is a request with these header lines.
func parsed(t testing.TB, lines []string) *wire.Call {
	t.Helper()
	lines = append([]string{"GET / HTTP/1.1", "Host: x"}, lines...)
	call, fault := wire.NewCall([]byte(strings.Join(lines, "\r\n")+"\r\n\r\n"), wireConfig())
	if fault != nil {
		t.Fatal(fault.Text)
	}
	return call
}

// feed is a connection whose other end has sent everything already.
func feed(b []byte) *conn {
	c := &conn{pool: newPool(poolKey{}, nil, testEpoch, nil), sock: &ended{}}
	c.begin(0)
	c.sock.(*ended).left = b
	return c
}

// decode reads one answer to method as the gateway does.
func decode(b []byte, method string) (h head, lines, body []byte, err error) {
	c := feed(b)
	if lines, err = c.readHead(&h, nil, false); err != nil {
		return h, lines, nil, err
	}
	if h.bodyless([]byte(method)) {
		return h, lines, nil, nil
	}
	s := stream{c: c, chunked: h.chunked, left: h.length, patience: 1 << 40}
	if h.chunked {
		s.left = -1
	}
	c.pool.link(c)
	c.pool.open = 1
	body, err = io.ReadAll(&s)
	return h, lines, body, err
}

func FuzzAnswer(f *testing.F) {
	for _, c := range answerCases {
		f.Add([]byte(strings.Join(c.send, "")))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, lines, body, err := decode(b, "GET")
		if len(lines) > maxHead {
			t.Fatalf("%d bytes of lines", len(lines))
		}
		if err != nil {
			return
		}
		checkLines(t, lines)
		for _, hidden := range []string{"connection", "transfer-encoding", "content-length", "te", "trailer", "upgrade", "keep-alive"} {
			if a := (wire.Answer{Lines: bytes.Clone(lines)}); true {
				if a.Remove(hidden); len(a.Lines) != len(lines) {
					t.Errorf("%s passed: %q", hidden, lines)
				}
			}
		}
		var other fasthttp.Response
		other.StreamBody = false
		if other.Read(bufio.NewReaderSize(bytes.NewReader(b), 128<<10)) != nil {
			return
		}
		switch {
		case other.StatusCode() != h.status:
			t.Errorf("status %d, fasthttp %d", h.status, other.StatusCode())
		case h.status == 204 || h.status == 304:
		case h.chunked && h.length >= 0: // which of the two fasthttp takes depends on their order
		case !bytes.Equal(other.Body(), body):
			t.Errorf("body %q, fasthttp %q", body, other.Body())
		}
	})
}

// checkLines fails when lines are not whole header lines of name and value.
func checkLines(t *testing.T, lines []byte) {
	t.Helper()
	if len(lines) == 0 {
		return
	}
	text, ends := strings.CutSuffix(string(lines), "\r\n")
	if !ends {
		t.Errorf("unended line: %q", lines)
	}
	for line := range strings.SplitSeq(text, "\r\n") {
		name, value, found := strings.Cut(line, ":")
		if !found || !isToken([]byte(name)) || strings.ContainsAny(value, "\r\n\x00") {
			t.Errorf("line %q in %q", line, lines)
		}
	}
}

// FuzzChunks cuts a chunked body in two at every place, which must not matter.
func FuzzChunks(f *testing.F) {
	for _, s := range []string{"5\r\nhello\r\n0\r\n\r\n", "5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\nrest", "0\r\n\r\n", "zz\r\n", "fffffffffffffff\r\nx"} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		whole, used, wholeDone, wholeErr := joined(b)
		if at < 0 || at > len(b) {
			return
		}
		body, n, done, err := joined(b[:at], b[at:])
		if !bytes.Equal(whole, body) || used != n || wholeDone != done || (wholeErr == nil) != (err == nil) {
			t.Errorf("cut at %d: %q %d %t %v, whole: %q %d %t %v", at, body, n, done, err, whole, used, wholeDone, wholeErr)
		}
	})
}

func joined(parts ...[]byte) (body []byte, total int, done bool, err error) {
	var k chunks
	for _, b := range parts {
		for len(b) > 0 && !k.done() {
			data, used, err := k.next(b, 7)
			body = append(body, data...)
			b = b[used:]
			total += used
			if err != nil {
				return body, total, false, err
			}
		}
	}
	return body, total, k.done(), nil
}

// FuzzRequestLines has anything at all in the raw header block, in a stage's
// query and in the host, and checks that what goes out is one request.
func FuzzRequestLines(f *testing.F) {
	f.Add([]byte("A: b\r\nX-Forwarded-For: 1.1.1.1\r\n"), "a=b", "gate.test", true)
	f.Add([]byte("A: b\n c\rConnection: x\r\nX-Forwarded-Host: a\x00\r\n"), "a b\r\n", "h", true)
	f.Add([]byte("X-Forwarded-Proto: https\rX: y\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n"), "#", "h", false)
	f.Fuzz(func(t *testing.T, raw []byte, query, host string, trusted bool) {
		if !isHost([]byte(host)) {
			return // which the server refuses
		}
		head := "GET / HTTP/1.1\r\nHost: " + host + "\r\n" + string(raw) + "\r\n"
		call, fault := wire.NewCall([]byte(head), wireConfig())
		if fault != nil {
			return
		}
		s := forwarded{trusted: trusted}
		lines, err := s.copyLines(nil, call, dropAccept)
		if err != nil {
			return
		}
		call.Peer = netip.MustParseAddr("10.0.0.1")
		ex := &pipeline.Exchange{Call: call, Client: call.Peer}
		copy(ex.ID[:], strings.Repeat("a", 32))
		lines = s.appendOwn(lines, ex)
		checkLines(t, lines)
		for _, ours := range []string{"Content-Length", "Transfer-Encoding", "Host", "Connection", "Upgrade", "Accept"} {
			a := wire.Answer{Lines: bytes.Clone(lines)}
			if a.Remove(strings.ToLower(ours)); len(a.Lines) != len(lines) {
				t.Errorf("%s passed: %q", ours, lines)
			}
		}
		if target := escapeTarget([]byte("GET /?"+query), 4); bytes.ContainsAny(target[4:], " \r\n\x00#") {
			t.Errorf("target %q", target)
		}
	})
}

// FuzzForwardedFor reads any chain of proxies without falling over.
func FuzzForwardedFor(f *testing.F) {
	for _, s := range []string{"1.1.1.1", "[::1]:80, 10.0.0.1", "[", "]:", ",,", "fe80::1%x", ":::::::"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, hop []byte) {
		if addr, ok := parseHop(hop); ok && (!addr.IsValid() || addr.Zone() != "" || addr.Is4In6()) {
			t.Errorf("%q: %v", hop, addr)
		}
	})
}
