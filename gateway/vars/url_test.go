package vars

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/internal/definition"
)

func inURL(t testing.TB, text string, part Part, request string) string {
	t.Helper()
	tmpl, err := Compile(text, Options{Context: true})
	if err != nil {
		t.Fatal(err)
	}
	return string(tmpl.AppendURL(nil, exchange(t, request), part))
}

func TestVariablesInURLsAreOneValueAndNoMore(t *testing.T) {
	const request = "GET /a%2Fb/c;d=1?v=x%26y%3D%0d%0a%20%23&w=../.. HTTP/1.1\r\nHost: a\r\nX-V: a/b?c&d=e f#%41\xc3\xa9\r\n\r\n"
	for _, c := range []struct {
		text string
		part Part
		want string
	}{
		{"/x/$svc_context.headers_X_V/y", Path, "/x/a%2Fb%3Fc%26d%3De%20f%23%2541%C3%A9/y"},
		{"id=$svc_context.headers_X_V&k=1", Query, "id=a%2Fb%3Fc%26d%3De%20f%23%2541%C3%A9&k=1"},
		{"/$svc_context.request_data_v", Path, "/x%26y%3D%0D%0A%20%23"},
		{"/$svc_context.request_data_w/z", Path, "/..%2F../z"},
		{"/was$svc_context.path", Path, "/was/a%2Fb/c%3Bd%3D1"},
		{"p=$svc_context.path", Query, "p=%2Fa%252Fb%2Fc%3Bd%3D1"},
		{"/fixed%20text?", Path, "/fixed%20text?"},
		{"$svc_context.headers_None", Path, ""},
	} {
		if got := inURL(t, c.text, c.part, request); got != c.want {
			t.Errorf("%s: got %q, want %q", c.text, got, c.want)
		}
	}
}

func TestClaimsOfAVerifiedToken(t *testing.T) {
	ex := exchange(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	text := "[$svc_context.jwt_claims_sub][$svc_context.jwt_claims_n][$svc_context.jwt_claims_o][$svc_context.jwt_claims_a-b][$svc_context.jwt_claims_none][$svc_context.jwt_claims_]"
	if got := filled(t, text, Options{Context: true}, ex); got != "[][][][][][]" {
		t.Errorf("without a token: %s", got)
	}
	ex.Claims = []byte(` {"o": {"sub": "inner"}, "sub": "j\u00f6\r\ne", "n": 12, "a-b": [1, "x"], "bad": "\ud800", "": "e"}`)
	if got := filled(t, text, Options{Context: true}, ex); got != "[jö\r\ne][12][{\"sub\": \"inner\"}][[1, \"x\"]][][e]" {
		t.Errorf("got %q", got)
	}
	if got := filled(t, "<$svc_context.jwt_claims_bad>", Options{Context: true}, ex); got != "<>" {
		t.Errorf("half a surrogate pair: %q", got)
	}
	tmpl, _ := Compile(text, Options{Context: true})
	if got := tmpl.AppendHeader(nil, ex); strings.ContainsAny(string(got), "\r\n") {
		t.Errorf("a claim ends a line: %q", got)
	}
	ex.Claims = []byte(`{"sub": `)
	if got := filled(t, "<$svc_context.jwt_claims_sub>", Options{Context: true}, ex); got != "<>" {
		t.Errorf("broken claims: %q", got)
	}
}

func TestTraceIDsAreThoseOfTheGateway(t *testing.T) {
	const text = "$svc_context.svc_trace_id"
	ex := exchange(t, "GET / HTTP/1.1\r\nHost: a\r\nTraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n")
	if got := filled(t, text, Options{Context: true}, ex); got != "" {
		t.Errorf("in no trace: got %q", got)
	}
	copy(ex.Trace.ID[:], "4bf92f3577b34da6a3ce929d0e0e4736")
	if got := filled(t, text, Options{Context: true}, ex); got != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("got %q", got)
	}
}

func TestCapturesOfTriggers(t *testing.T) {
	ex := exchange(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	ex.Captures.Add("0-X-Id", 0, -1, []byte("whole"))
	ex.Captures.Add("0-X-Id", 0, 0, []byte("group"))
	ex.Captures.Add("0-X-Id", 12, -1, []byte("thirteenth"))
	for text, want := range map[string]string{
		"$svc_context.trigger-0-X-Id-0": "whole", "$svc_context.trigger-0-X-Id-0-0": "group", "$svc_context.trigger-0-X-Id-12": "thirteenth",
		"$svc_context.trigger-0-X-Id-1": "", "$svc_context.trigger-0-X-Id": "", "$svc_context.trigger-1-X-Id-0": "", "$svc_context.trigger-": "",
	} {
		if got := filled(t, text, Options{Context: true}, ex); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	ex.Captures.Cut(1)
	if got := filled(t, "$svc_context.trigger-0-X-Id-0$svc_context.trigger-0-X-Id-0-0", Options{Context: true}, ex); got != "whole" {
		t.Errorf("after a cut: %q", got)
	}
}

func TestParametersByTheirPlace(t *testing.T) {
	ex := exchange(t, "GET /?a=1&%61=2&b=%20+&a HTTP/1.1\r\nHost: a\r\n\r\n")
	for n, want := range []string{"1", "2", ""} {
		if got, ok := AppendParameter(nil, ex, "a", n); !ok || string(got) != want {
			t.Errorf("%d: %q, %t", n, got, ok)
		}
	}
	if got, ok := AppendParameter(nil, ex, "b", 0); !ok || string(got) != "  " {
		t.Errorf("got %q, %t", got, ok)
	}
	if _, ok := AppendParameter(nil, ex, "a", 3); ok {
		t.Error("there is a fourth")
	}
}

func FuzzVariablesStayWithinTheirPartOfAURL(f *testing.F) {
	f.Add("x/../y?z=1&w#\r\n\x00%")
	f.Add("%2e%2e")
	f.Fuzz(func(t *testing.T, value string) {
		ex := exchange(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		raw, _ := json.Marshal(value)
		ex.Session = &definition.Session{MetaData: map[string]json.RawMessage{"v": raw}}
		tmpl, _ := Compile("a$svc_meta.v", Options{})
		plain := string(tmpl.Append(nil, ex))[1:]
		path, query := string(tmpl.AppendURL(nil, ex, Path)), string(tmpl.AppendURL(nil, ex, Query))
		if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%") != "" {
			t.Fatalf("%q became %q", value, path)
		}
		if got, err := url.PathUnescape(path); err != nil || got != "a"+plain {
			t.Fatalf("%q reads %q, %v", path, got, err)
		}
		if got, err := url.QueryUnescape(query); err != nil || got != "a"+plain {
			t.Fatalf("%q reads %q, %v", query, got, err)
		}
		if decoded, err := match.Decode(nil, []byte("/"+path)); err == nil && strings.Count(string(decoded), "/") != 1 {
			t.Fatalf("%q became segments: %q", value, decoded)
		}
	})
}
