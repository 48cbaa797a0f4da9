package wire

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
)

const proxyV2 = "\r\n\r\n\x00\r\nQUIT\n"

func TestProxyHeaders(t *testing.T) {
	four := "\xc0\x00\x02\x07\xc6\x33\x64\x01\x01\x02\x03\x04"
	six := "\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x07" + strings.Repeat("\x00", 16) + "\x01\x02\x03\x04"
	mapped := strings.Repeat("\x00", 10) + "\xff\xff\xc0\x00\x02\x07" + strings.Repeat("\x00", 16) + "\x01\x02\x03\x04"
	for _, c := range []struct{ name, header, want string }{
		{"v1", "PROXY TCP4 192.0.2.7 198.51.100.1 56324 443\r\n", "192.0.2.7"},
		{"v1 with IPv6", "PROXY TCP6 2001:db8::7 2001:db8::1 0 65535\r\n", "2001:db8::7"},
		{"v1, mapped", "PROXY TCP6 ::ffff:192.0.2.7 ::1 1 2\r\n", "192.0.2.7"},
		{"v1, unknown", "PROXY UNKNOWN\r\n", "none"},
		{"v1, unknown with more", "PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n", "none"},
		{"v2", proxyV2 + "\x21\x11\x00\x0c" + four, "192.0.2.7"},
		{"v2 with extensions", proxyV2 + "\x21\x11\x00\x11" + four + "\x04\x00\x02ab", "192.0.2.7"},
		{"v2 with IPv6", proxyV2 + "\x21\x21\x00\x24" + six, "2001:db8::7"},
		{"v2, mapped", proxyV2 + "\x21\x21\x00\x24" + mapped, "192.0.2.7"},
		{"v2, of the proxy", proxyV2 + "\x20\x11\x00\x0c" + four, "none"},
		{"v2, unknown", proxyV2 + "\x21\x00\x00\x00", "none"},

		{"a request", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", ""},
		{"v1, UDP", "PROXY UDP4 192.0.2.7 198.51.100.1 1 2\r\n", ""},
		{"v1, in lower case", "proxy TCP4 192.0.2.7 198.51.100.1 1 2\r\n", ""},
		{"v1, another family", "PROXY TCP6 192.0.2.7 198.51.100.1 1 2\r\n", ""},
		{"v1, two families", "PROXY TCP4 192.0.2.7 2001:db8::1 1 2\r\n", ""},
		{"v1, a zone", "PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n", ""},
		{"v1, a name", "PROXY TCP4 localhost 198.51.100.1 1 2\r\n", ""},
		{"v1, a port too large", "PROXY TCP4 192.0.2.7 198.51.100.1 65536 2\r\n", ""},
		{"v1, a zero before a port", "PROXY TCP4 192.0.2.7 198.51.100.1 01 2\r\n", ""},
		{"v1, two blanks", "PROXY TCP4  192.0.2.7 198.51.100.1 1 2\r\n", ""},
		{"v1, a blank at the end", "PROXY TCP4 192.0.2.7 198.51.100.1 1 2 \r\n", ""},
		{"v1, LF alone", "PROXY TCP4 192.0.2.7 198.51.100.1 1 2\n", ""},
		{"v1, no end", "PROXY UNKNOWN " + strings.Repeat("x", 200), ""},
		{"v2, another version", proxyV2 + "\x11\x11\x00\x0c" + four, ""},
		{"v2, another command", proxyV2 + "\x22\x11\x00\x0c" + four, ""},
		{"v2, UDP", proxyV2 + "\x21\x12\x00\x0c" + four, ""},
		{"v2, too short", proxyV2 + "\x21\x11\x00\x0b" + four, ""},
		{"v2, IPv6 too short", proxyV2 + "\x21\x21\x00\x0c" + four, ""},
		{"v2, too long", proxyV2 + "\x21\x11\xff\xff" + strings.Repeat("x", 1<<16), ""},
		{"cut", proxyV2 + "\x21\x11\x00\x0c\xc0", ""},
	} {
		for how, wrap := range map[string]func(io.Reader) io.Reader{"at once": func(r io.Reader) io.Reader { return r }, "in bytes": iotest.OneByteReader} {
			r := strings.NewReader(c.header + "GET")
			addr, err := readProxyHeader(wrap(r))
			got := "none"
			if addr.IsValid() {
				got = addr.String()
			}
			if err != nil {
				got = ""
			}
			if got != c.want {
				t.Errorf("%s, %s: %q, %v, want %q", c.name, how, got, err, c.want)
			}
			if left, _ := io.ReadAll(r); err == nil && string(left) != "GET" {
				t.Errorf("%s, %s: %q was left", c.name, how, left)
			}
		}
	}
}

// FuzzProxyHeader reads arbitrary bytes: a header that is accepted is one of the shortest
// forms that say the same, and none of what follows is consumed.
func FuzzProxyHeader(f *testing.F) {
	for _, seed := range []string{
		"PROXY TCP4 192.0.2.7 198.51.100.1 56324 443\r\nGET / HTTP/1.1\r\n", "PROXY UNKNOWN\r\n", "PROXY TCP6 ::1 ::1 1 2\r\n",
		proxyV2 + "\x21\x11\x00\x0c\xc0\x00\x02\x07\xc6\x33\x64\x01\x01\x02\x03\x04", proxyV2 + "\x20\x00\x00\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := bytes.NewReader(raw)
		addr, err := readProxyHeader(r)
		used := raw[:len(raw)-r.Len()]
		switch {
		case err != nil && addr.IsValid():
			t.Fatalf("%q: %s with an error", raw, addr)
		case err != nil && !errors.Is(err, errProxyHeader) && r.Len() > 0:
			t.Fatalf("%q: %v before the end", raw, err)
		case err != nil:
			return
		case bytes.HasPrefix(used, proxySignature):
			if want := proxyFixed + int(used[14])<<8 + int(used[15]); len(used) != want {
				t.Fatalf("%q: %d bytes used, want %d", raw, len(used), want)
			}
		case len(used) > proxyLine || !bytes.HasPrefix(used, []byte("PROXY ")) || !bytes.HasSuffix(used, []byte("\r\n")) || bytes.Count(used, []byte("\n")) != 1:
			t.Fatalf("%q: %q used", raw, used)
		}
		if addr.Is4In6() || addr.Zone() != "" {
			t.Fatalf("%q: the client is %s", raw, addr)
		}
		again, err := readProxyHeader(bytes.NewReader(used))
		if err != nil || again != addr {
			t.Fatalf("%q: %s, and then %s, %v", raw, addr, again, err)
		}
	})
}

