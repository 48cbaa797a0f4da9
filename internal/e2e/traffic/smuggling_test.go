package traffic

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// honest serves an upstream that frames requests strictly. Below /early it
// answers before it reads the body, below /stall it never answers.
func honest(t testing.TB, asked *seen) string {
	return "http://" + testenv.RawOrigin(t, func(c net.Conn, _ int) {
		br := bufio.NewReader(c)
		for {
			req, err := asked.readRequest(br)
			if err != nil {
				return
			}
			answer := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
			if req.method != http.MethodHead {
				answer += "ok"
			}
			switch {
			case strings.HasPrefix(req.path, "/stall"):
				_, _ = io.Copy(io.Discard, br)
				return
			case strings.HasPrefix(req.path, "/early"):
				_, _ = io.WriteString(c, strings.Replace(answer, "200 OK", "409 Conflict", 1))
				_, err = req.drain()
			default:
				if _, err = req.drain(); err == nil {
					_, err = io.WriteString(c, answer)
				}
			}
			if err != nil {
				return
			}
		}
	})
}

// early is a request that is answered early.
type early struct {
	name    string
	method  string
	path    string
	headers string
	status  int
}

// hidden is what a body says that wants to be a request.
const hidden = "GET /open/hidden HTTP/1.1\r\nHost: a\r\n\r\n"

// bodyForm is how a body is sent behind a head.
type bodyForm struct {
	name   string
	frame  func() (headers, body string)
	behind string // a request of its own behind the body
	alters bool   // the body itself may be refused, whatever the request's answer would be
}

func sized(body string) (string, string) {
	return fmt.Sprintf("Content-Length: %d\r\n", len(body)), body
}

func chunked(body string) (string, string) {
	return "Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
}

func expecting(headers, body string) (string, string) {
	return "Expect: 100-continue\r\n" + headers, body
}

const legit = "GET /open/legit HTTP/1.1\r\nHost: a\r\n\r\n"

func bodyForms() []bodyForm {
	small, large := strings.Repeat(hidden, 5), strings.Repeat(hidden, 5000)
	return []bodyForm{
		{"length, small", func() (string, string) { return sized(small) }, "", false},
		{"length, large", func() (string, string) { return sized(large) }, "", false},
		{"length, small, a request behind", func() (string, string) { return sized(small) }, legit, false},
		{"length, large, a request behind", func() (string, string) { return sized(large) }, legit, false},
		{"chunked, small", func() (string, string) { return chunked(small) }, "", false},
		{"chunked, large", func() (string, string) { return chunked(large) }, "", false},
		{"chunked, a request behind", func() (string, string) { return chunked(small) }, legit, false},
		{"continue, length", func() (string, string) { return expecting(sized(large)) }, legit, false},
		{"continue, chunked", func() (string, string) { return expecting(chunked(small)) }, legit, false},
		{"longer than what comes", func() (string, string) { return "Content-Length: 300000\r\n", small }, "", true},
		{"chunk longer than its size", func() (string, string) {
			return "Transfer-Encoding: chunked\r\n", "5\r\nabcdefgh" + hidden + "\r\n0\r\n\r\n" + hidden
		}, "", true},
		{"chunks that never end", func() (string, string) {
			return "Transfer-Encoding: chunked\r\n", "5\r\nabcde\r\nzz\r\n" + hidden
		}, "", true},
	}
}

