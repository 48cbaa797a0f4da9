package vars

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// exchange returns the exchange of a request as it is written on the wire.
func exchange(t testing.TB, request string) *pipeline.Exchange {
	t.Helper()
	call, fault := wire.NewCall([]byte(request), wire.Config{MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 1 << 20})
	if fault != nil {
		t.Fatal(fault.Text)
	}
	call.Started = time.Unix(1_700_000_000, 0)
	return pipeline.For(call)
}

const sample = "GET /listen/a%2Fb/c/?x=1&y-z=a%20b&x=2+3&%78=4&=5 HTTP/1.1\r\n" +
	"Host: api.example:8080\r\n" +
	"x-my-id:  seven \r\n" +
	"Code: DE\r\n" +
	"CODE: FR\r\n" +
	"Under_score: u\r\n" +
	"Cookie: a=1; my-cookie=\"two\"; a=3\r\n" +
	"Cookie: b=4\r\n\r\n"

func sampleExchange(t testing.TB) *pipeline.Exchange {
	ex := exchange(t, sample)
	ex.PathBuf = []byte("/listen/a%2Fb/c/")
	ex.Client = netip.MustParseAddr("fe80::1%eth0")
	copy(ex.ID[:], "0123456789abcdef0123456789abcdef")
	ex.Token = []byte("secret")
	ex.Session = &definition.Session{MetaData: map[string]json.RawMessage{
		"user": json.RawMessage(`"j\u00f6\"e"`), "n": json.RawMessage(`12.50`), "o": json.RawMessage(`{"a": [1]}`),
		"null": json.RawMessage(`null`), "half": json.RawMessage(`"x\ud800"`), "a.b-c_d": json.RawMessage(`""`),
	}}
	ex.Grant = pipeline.NewGrant()
	ex.Grant.Rate, ex.Grant.Quota = ex.Grant.AddLimit(counter.Limit{Max: 5}), ex.Grant.AddLimit(counter.Limit{Max: 10})
	ex.Charge.Counts[0], ex.Charge.Counts[1] = counter.Count{Remaining: 4, ResetAt: 1_700_000_000_001}, counter.Count{Remaining: 7, ResetAt: 1_700_000_060_000}
	ex.Charge.Whole = true
	return ex
}

func filled(t *testing.T, text string, o Options, ex *pipeline.Exchange, path ...string) string {
	t.Helper()
	tmpl, err := Compile(text, o)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var values [][]byte
	for _, p := range path {
		values = append(values, []byte(p))
	}
	return string(tmpl.AppendPath(nil, ex, values))
}

