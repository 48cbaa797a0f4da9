package wire

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestHeadLimitHoldsForHeadsThatArriveAtOnce(t *testing.T) {
	conf := testConfig()
	conf.MaxHeader, conf.MaxURL = 1<<10, 1<<10
	_, addr := start(t, conf, &echo{})
	for size, want := range map[int]string{900: "200 ", 1200: "431 ", 5000: "431 "} {
		pad := size - len("GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n")
		got := answers(t, exchange(t, addr, "GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("x", pad)+"\r\n\r\n"), "GET")
		if len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("a head of %d bytes: %q, want %q", size, got, want)
		}
	}
}

func TestRefusalOfHeadHasNoBody(t *testing.T) {
	_, addr := start(t, testConfig(), &echo{})
	for _, raw := range []string{
		"HEAD /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"HEAD /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		got := exchange(t, addr, raw)
		if !strings.HasPrefix(got, "HTTP/1.1 400 ") || !strings.HasSuffix(got, "\r\n\r\n") || strings.Count(got, "\r\n\r\n") != 1 {
			t.Errorf("%q: got %q", raw, got)
		}
	}
}

// inPieces serves a connection on which each read returns one piece.
func inPieces(pieces ...string) string {
	s := newTestServer(testConfig(), &echo{})
	c := &staged{}
	c.onRead = func(n int) (string, error) {
		if n < len(pieces) {
			return pieces[n], nil
		}
		return "", io.EOF
	}
	n := newConn(s, c, peerOf(c))
	n.serve()
	return c.said()
}

func TestEmptyLinesBeforeARequestReadTheSameHoweverTheyArrive(t *testing.T) {
	want := `200 GET /x? host=a body=""`
	for _, pieces := range [][]string{
		{"\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"\r", "\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"\r\n", "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"\r\n", "\r", "\nGET /x HTTP/1.1\r\n", "Host: a\r\n\r", "\n"},
	} {
		got := answers(t, inPieces(pieces...), "GET")
		if len(got) != 1 || got[0] != want {
			t.Errorf("%q: got %q", pieces, got)
		}
	}
}

func TestEmptyHostIsNamedAsTheFault(t *testing.T) {
	_, addr := start(t, testConfig(), &echo{})
	got := answers(t, exchange(t, addr, "GET /x HTTP/1.1\r\nHost:\r\n\r\n"), "GET")
	if len(got) != 1 || got[0] != "400 one Host header is required" {
		t.Errorf("got %q", got)
	}
}

func TestABodyMayNotStallHoweverMuchOfItCameBefore(t *testing.T) {
	conf := testConfig()
	conf.ReadTimeout = 200 * time.Millisecond
	_, addr := start(t, conf, &echo{readBody: true})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", 512<<10, strings.Repeat("x", 256<<10))
	_ = c.SetReadDeadline(time.Now().Add(60 * time.Second))
	got, err := io.ReadAll(c)
	if err != nil || !strings.Contains(string(got), "i/o timeout") {
		t.Errorf("got %.100q, %v, want the handler to be told of a timeout", got, err)
	}
}

// TestABodyMayBeSlowWithinItsRate sends a body of more than ReadTimeout's worth
// in small pieces: a second is granted for each KiB. The first one comes with
// the head, so that a busy machine has that grant too.
func TestABodyMayBeSlowWithinItsRate(t *testing.T) {
	conf := testConfig()
	conf.ReadTimeout = time.Second
	_, addr := start(t, conf, &echo{readBody: true})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const pieces, size = 8, 2 << 10
	piece := strings.Repeat("x", size)
	fmt.Fprintf(c, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", pieces*size, piece)
	pace := time.NewTicker(200 * time.Millisecond)
	defer pace.Stop()
	for range pieces - 1 {
		<-pace.C
		if _, err := io.WriteString(c, piece); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.(*net.TCPConn).CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(60 * time.Second))
	got, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200 ") || strings.Contains(string(got), "error") {
		t.Errorf("got %.100q, %v", got, err)
	}
}

// Methods are told apart by case (RFC 9110, section 9.1), but not by all who read
// them: a rule about DELETE must not be passed with "delete".
func TestMethodsThatOthersMayTakeForKnownOnesAreRefused(t *testing.T) {
	_, addr := start(t, testConfig(), &echo{})
	for method, want := range map[string]string{
		"delete": "400 ", "Get": "400 ", "OPTIONs": "400 ", "connect": "400 ", "QUERY": "200 ", "query": "200 ", "gets": "200 ", "PROPFIND": "200 ",
	} {
		got := answers(t, exchange(t, addr, method+" /x HTTP/1.1\r\nHost: a\r\n\r\n"), "GET")
		if len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%s: %q, want %q", method, got, want)
		}
	}
}