// smuggling is a gateway with everything that can answer early.
func smuggling(t *testing.T, asked *seen) (*traffic, []early) {
	upstream := honest(t, asked)
	broken := rig.Transport(rig.APIDef("broken", "https://127.0.0.1", true), object{"ssl_ca_file": "/nonexistent"})
	g := newTraffic(t, settings{"gateway.max_request_body": "300KiB", "upstream.response_timeout": "3s"}, nil,
		rig.APIDef("open", upstream, true), rig.APIDef("keyed", upstream, false), rig.APIDef("other", upstream, false), broken,
		rig.APIDef("dead", deadAddress(t), true), rig.Transport(rig.APIDef("stall", upstream+"/stall", true), object{"response_timeout": 0.1}),
		rig.APIDef("early", upstream+"/early", true))
	rights := rig.AccessTo("keyed")
	denied := rig.AccessTo("keyed")
	denied["keyed"].(object)["allowed_urls"] = []object{{"url": "/allowed", "methods": []string{"GET"}}}
	keys := map[string]string{
		"plain": g.newKey(object{"access_rights": rights}),
		"urls":  g.newKey(object{"access_rights": denied}),
		"rate":  g.newKey(object{"access_rights": rights, "rate": 1, "per": 3600}),
		"quota": g.newKey(object{"access_rights": rights, "quota_max": 1, "quota_renewal_rate": 3600}),
	}
	auth := func(name string) string { return "Authorization: " + keys[name] + "\r\n" }
	for _, name := range []string{"rate", "quota"} {
		if got := rig.Call(t, "GET", g.Traffic+"/keyed/used", nil, "Authorization", keys[name]); got.Status != 200 {
			t.Fatalf("using up the %s: %s", name, got)
		}
	}
	secret := "X-Svc-Authorization: " + testSecret + "\r\n"
	return g, []early{
		{"no route", "POST", "/nowhere", "", 404},
		{"no key", "POST", "/keyed/x", "", 401},
		{"unknown key", "POST", "/keyed/x", "Authorization: unknown-key\r\n", 403},
		{"API not granted", "POST", "/other/x", auth("plain"), 403},
		{"URL not granted", "POST", "/keyed/denied", auth("urls"), 403},
		{"rate", "POST", "/keyed/x", auth("rate"), 429},
		{"quota", "POST", "/keyed/x", auth("quota"), 403},
		{"bad path", "POST", "/open/%00/x", "", 400},
		{"dead upstream", "POST", "/dead/x", "", 502},
		{"not served", "POST", "/broken/x", "", 503},
		{"upstream stalls", "POST", "/stall/x", "", 504},
		{"upstream answers early", "POST", "/early/x", "", 409},
		{"forwarded", "POST", "/open/x", "", 200},
		{"forwarded with a key", "PUT", "/keyed/x", auth("plain"), 200},
		{"HEAD", "HEAD", "/open/x", "", 200},
		{"HEAD refused", "HEAD", "/keyed/x", "", 401},
		{"OPTIONS", "OPTIONS", "/open/x", "", 200},
		{"OPTIONS for the server", "OPTIONS", "*", "", 400},
		{"GET with a body", "GET", "/open/x", "", 200},
		{"GET refused", "GET", "/keyed/x", "", 401},
		{"gateway API, no secret", "POST", "/svc/keys", "", 403},
		{"gateway API, no such path", "POST", "/svc/nothing", secret, 404},
		{"gateway API, method", "PATCH", "/svc/keys", secret, 405},
		{"gateway API, malformed body", "POST", "/svc/keys", secret, 400},
		{"health", "GET", "/hello", "", 200},
		{"health, method", "POST", "/hello", "", 405},
		{"expectation", "POST", "/open/x", "Expect: magic\r\n", 417},
		{"other version", "POST", "/open/x", "X: y\r\nHost: b\r\n", 400},
	}
}

// A body that the gateway did not read never becomes a request, whoever answers
// and however the body is sent; nor does one that an upstream did not read.
func TestNoBodyBecomesARequest(t *testing.T) {
	t.Parallel()
	asked := &seen{}
	g, kinds := smuggling(t, asked)
	tried := 0
	for _, kind := range kinds {
		for _, form := range bodyForms() {
			tried++
			headers, body := form.frame()
			raw := kind.method + " " + kind.path + " HTTP/1.1\r\nHost: a\r\n" + kind.headers + headers + "\r\n" + body + form.behind
			got := parse(t, conversation(t, g.addr, raw), kind.method)
			name := kind.name + ", " + form.name
			if len(got) == 0 && (form.alters || kind.status == 504) {
				continue // it was cut off, which is no wrong answer
			}
			if len(got) == 0 {
				t.Errorf("%s: no answer", name)
				continue
			}
			if got[0].Status != kind.status && !form.alters && !(kind.status == 200 && got[0].Status == 413) {
				t.Errorf("%s: %s, want %d", name, got[0], kind.status)
			}
			switch {
			case len(got) > 2, len(got) == 2 && form.behind == "":
				t.Errorf("%s: %d answers, the second is %s", name, len(got), got[1])
			case len(got) == 2 && (got[1].Status != 200 || got[1].Body != "ok"):
				t.Errorf("%s: the request behind got %s", name, got[1])
			}
		}
	}
	if found := asked.with("hidden"); len(found) > 0 {
		t.Errorf("upstreams were asked %d hidden requests: %q", len(found), found[0])
	}
	if n := strings.Count(g.logged(), "hidden"); n > 0 {
		t.Errorf("the access log has %d hidden requests", n)
	}
	t.Logf("%d conversations, %d requests reached upstreams", tried, len(asked.with("")))
}

