package traffic

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// scripted serves an upstream that answers every request with the bytes that the
// test sets, and notes what it was asked.
type scripted struct {
	seen
	answer string
}

func newScripted(t testing.TB, answer string) (*scripted, string) {
	s := &scripted{answer: answer}
	return s, testenv.RawOrigin(t, func(c net.Conn, _ int) {
		br := bufio.NewReader(c)
		for {
			req, err := s.readRequest(br)
			if err != nil {
				return
			}
			if _, err := req.drain(); err != nil {
				return
			}
			s.mu.Lock()
			answer := s.answer
			s.mu.Unlock()
			if _, err := io.WriteString(c, answer); err != nil {
				return
			}
		}
	})
}

func (s *scripted) answers(with string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = with
}

// headerLines is a head as its lines.
func headerLines(head string) []string { return strings.Split(strings.TrimRight(head, "\r\n"), "\r\n") }

// holds tells how often a head has a line, as it is written.
func holds(head, line string) (n int) {
	for _, have := range headerLines(head) {
		if have == line {
			n++
		}
	}
	return n
}

// names tells whether a head has a header of a name, in any case.
func names(head, name string) bool {
	for _, line := range headerLines(head)[1:] {
		if have, _, _ := strings.Cut(line, ":"); strings.EqualFold(have, name) {
			return true
		}
	}
	return false
}

const noContent = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

func TestRequestHeadersOnTheirWayThrough(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, noContent)
	kept := rig.APIDef("kept", "http://"+address, true)
	kept["proxy"].(object)["preserve_host_header"] = true
	whole := rig.APIDef("whole", "http://"+address+"/base/", true)
	whole["proxy"].(object)["strip_listen_path"] = false
	g := newTraffic(t, nil, nil, rig.APIDef("plain", "http://"+address, true), kept, whole, rig.APIDef("query", "http://"+address+"/q?fixed=1&x=%2F", true))
	ask := func(raw string) string {
		t.Helper()
		got := parse(t, conversation(t, g.addr, raw))
		if len(got) != 1 || got[0].Status != 200 {
			t.Fatalf("%q: %v", raw, got)
		}
		return up.lastHead()
	}
	t.Run("hop by hop", func(t *testing.T) {
		head := ask("GET /plain/x HTTP/1.1\r\nHost: a.example:81\r\nConnection: X-Drop, keep-alive, x-also\r\nX-Drop: 1\r\nX-ALSO: 1\r\n" +
			"Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\nProxy-Authenticate: x\r\n" +
			"TE: trailers\r\nTrailer: X\r\nUpgrade: h2c\r\nX-Keep: 1\r\nCookie: a=b\r\n\r\n")
		for _, name := range []string{"Connection", "X-Drop", "X-Also", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate", "TE", "Trailer", "Upgrade", "Transfer-Encoding"} {
			if names(head, name) {
				t.Errorf("%s went on: %q", name, head)
			}
		}
		for _, line := range []string{"X-Keep: 1", "Cookie: a=b", "Host: " + address} {
			if holds(head, line) != 1 {
				t.Errorf("%q is missing: %q", line, head)
			}
		}
	})
	t.Run("Connection names what the gateway adds", func(t *testing.T) {
		head := ask("GET /plain/x HTTP/1.1\r\nHost: a\r\nConnection: Host, X-Forwarded-For, X-Real-IP, X-Request-Id, Content-Length\r\n\r\n")
		for _, name := range []string{"Host", "X-Forwarded-For", "X-Real-IP", "X-Request-Id"} {
			if !names(head, name) {
				t.Errorf("%s was lost: %q", name, head)
			}
		}
	})
	t.Run("casing and order", func(t *testing.T) {
		head := ask("GET /plain/x HTTP/1.1\r\nhost: a\r\nx-lower: 1\r\nX-UPPER: 2\r\nx-lower: 3\r\naccept: */*\r\n\r\n")
		if !strings.Contains(head, "x-lower: 1\r\nX-UPPER: 2\r\nx-lower: 3\r\naccept: */*\r\n") {
			t.Errorf("got %q", head)
		}
	})
	t.Run("where it comes from", func(t *testing.T) {
		head := ask("GET /plain/x HTTP/1.1\r\nHost: a.example:81\r\nX-Forwarded-For: 203.0.113.9\r\nX-Real-IP: 203.0.113.9\r\nX-Forwarded-Proto: https\r\n" +
			"X-Forwarded-Host: evil\r\nForwarded: for=203.0.113.9\r\nX-Request-Id: mine\r\n\r\n")
		for _, line := range []string{"X-Forwarded-For: 127.0.0.1", "X-Real-IP: 127.0.0.1", "X-Forwarded-Proto: http", "X-Forwarded-Host: a.example:81", "X-Forwarded-Port: 81"} {
			if holds(head, line) != 1 {
				t.Errorf("%q is missing: %q", line, head)
			}
		}
		if strings.Contains(head, "203.0.113.9") || strings.Contains(head, "evil") || strings.Contains(head, "mine") {
			t.Errorf("a stranger was believed: %q", head)
		}
	})
	t.Run("host kept", func(t *testing.T) {
		if head := ask("GET /kept/x HTTP/1.1\r\nHost: a.example:81\r\n\r\n"); holds(head, "Host: a.example:81") != 1 {
			t.Errorf("got %q", head)
		}
	})
	t.Run("body and its length", func(t *testing.T) {
		head := ask("POST /plain/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
		if holds(head, "Content-Length: 3") != 1 || names(head, "Content-Type") {
			t.Errorf("got %q", head)
		}
		if head := ask("GET /plain/x HTTP/1.1\r\nHost: a\r\n\r\n"); names(head, "Content-Length") || names(head, "Content-Type") {
			t.Errorf("a GET got a body: %q", head)
		}
	})
	for path, want := range map[string]string{
		"/plain/a%2Fb%20c/%E2%82%AC":   "/a%2Fb%20c/%E2%82%AC",
		"/plain/a;b=c,d/e+f":           "/a;b=c,d/e+f",
		"/plain":                       "/",
		"/plain/":                      "/",
		"/plain/x/":                    "/x/",
		"/plain/x?a=%2F&b=%20&&c":      "/x?a=%2F&b=%20&&c",
		"/plain/x?":                    "/x",
		"/plain/x?a?b":                 "/x?a?b",
		"/whole/x":                     "/base/whole/x",
		"/query/x?a=1":                 "/q/x?fixed=1&x=%2F&a=1",
		"/query/x":                     "/q/x?fixed=1&x=%2F",
		"http://a/plain/absolute?form": "/absolute?form",
	} {
		head := ask("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n")
		if got := strings.Fields(headerLines(head)[0])[1]; got != want {
			t.Errorf("%s: the upstream was asked for %s, want %s", path, got, want)
		}
	}
}

