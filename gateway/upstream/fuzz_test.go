package upstream

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/http1"
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
	c := &conn{pool: newPool(poolKey{}, nil, testEpoch), sock: &ended{}}
	_ = c.begin(0, never, wire.Client{})
	c.sock.(*ended).left = b
	return c
}

// decoded is one answer as the gateway reads it.
type decoded struct {
	head
	lines, body []byte
	used        int // bytes up to its end
}

// decode reads one answer to a GET as the gateway does.
func decode(b []byte) (d decoded, err error) {
	c := feed(b)
	d.lines, err = c.readHead(&d.head, nil, false)
	d.used = len(b) - len(c.sock.(*ended).left) - (c.w - c.r)
	if err != nil || d.bodyless([]byte("GET")) {
		return d, err
	}
	switch {
	case d.chunked:
		_, n, _, _ := joined(b[d.used:])
		d.used += n
	case d.length >= 0:
		d.used += int(min(d.length, int64(len(b)-d.used)))
	default:
		d.used = len(b)
	}
	s := stream{c: c, chunked: d.chunked, left: d.length, patience: 1 << 40}
	if d.chunked {
		s.left = -1
	}
	c.pool.link(c)
	c.pool.open = 1
	d.body, err = io.ReadAll(&s)
	return d, err
}

func FuzzAnswer(f *testing.F) {
	for _, c := range answerCases {
		f.Add([]byte(strings.Join(c.send, "")))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decode(b)
		if len(d.lines) > maxHead {
			t.Fatalf("%d bytes of lines", len(d.lines))
		}
		if err != nil {
			return
		}
		checkLines(t, d.lines)
		for _, hidden := range []string{"connection", "transfer-encoding", "content-length", "te", "trailer", "upgrade", "keep-alive"} {
			if a := (wire.Answer{Lines: bytes.Clone(d.lines)}); true {
				if a.Remove(hidden); len(a.Lines) != len(d.lines) {
					t.Errorf("%s passed: %q", hidden, d.lines)
				}
			}
		}
		compare(t, b, d)
	})
}

// compare has fasthttp read an answer that was accepted here, which must come to
// the same. It differs where it knows less, or is laxer:
//   - of a length beside chunks it takes what comes last;
//   - a 1xx that is none of 100, 102 and 103 it takes for the answer;
//   - for 204 and 304 it knows no length.
func compare(t *testing.T, b []byte, d decoded) {
	t.Helper()
	rest := bytes.NewReader(b)
	br := bufio.NewReaderSize(rest, 128<<10)
	var other fasthttp.Response
	if err := other.Read(br); err != nil {
		if !refusedBy(err.Error()) {
			t.Errorf("fasthttp refuses it: %v", err)
		}
		return
	}
	if other.StatusCode() != d.status && other.StatusCode() >= 200 {
		t.Errorf("status %d, fasthttp %d", d.status, other.StatusCode())
	}
	if d.status == 204 || d.status == 304 || d.chunked && d.length >= 0 || other.StatusCode() < 200 {
		return
	}
	if !bytes.Equal(other.Body(), d.body) {
		t.Errorf("body %q, fasthttp %q", d.body, other.Body())
	}
	if used := len(b) - rest.Len() - br.Buffered(); used != d.used {
		t.Errorf("it ends at %d, for fasthttp at %d", d.used, used)
	}
}

// refusedBy lists what fasthttp may refuse.
func refusedBy(reason string) bool {
	for _, known := range []string{
		"duplicate content-length", // the same length twice, which RFC 9110 section 8.6 lets pass
		"after chunk size",         // extensions behind blanks
		"invalid header value",     // control characters, which are passed on as they came
	} {
		if strings.Contains(reason, known) {
			return true
		}
	}
	return false
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
		if !found || !http1.IsToken([]byte(name)) || strings.ContainsAny(value, "\r\n\x00") {
			t.Errorf("line %q in %q", line, lines)
		}
	}
}