// What could be read two ways is refused, and nothing of it reaches an upstream.
func TestAmbiguousRequestsAreRefused(t *testing.T) {
	t.Parallel()
	asked := &seen{}
	g := newTraffic(t, nil, nil, rig.APIDef("open", honest(t, asked), true))
	const start = "POST /open/ambiguous HTTP/1.1\r\nHost: a\r\n"
	for _, c := range []struct{ name, raw string }{
		{"length and chunked", start + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"chunked and length", start + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"},
		{"two lengths", start + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde"},
		{"one length twice", start + "Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd"},
		{"list of lengths", start + "Content-Length: 4, 4\r\n\r\nabcd"},
		{"signed length", start + "Content-Length: +4\r\n\r\nabcd"},
		{"negative length", start + "Content-Length: -1\r\n\r\nabcd"},
		{"length in hex", start + "Content-Length: 0x4\r\n\r\nabcd"},
		{"length with a blank", start + "Content-Length: 4 4\r\n\r\nabcd"},
		{"length beyond 64 bits", start + "Content-Length: 18446744073709551620\r\n\r\nabcd"},
		{"empty length", start + "Content-Length: \r\n\r\nabcd"},
		{"blank before the colon", start + "Content-Length : 4\r\n\r\nabcd"},
		{"blank before the colon of chunked", start + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"},
		{"blank before a name", start + " Content-Length: 4\r\n\r\nabcd"},
		{"tab before a name", start + "\tTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"folded line", start + "X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"folded value", start + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"},
		{"coding in disguise", start + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"},
		{"coding behind chunked", start + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"},
		{"identity", start + "Transfer-Encoding: identity\r\nContent-Length: 4\r\n\r\nabcd"},
		{"two codings", start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"},
		{"coding in quotes", start + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"},
		{"coding behind a vertical tab", start + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n"},
		{"coding in HTTP/1.0", "POST /open/ambiguous HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"name that is no token", start + "Content-Length\x00: 4\r\n\r\nabcd"},
		{"name in brackets", start + "Content(Length: 4\r\n\r\nabcd"},
		{"NUL in a value", start + "X: a\x00b\r\n\r\n"},
		{"line without a colon", start + "Transfer-Encoding\r\n\r\n"},
		{"LF without CR", "POST /open/ambiguous HTTP/1.1\nHost: a\n\n"},
		{"LF without CR in a header", start + "X: y\nContent-Length: 4\r\n\r\nabcd"},
		{"CR without LF", start + "X: y\rContent-Length: 4\r\n\r\nabcd"},
		{"CR before the line's end", start + "X: y\r\r\n\r\n"},
		{"two hosts", start + "Host: b\r\n\r\n"},
		{"no host", "GET /open/ambiguous HTTP/1.1\r\n\r\n"},
		{"another host in the target", "GET http://b/open/ambiguous HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"blanks in the target", "GET /open/ambiguous HTTP/1.1 HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"two blanks in the request line", "GET  /open/ambiguous HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"tab in the request line", "GET\t/open/ambiguous\tHTTP/1.1\r\nHost: a\r\n\r\n"},
		{"HTTP/0.9", "GET /open/ambiguous\r\n\r\n"},
		{"version in small letters", "GET /open/ambiguous http/1.1\r\nHost: a\r\n\r\n"},
		{"fragment", "GET /open/ambiguous#x HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"HTTP/2 without asking", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"},
	} {
		got := parse(t, conversation(t, g.addr, c.raw+hidden+hidden), "POST")
		if len(got) != 1 || got[0].Status < 400 || got[0].Status >= 600 {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if found := asked.with(""); len(found) > 0 {
		t.Errorf("upstreams were asked %d requests: %q", len(found), found)
	}
	if n := strings.Count(g.logged(), "hidden"); n > 0 {
		t.Errorf("the access log has %d hidden requests", n)
	}
}

// The ports of the gateway API and of telemetry frame requests as strictly.
func TestNoBodyBecomesARequestOnOtherPorts(t *testing.T) {
	t.Parallel()
	asked := &seen{}
	g := newTraffic(t, settings{"gateway.control_listen": rig.FreeAddress(t)}, nil, rig.APIDef("open", honest(t, asked), true))
	secret := "X-Svc-Authorization: " + testSecret + "\r\n"
	for _, port := range []struct {
		url   string
		kinds []early
	}{
		{g.Control, []early{
			{"list", "GET", "/svc/apis", secret, 200},
			{"no secret", "POST", "/svc/keys", "", 403},
			{"no such path", "POST", "/svc/nothing", secret, 404},
			{"method", "PATCH", "/svc/keys", secret, 405},
			{"health", "GET", "/hello", "", 200},
			{"HEAD", "HEAD", "/svc/apis", secret, 0},
		}},
		{g.Telemetry, []early{
			{"metrics", "GET", "/metrics", "", 200},
			{"live", "GET", "/livez", "", 200},
			{"method", "POST", "/livez", "", 0},
			{"no such path", "GET", "/nothing", "", 404},
		}},
	} {
		address := strings.TrimPrefix(port.url, "http://")
		for _, kind := range port.kinds {
			for _, form := range bodyForms() {
				headers, body := form.frame()
				raw := kind.method + " " + kind.path + " HTTP/1.1\r\nHost: a\r\n" + kind.headers + headers + "\r\n" + body + form.behind
				got := parse(t, conversation(t, address, raw), kind.method)
				limit := 1
				if form.behind != "" {
					limit = 2
				}
				if len(got) > limit || len(got) > 0 && !form.alters && kind.status != 0 && got[0].Status != kind.status {
					t.Errorf("%s%s, %s, %s: %d answers, the first is %.200s", port.url, kind.path, kind.name, form.name, len(got), got[0])
				}
			}
		}
		for _, lengths := range []string{"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 4\r\nContent-Length: 5\r\n", "Content-Length : 4\r\n"} {
			got := parse(t, conversation(t, address, "POST /hello HTTP/1.1\r\nHost: a\r\n"+lengths+"\r\n0\r\n\r\n"+hidden))
			if len(got) != 1 || got[0].Status != 400 {
				t.Errorf("%s, %q: %d answers, %v", port.url, lengths, len(got), got)
			}
		}
	}
}