func TestATrustedProxyIsBelieved(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, noContent)
	g := newTraffic(t, settings{"gateway.trusted_proxies": "127.0.0.0/8,10.0.0.0/8"}, nil, rig.APIDef("plain", "http://"+address, true))
	for _, c := range []struct{ sent, chain, real string }{
		{"", "X-Forwarded-For: 127.0.0.1", "X-Real-IP: 127.0.0.1"},
		{"X-Forwarded-For: 203.0.113.9\r\n", "X-Forwarded-For: 203.0.113.9, 127.0.0.1", "X-Real-IP: 203.0.113.9"},
		{"X-Forwarded-For: 1.1.1.1, 203.0.113.9, 10.1.1.1\r\n", "X-Forwarded-For: 1.1.1.1, 203.0.113.9, 10.1.1.1, 127.0.0.1", "X-Real-IP: 203.0.113.9"},
		{"X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 203.0.113.9\r\n", "X-Forwarded-For: 1.1.1.1, 203.0.113.9, 127.0.0.1", "X-Real-IP: 203.0.113.9"},
		{"X-Forwarded-For: nonsense\r\n", "", "X-Real-IP: 127.0.0.1"},
	} {
		call := parse(t, conversation(t, g.addr, "GET /plain/x HTTP/1.1\r\nHost: a\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: front.example\r\n"+c.sent+"\r\n"))
		head := up.lastHead()
		if len(call) != 1 || c.chain != "" && holds(head, c.chain) != 1 || holds(head, c.real) != 1 ||
			holds(head, "X-Forwarded-Proto: https") != 1 || holds(head, "X-Forwarded-Host: front.example") != 1 {
			t.Errorf("%q: the upstream got %q", c.sent, head)
		}
	}
}