func joined(parts ...[]byte) (body []byte, total int, done bool, err error) {
	var k http1.Chunks
	for _, b := range parts {
		for len(b) > 0 && !k.Done() {
			data, used, err := k.Next(b, 7)
			body = append(body, data...)
			b = b[used:]
			total += used
			if err != nil {
				return body, total, false, err
			}
		}
	}
	return body, total, k.Done(), nil
}

// FuzzRequestLines has anything at all in the raw header block, in a stage's
// query and in the host, and checks that what goes out is one request.
func FuzzRequestLines(f *testing.F) {
	f.Add([]byte("A: b\r\nX-Forwarded-For: 1.1.1.1\r\n"), "a=b", "gate.test", true)
	f.Add([]byte("A: b\n c\rConnection: x\r\nX-Forwarded-Host: a\x00\r\n"), "a b\r\n", "h", true)
	f.Add([]byte("X-Forwarded-Proto: https\rX: y\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n"), "#", "h", false)
	f.Fuzz(func(t *testing.T, raw []byte, query, host string, trusted bool) {
		if !http1.IsHost([]byte(host)) {
			return // which the server refuses
		}
		head := "GET / HTTP/1.1\r\nHost: " + host + "\r\n" + string(raw) + "\r\n"
		call, fault := wire.NewCall([]byte(head), wireConfig())
		if fault != nil {
			return
		}
		s := forwarded{trusted: trusted, trace: new(pipeline.Trace)}
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

// FuzzChunkedAnswers encodes a body in chunks of many sizes, with extensions and
// trailers, and has it read here, by fasthttp, and here again from a connection
// that gives a few bytes at a time.
func FuzzChunkedAnswers(f *testing.F) {
	f.Add([]byte("hello world"), []byte{1, 5, 200}, ";a=b", "X-Sum: 1\r\n", uint8(3))
	f.Add([]byte{}, []byte{0}, "", "", uint8(1))
	f.Add(bytes.Repeat([]byte("x"), 40_000), []byte{255, 0, 255}, " ;x", "A: b\r\nC:d\r\n", uint8(255))
	f.Fuzz(func(t *testing.T, body, sizes []byte, extension, trailers string, piece uint8) {
		raw := append([]byte(ok+"Transfer-Encoding: chunked\r\n\r\n"), encode(body, sizes, extension)...)
		raw = append(raw, "0"+extension+"\r\n"+trailers+"\r\n"...)
		d, err := decode(append(raw, "HTTP/1.1 299 next\r\n"...))
		if err != nil {
			return // the extension or a trailer is none
		}
		if len(trailers) == 0 && (!bytes.Equal(d.body, body) || d.used != len(raw)) {
			t.Errorf("%d bytes, used %d; want %d and %d", len(d.body), d.used, len(body), len(raw))
		}
		if len(extension) == 0 {
			compare(t, raw[:d.used], d)
		}
		again, err := decodeSlowly(raw, max(1, int(piece)))
		if err != nil || !bytes.Equal(again, d.body) {
			t.Errorf("in pieces of %d: %d bytes, %v; whole: %d bytes", piece, len(again), err, len(d.body))
		}
	})
}

// encode writes a body in chunks of the sizes given, in turn.
func encode(body, sizes []byte, extension string) (dst []byte) {
	for i := 0; len(body) > 0; i++ {
		n := len(body)
		if len(sizes) > 0 {
			n = min(n, 1+int(sizes[i%len(sizes)])*40)
		}
		dst = fmt.Appendf(dst, "%x%s\r\n%s\r\n", n, extension, body[:n])
		body = body[n:]
	}
	return dst
}

// decodeSlowly reads the body of an answer that arrives in pieces.
func decodeSlowly(b []byte, piece int) ([]byte, error) {
	c := feed(b)
	c.sock.(*ended).piece = piece
	var h head
	if _, err := c.readHead(&h, nil, false); err != nil {
		return nil, err
	}
	c.pool.link(c)
	c.pool.open = 1
	return io.ReadAll(&stream{c: c, chunked: h.chunked, left: -1, patience: 1 << 40})
}