func TestContextVariablesStandForWhatTheRequestHas(t *testing.T) {
	ex := sampleExchange(t)
	for text, want := range map[string]string{
		"":                                  "",
		"no variable, $svc_context, $other": "no variable, $svc_context, $other",
		"$svc_context.headers_X_My_Id":      "seven",
		"$svc_context.headers_X-My-Id":      "seven",
		"$svc_context.headers_x_my_id":      "",
		"$svc_context.headers_Code":         "DE",
		"$svc_context.headers_CODE":         "",
		"$svc_context.headers_Under_score":  "u",
		"$svc_context.headers_Absent":       "",
		"$svc_context.headers_":             "",
		"$svc_context.headers_Host":         "api.example:8080",
		"$svc_context.path":                 "/listen/a%2Fb/c/",
		"$svc_context.path_parts":           "listen,a%2Fb,c",
		"$svc_context.remote_addr":          "fe80::1",
		"$svc_context.request_id":           "0123456789abcdef0123456789abcdef",
		"$svc_context.token":                "secret",
		"$svc_context.request_data":         "x:1,2 3,4;y-z:a b;:5",
		"$svc_context.request_data_x":       "1",
		"$svc_context.request_data_y_z":     "a b",
		"$svc_context.request_data_y-z":     "a b",
		"$svc_context.request_data_none":    "",
		"$svc_context.cookies_a":            "1",
		"$svc_context.cookies_my_cookie":    "two",
		"$svc_context.cookies_b":            "4",
		"$svc_context.cookies_A":            "",
		"$svc_context.rate_limit_limit":     "5",
		"$svc_context.rate_limit_remaining": "4",
		"$svc_context.rate_limit_reset":     "1700000001",
		"$svc_context.quota_limit":          "10",
		"$svc_context.quota_remaining":      "7",
		"$svc_context.quota_reset":          "1700000060",
		"$svc_context.jwt_claims_sub":       "",
		"$svc_context.unknown":              "",
		"$svc_context.pathX":                "",
		"$svc_context.":                     "",

		"<$svc_context.headers_Code/$svc_context.token$svc_meta.n>":  "<DE/secret12.50>",
		"$svc_meta.user $svc_meta.n $svc_meta.o $svc_meta.null":      `jö"e 12.50 {"a": [1]} null`,
		"[$svc_meta.half][$svc_meta.a.b-c_d][$svc_meta.absent]$path": "[][][]$path",
		"$path.code":                         "$path.code",
		"$$svc_context.token":                "$secret",
		"$svc_context.$svc_context.token":    "secret",
		"$svc_context.token $svc_context.no": "secret ",
	} {
		if got := filled(t, text, Options{Context: true}, ex); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestContextVariablesAreEmptyUnlessEnabled(t *testing.T) {
	got := filled(t, "<$svc_context.token$svc_context.headers_Code> $svc_meta.n", Options{}, sampleExchange(t))
	if got != "<> 12.50" {
		t.Errorf("got %q", got)
	}
}

func TestPathParametersAreNamedAsAWhole(t *testing.T) {
	o := Options{Path: []string{"code", "codeX"}}
	if got := filled(t, "$path.codeX/$path.code.$path.code", o, sampleExchange(t), "a", "b"); got != "b/a.a" {
		t.Errorf("got %q", got)
	}
	if _, err := Compile("$path.cod", o); err == nil || !strings.Contains(err.Error(), "{cod}") {
		t.Errorf("got %v", err)
	}
	if got := filled(t, "$path.code", o, sampleExchange(t)); got != "" {
		t.Errorf("without values: %q", got)
	}
}

func TestLimitsThatDoNotApply(t *testing.T) {
	const text = "$svc_context.rate_limit_limit,$svc_context.rate_limit_remaining,$svc_context.rate_limit_reset;" +
		"$svc_context.quota_limit,$svc_context.quota_remaining,$svc_context.quota_reset"
	for want, change := range map[string]func(*pipeline.Exchange){
		",,;,,":                 func(ex *pipeline.Exchange) { ex.Grant = nil },
		"-1,-1,0;-1,-1,0":       func(ex *pipeline.Exchange) { ex.Grant = &pipeline.Grant{Rate: -1, Quota: -1, Unlimited: true} },
		"5,,;10,,":              func(ex *pipeline.Exchange) { ex.Charge.Whole = false },
		"5,4,0;10,7,1700000060": func(ex *pipeline.Exchange) { ex.Charge.Counts[0].ResetAt = 0 },
	} {
		ex := sampleExchange(t)
		change(ex)
		if got := filled(t, text, Options{Context: true}, ex); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestKeylessRequestsHaveNothingOfAKey(t *testing.T) {
	ex := exchange(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	text := "<$svc_context.token$svc_meta.user$svc_context.remote_addr$svc_context.request_id$svc_context.path_parts>$svc_context.path"
	if got := filled(t, text, Options{Context: true}, ex); got != "<>/" {
		t.Errorf("got %q", got)
	}
}

func TestFormsInTheBodyAreRequestData(t *testing.T) {
	body := "b=%41&a=9"
	ex := exchange(t, "POST /?a=1 HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded; charset=utf-8\r\nContent-Length: 9\r\n\r\n"+body)
	if got := filled(t, "$svc_context.request_data|$svc_context.request_data_b", Options{Context: true}, ex); got != "a:1,9;b:A|A" {
		t.Errorf("got %q", got)
	}
	ex = exchange(t, "POST /?a=1 HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\n"+body)
	if got := filled(t, "$svc_context.request_data", Options{Context: true}, ex); got != "a:1" {
		t.Errorf("got %q", got)
	}
	ex.Call.SetLines([]byte("Content-Type: application/x-www-form-urlencoded\r\n"))
	ex.Call.Body, ex.Call.Stream = nil, strings.NewReader(body)
	if got := filled(t, "$svc_context.request_data", Options{Context: true}, ex); got != "a:1" {
		t.Errorf("a body on its way was read: %q", got)
	}
}

func TestNoVariableEndsAHeaderLine(t *testing.T) {
	ex := exchange(t, "GET /?v=a%0d%0aEvil:%201%00%0b%7f%09b HTTP/1.1\r\nHost: a\r\n\r\n")
	ex.Session = &definition.Session{MetaData: map[string]json.RawMessage{"m": json.RawMessage(`"x\r\ny\u0000z"`)}}
	tmpl, err := Compile("$svc_context.request_data_v|$svc_meta.m", Options{Context: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(tmpl.AppendHeader([]byte("X: "), ex)); got != "X: aEvil: 1\tb|xyz" {
		t.Errorf("got %q", got)
	}
}

func TestConstant(t *testing.T) {
	for text, constant := range map[string]bool{"": true, "x": true, "$svc_context.token": true, "$svc_meta.x": false, "x$svc_meta.x": false} {
		tmpl, err := Compile(text, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := tmpl.Constant(); ok != constant {
			t.Errorf("%s: constant is %t", text, ok)
		}
	}
}

func TestManyParametersAreBounded(t *testing.T) {
	ex := exchange(t, "GET /?"+strings.Repeat("a&", 1000)+"b=1 HTTP/1.1\r\nHost: a\r\n\r\n")
	if got := filled(t, "$svc_context.request_data", Options{Context: true}, ex); len(got) != len("a:")+maxParameters-1 {
		t.Errorf("%d bytes", len(got))
	}
	if got := filled(t, "$svc_context.request_data_b", Options{Context: true}, ex); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestFillingDoesNotAllocate(t *testing.T) {
	ex, dst := sampleExchange(t), make([]byte, 0, 1024)
	ex.Claims = []byte(`{"x": [1], "sub": "j\u00f6e"}`)
	ex.Captures.Add("0-a", 0, -1, []byte("found"))
	for _, name := range []string{
		"headers_X_My_Id", "headers_Host", "path", "path_parts", "remote_addr", "request_id", "token", "request_data",
		"request_data_x", "cookies_b", "rate_limit_reset", "quota_remaining", "jwt_claims_sub", "trigger-0-a-0", "svc_trace_id",
	} {
		tmpl, err := Compile("a $svc_context."+name+" $svc_meta.user $svc_meta.o $path.p", Options{Context: true, Path: []string{"p"}})
		if err != nil {
			t.Fatal(err)
		}
		path := [][]byte{[]byte("v")}
		if n := testing.AllocsPerRun(100, func() { dst = tmpl.AppendPath(dst[:0], ex, path) }); n != 0 && !race.Enabled {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func FuzzCompileKeepsWhatIsNoVariable(f *testing.F) {
	for _, text := range []string{"a $svc_context.path.b", "$path.a$path.", "$svc_meta.", "$$svc_$svc_meta.x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tmpl, err := Compile(text, Options{Context: true, Path: []string{"a"}})
		if err != nil {
			return
		}
		ex := exchange(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		got := string(tmpl.AppendPath(nil, ex, nil))
		if !strings.Contains(text, "$svc_") && !strings.Contains(text, "$path.") && got != text {
			t.Fatalf("%q became %q", text, got)
		}
		if bytes.ContainsAny(tmpl.AppendHeader(nil, ex), "\r\n\x00") {
			t.Fatalf("%q ends a line", text)
		}
	})
}

func FuzzRequestDataAgreesWithTheStandardLibrary(f *testing.F) {
	f.Add("a=1&b=%41+c&a=&=x&&%")
	f.Fuzz(func(t *testing.T, query string) {
		want, err := url.ParseQuery(query)
		if err != nil || strings.Count(query, "&") >= maxParameters {
			return
		}
		ex := pipeline.For(&wire.Call{Query: []byte(query)})
		for name, values := range want {
			if strings.Contains(name, "-") {
				continue
			}
			if got := string(requestValue(name).append(nil, ex, nil)); got != values[0] && !hasDashedTwin(want, name) {
				t.Fatalf("%q: %q is %q, want %q", query, name, got, values[0])
			}
		}
	})
}

// hasDashedTwin tells whether another name is the same once dashes are underscores.
func hasDashedTwin(all url.Values, name string) bool {
	for other := range all {
		if other != name && strings.ReplaceAll(other, "-", "_") == name {
			return true
		}
	}
	return false
}

func BenchmarkAppend(b *testing.B) {
	ex, dst := sampleExchange(b), make([]byte, 0, 1024)
	tmpl, _ := Compile("$svc_context.headers_X_My_Id $svc_meta.user", Options{Context: true})
	b.ReportAllocs()
	for b.Loop() {
		dst = tmpl.Append(dst[:0], ex)
	}
}
