package explain

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
)

var limits = wire.Config{MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 1 << 20}

func TestDescriptionsBecomeTheBytesOfTheirRequests(t *testing.T) {
	for _, c := range []struct{ name, description, want string }{
		{"path", `{"url":"/a?b=c"}`, "GET /a?b=c HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		{"URL", `{"method":"PUT","url":"https://api.example:8443/a#part","body":"xy"}`, "PUT /a HTTP/1.1\r\nHost: api.example:8443\r\nContent-Length: 2\r\n\r\nxy"},
		{"URL without a path", `{"url":"http://a?b"}`, "GET /?b HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"path with a URL in it", `{"url":"/go?to=http://x"}`, "GET /go?to=http://x HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		{"lines", `{"url":"/","headers":["Host: b","X:  1 ","X: 2","Empty:"]}`, "GET / HTTP/1.1\r\nHost: b\r\nX: 1\r\nX: 2\r\nEmpty: \r\n\r\n"},
		{"members", `{"url":"/","headers":{"b":["1","2"],"a":"3"}}`, "GET / HTTP/1.1\r\nHost: localhost\r\na: 3\r\nb: 1\r\nb: 2\r\n\r\n"},
		{"bytes", `{"url":"/","method":"POST","body_base64":"/w=="}`, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n\xff"},
		{"chunks", `{"url":"/","method":"POST","body":"ab","headers":["Transfer-Encoding: chunked"]}`, "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nab"},
		{"asterisk", `{"url":"*","method":"OPTIONS"}`, "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n"},
	} {
		r, err := Parse([]byte(c.description))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := string(r.Raw()); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestDescriptionsAreRefusedByTheNamesOfTheirMembers(t *testing.T) {
	for _, c := range []struct{ description, want string }{
		{``, "is not a JSON object"},
		{`[]`, "must not be a JSON array"},
		{`{"url":"/"} x`, "something follows"},
		{`{"uri":"/"}`, "uri: is unknown; known are id, method, url"},
		{`{"url":7}`, "url: must not be a JSON number"},
		{`{}`, "url: must be a URL"},
		{`{"url":"a"}`, "url: must be a URL"},
		{`{"url":"ftp://a/"}`, "url: must begin with http"},
		{`{"url":"http:///a"}`, "url: names no host"},
		{`{"url":"/\r\nX: 1"}`, "url: must be on one line"},
		{`{"url":"/","method":"GET /x HTTP/1.1\r\n"}`, "method: must be one word"},
		{`{"url":"/","headers":7}`, "headers: must be a list of lines"},
		{`{"url":"/","headers":["x"]}`, "headers[0]: must be a line"},
		{`{"url":"/","headers":{"a":7}}`, "headers.a: must be a text"},
		{`{"url":"/","headers":{"a":"1\r\nb: 2"}}`, "headers: must each be on one line"},
		{`{"url":"/","headers":["Content-Length: 7"]}`, "headers: Content-Length is that of the body"},
		{`{"url":"/","body":"a","body_base64":"YQ=="}`, "body_base64: and body are both given"},
		{`{"url":"/","key":"a","key_hash":"b"}`, "key_hash: and key are both given"},
		{`{"url":"/","key":"a\nb"}`, "key: must be on one line"},
		{`{"url":"/","client":"here"}`, "client: must be an address"},
		{`{"url":"/","revision":-1}`, "revision: must be the number"},
		{`{"id":"a b"}`, "id: must be the X-Request-Id"},
		{`{"id":"0123456789abcdef0123456789abcdef","url":"/"}`, "id: stands alone"},
	} {
		_, err := Parse([]byte(c.description))
		if _, ok := err.(*definition.Problems); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.description, err, c.want)
		}
	}
}

func TestKeysStandWhereTheDefinitionSays(t *testing.T) {
	for _, c := range []struct {
		at   definition.Auth
		want string
	}{
		{definition.Auth{}, "GET /a?b=c HTTP/1.1\r\nHost: localhost\r\nAuthorization: k&1\r\n\r\n"},
		{definition.Auth{HeaderName: "X-Key", UseParam: true}, "GET /a?b=c HTTP/1.1\r\nHost: localhost\r\nX-Key: k&1\r\n\r\n"},
		{definition.Auth{DisableHeader: true, UseParam: true, ParamName: "q"}, "GET /a?b=c&q=k%261 HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		{definition.Auth{DisableHeader: true, UseCookie: true, CookieName: "t"}, "GET /a?b=c HTTP/1.1\r\nHost: localhost\r\nCookie: t=k&1\r\n\r\n"},
		{definition.Auth{DisableHeader: true}, "GET /a?b=c HTTP/1.1\r\nHost: localhost\r\n\r\n"},
	} {
		r, err := Parse([]byte(`{"url":"/a?b=c","key":"k&1"}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(r.WithKey(&c.at).Raw()); got != c.want {
			t.Errorf("%+v: %q, want %q", c.at, got, c.want)
		}
	}
}

func TestSecretsAreMasked(t *testing.T) {
	q, err := Parse([]byte(`{"url":"/the-secret-key/x","headers":["Authorization: Bearer the-secret-key","Cookie: a=cookie-secret","X-Plain: shown"]}`))
	if err != nil {
		t.Fatal(err)
	}
	r := &Report{Path: q.PathSent(), Steps: []Step{{Result: OK}}, Outcome: Outcome{
		Body: `{"error":"the-secret-key"}`, Upstream: &Plan{Target: "/x?key=the-secret-key", Added: []string{maskLine("X-Token: abc"), maskLine("X-Plain: shown")}},
	}}
	r.Steps[0].Said, r.Steps[0].Fix = "the-secret-key", "use a=cookie-secret"
	r.Steps[0].Fact("rule", "the-secret-key", "Bearer the-secret-key", "")
	r.Mask(q.Secrets()...)
	told := strings.Join([]string{
		r.Path, r.Steps[0].Said, r.Steps[0].Fix, r.Steps[0].Facts[0].Value, r.Steps[0].Facts[0].Seen, r.Outcome.Body,
		r.Outcome.Upstream.Target, strings.Join(r.Outcome.Upstream.Added, "\n"),
	}, "\n")
	want := "/***/x\n***\nuse ***\n***\n***\n{\"error\":\"***\"}\n/x?key=***\nX-Token: ***\nX-Plain: shown"
	if told != want {
		t.Errorf("%q, want %q", told, want)
	}
}

// What is described can be refused, but never holds another line or another
// request than it says.
func FuzzDescription(f *testing.F) {
	f.Add(`{"method":"POST","url":"http://a/b?c","headers":["X: 1","Host: a"],"body":"abc","key":"k","client":"::1"}`)
	f.Add(`{"url":"/","headers":{"a":["1","2"]},"body_base64":"/w==","tls":true}`)
	f.Add(`{"url":"/a b","headers":["Transfer-Encoding: chunked"],"body":"x"}`)
	f.Add(`{"id":"0123456789abcdef0123456789abcdef"}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse([]byte(text))
		if err != nil {
			if _, ok := err.(*definition.Problems); !ok {
				t.Fatalf("%T for %q", err, text)
			}
			return
		}
		if r.ID != "" {
			return
		}
		call, fault := wire.Imagine(r.Raw(), limits)
		if fault != nil {
			return
		}
		own := 1
		if r.Headers.has("Host") {
			own = 0
		}
		if len(r.content()) > 0 && !r.Headers.has("Transfer-Encoding") {
			own++
		}
		if len(call.Fields) != len(r.Headers)+own || string(call.Method) != r.Method {
			t.Fatalf("%q became %q with %d lines", text, call.Method, len(call.Fields))
		}
		if call.Stream == nil && string(call.Body) != string(r.content()) {
			t.Fatalf("%q became a body of %q", text, call.Body)
		}
	})
}