func TestConnectionsOfProxiesCountForTheirClients(t *testing.T) {
	conf := testConfig()
	conf.Proxies, conf.MaxConnsPerIP = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, 1
	s, addr := start(t, conf, handle(func(call *Call) {
		call.Answer.Status, call.Answer.Body = 200, []byte(call.Peer.String())
	}))
	open := func(client string) string {
		c := dial(t, addr)
		_, _ = io.WriteString(c, "PROXY TCP4 "+client+" 127.0.0.1 1 2\r\n"+getX)
		answer := make([]byte, 4<<10)
		n, _ := c.Read(answer)
		return string(answer[:n])
	}
	if got := open("192.0.2.7"); !strings.HasSuffix(got, "\r\n\r\n192.0.2.7") {
		t.Errorf("the first connection: %q", got)
	}
	if got := open("192.0.2.8"); !strings.HasSuffix(got, "\r\n\r\n192.0.2.8") {
		t.Errorf("that of another client: %q", got)
	}
	if got := open("192.0.2.7"); !strings.HasPrefix(got, "HTTP/1.1 503 ") {
		t.Errorf("the second connection: %q", got)
	}
	if n := s.Stats().Refused; n != 1 {
		t.Errorf("%d connections were turned away", n)
	}
}

// A check of the port that sends nothing is no fault, and a stop does not wait for it.
func TestConnectionsThatAreNotIntroduced(t *testing.T) {
	conf := testConfig()
	conf.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	s, addr := start(t, conf, &echo{})
	dial(t, addr).Close()
	c := dial(t, addr)
	_, _ = io.WriteString(c, getX+getX)
	if got, _ := io.ReadAll(c); len(got) > 0 {
		t.Errorf("it answers %q", got)
	}
	gone(t, s)
	if n := s.Stats().Unintroduced; n != 1 {
		t.Errorf("%d connections without a header", n)
	}
	_ = dial(t, addr) // is open when the test ends
}