func TestResponseHeadersOnTheirWayThrough(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, noContent)
	g := newTraffic(t, nil, nil, rig.APIDef("plain", "http://"+address, true))
	ask := func(method, answer string) string {
		t.Helper()
		up.answers(answer)
		return conversation(t, g.addr, method+" /plain/x HTTP/1.1\r\nHost: a\r\n\r\n")
	}
	t.Run("as they are", func(t *testing.T) {
		got := ask("GET", "HTTP/1.1 299 Quite Fine\r\nserver: mine\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nset-cookie: a=1\r\nSet-Cookie: b=2; Path=/\r\nset-cookie: c=3\r\n"+
			"X-lower-UPPER: 1\r\nConnection: keep-alive, x-drop\r\nX-Drop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: x\r\nUpgrade: h2c\r\nTrailer: x\r\nContent-Length: 2\r\n\r\nok")
		want := "HTTP/1.1 299 Quite Fine\r\nserver: mine\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nset-cookie: a=1\r\nSet-Cookie: b=2; Path=/\r\nset-cookie: c=3\r\nX-lower-UPPER: 1\r\nContent-Length: 2\r\n\r\nok"
		if got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
	t.Run("nothing is added", func(t *testing.T) {
		if got, want := ask("GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"; got != want {
			t.Errorf("got %q", got)
		}
	})
	for _, c := range []struct{ method, answer, want string }{
		{"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n"},
		{"GET", "HTTP/1.1 204 No Content\r\nX: y\r\n\r\n", "HTTP/1.1 204 No Content\r\nX: y\r\n\r\n"},
		{"GET", "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n"},
		{"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n"},
		{"GET", "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"},
		{"GET", "HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"},
	} {
		if got := ask(c.method, c.answer); got != c.want {
			t.Errorf("%s, %q: got %q", c.method, c.answer, got)
		}
	}
	t.Run("old client", func(t *testing.T) {
		up.answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
		got := conversation(t, g.addr, "GET /plain/x HTTP/1.0\r\n\r\n")
		if !strings.HasSuffix(got, "\r\n\r\nabc") || strings.Contains(got, "chunked") {
			t.Errorf("got %q", got)
		}
	})
}

func TestCredentialsOnTheirWayThrough(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, noContent)
	stripped := rig.APIDef("stripped", "http://"+address, false)
	stripped["strip_auth_data"] = true
	custom := rig.APIDef("custom", "http://"+address, false)
	custom["auth_configs"] = object{"authToken": object{"auth_header_name": "X-Api-Key"}}
	g := newTraffic(t, nil, nil, rig.APIDef("kept", "http://"+address, false), stripped, custom)
	key := g.newKey(object{"access_rights": rig.AccessTo("kept", "stripped", "custom")})
	for _, c := range []struct {
		path, header string
		status       int
		upstream     bool // the header goes on
	}{
		{"/kept/x", "Authorization: " + key, 200, true},
		{"/kept/x", "authorization:" + key, 200, true},
		{"/kept/x", "Authorization: Bearer " + key, 200, true},
		{"/kept/x", "Authorization: bearer   " + key, 200, true},
		{"/kept/x", "Authorization: Basic " + key, 403, false},
		{"/kept/x", "X-Api-Key: " + key, 401, false},
		{"/stripped/x", "Authorization: Bearer " + key, 200, false},
		{"/custom/x", "X-Api-Key: " + key, 200, true},
		{"/custom/x", "Authorization: " + key, 401, false},
	} {
		up.add("", "")
		got := parse(t, conversation(t, g.addr, fmt.Sprintf("GET %s HTTP/1.1\r\nHost: a\r\n%s\r\nX-Other: 1\r\n\r\n", c.path, c.header)))
		if len(got) != 1 || got[0].Status != c.status {
			t.Errorf("%s: %v, want %d", c.path, got, c.status)
			continue
		}
		if found := strings.Contains(up.lastHead(), key); found != c.upstream {
			t.Errorf("%s: the upstream saw the key: %v", c.path, found)
		}
		if c.status == 200 && holds(up.lastHead(), "X-Other: 1") != 1 {
			t.Errorf("%s: the upstream got %q", c.path, up.lastHead())
		}
	}
	if strings.Contains(g.logged(), key) {
		t.Error("the access log has the key")
	}
}
