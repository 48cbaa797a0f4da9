package cors

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

func exchange(t testing.TB, request string) *pipeline.Exchange {
	t.Helper()
	call, fault := wire.NewCall([]byte(request+"\r\n"), wire.Config{MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 1 << 20})
	if fault != nil {
		t.Fatal(fault.Text)
	}
	ex := pipeline.For(call)
	ex.Version = &pipeline.Version{}
	return ex
}

func compiled(t testing.TB, cors string) *Rules {
	t.Helper()
	return Compile(&definition.API{CORS: testenv.Part[definition.CORS](cors)})
}

// said are the header lines of an answer, sorted.
func said(a *wire.Answer) []string {
	lines := strings.Split(strings.TrimSuffix(string(a.Lines), "\r\n"), "\r\n")
	slices.Sort(lines)
	return lines
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

const varyPreflight = "Vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers"

const listed = `{"enable": true, "allowed_origins": ["https://App.example", "https://*.Apps.example", "http://localhost:*", "null"],
	"allowed_methods": ["GET", "PUT"], "allowed_headers": ["X-One", "authorization"], "exposed_headers": ["X-Out", "X-Too"], "max_age": 60}`

func TestPreflightsAreAnswered(t *testing.T) {
	preflight := func(origin, method, headers string) string {
		text := "OPTIONS /a HTTP/1.1\r\nHost: a\r\nOrigin: " + origin + "\r\nAccess-Control-Request-Method: " + method + "\r\n"
		if headers != "" {
			text += "Access-Control-Request-Headers: " + headers + "\r\n"
		}
		return text
	}
	allowed := func(origin string) []string {
		return []string{
			varyPreflight, "Access-Control-Allow-Origin: " + origin, "Access-Control-Allow-Methods: GET, PUT",
			"Access-Control-Allow-Headers: X-One, authorization", "Access-Control-Max-Age: 60",
		}
	}
	const with = `{"enable": true, "allowed_origins": ["https://a"], "allow_credentials": true, "allowed_headers": ["*"]}`
	for _, c := range []struct {
		cors, request string
		want          []string
	}{
		{listed, preflight("https://app.example", "GET", ""), allowed("https://app.example")},
		{listed, preflight("HTTPS://APP.EXAMPLE", "PUT", "x-one,AUTHORIZATION , "), allowed("HTTPS://APP.EXAMPLE")},
		{listed, preflight("https://x.y.apps.example", "PUT", "X-One"), allowed("https://x.y.apps.example")},
		{listed, preflight("http://localhost:3000", "PUT", ""), allowed("http://localhost:3000")},
		{listed, preflight("null", "PUT", ""), allowed("null")},
		{listed, preflight("https://app.example.evil", "GET", ""), []string{varyPreflight}},
		{listed, preflight("https://.apps.example", "GET", ""), []string{varyPreflight}},
		{listed, preflight("https://evil/.apps.example", "GET", ""), []string{varyPreflight}},
		{listed, preflight("https://evil:1.apps.example", "GET", ""), []string{varyPreflight}},
		{listed, preflight("http://localhost:", "GET", ""), []string{varyPreflight}},
		{listed, preflight("http://app.example", "GET", ""), []string{varyPreflight}},
		{listed, preflight("https://app.example", "DELETE", ""), []string{varyPreflight}},
		{listed, preflight("https://app.example", "get", ""), []string{varyPreflight}},
		{listed, preflight("https://app.example", "GET", "X-One, X-Two"), []string{varyPreflight}},
		{listed, preflight("https://"+strings.Repeat("a", 300)+".apps.example", "GET", ""), []string{varyPreflight}},
		{`{"enable": true}`, preflight("https://any", "POST", "content-type"), []string{
			varyPreflight, "Access-Control-Allow-Origin: *", "Access-Control-Allow-Methods: GET, HEAD, POST",
			"Access-Control-Allow-Headers: Origin, Accept, Content-Type, X-Requested-With",
		}},
		{with, preflight("https://a", "GET", "x-a, x-b"), []string{
			varyPreflight, "Access-Control-Allow-Origin: https://a", "Access-Control-Allow-Methods: GET, HEAD, POST",
			"Access-Control-Allow-Credentials: true", "Access-Control-Allow-Headers: x-a, x-b",
		}},
		{with, preflight("https://a", "GET", "x-a, x b"), []string{varyPreflight}},
		{with, preflight("https://a", "GET", "x-"+strings.Repeat("a", 200)), []string{varyPreflight}},
	} {
		ex := exchange(t, c.request)
		if v := compiled(t, c.cors).Preflight().Handle(ex); v != pipeline.Answered || ex.Answer.Status != 204 || !ex.Answer.NoBody {
			t.Errorf("%s: verdict %d, status %d", c.request, v, ex.Answer.Status)
		}
		same(t, c.request, said(ex.Answer), c.want...)
		before := string(ex.Answer.Lines)
		compiled(t, c.cors).Answer().Handle(ex)
		if string(ex.Answer.Lines) != before {
			t.Errorf("%s: the answer was changed on its way back", c.request)
		}
	}
}

func TestOtherCallsAreNoPreflights(t *testing.T) {
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\nAccess-Control-Request-Method: GET\r\n",
		"OPTIONS / HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\n",
		"OPTIONS / HTTP/1.1\r\nHost: a\r\nAccess-Control-Request-Method: GET\r\n",
	} {
		ex := exchange(t, request)
		if v := compiled(t, listed).Preflight().Handle(ex); v != pipeline.Next || len(ex.Answer.Lines) > 0 || ex.Open {
			t.Errorf("%s: verdict %d", request, v)
		}
	}
}

func TestPreflightsCanBeTheUpstreams(t *testing.T) {
	ex := exchange(t, "OPTIONS / HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\nAccess-Control-Request-Method: GET\r\n")
	c := compiled(t, `{"enable": true, "options_passthrough": true}`)
	if v := c.Preflight().Handle(ex); v != pipeline.Next || !ex.Open {
		t.Errorf("verdict %d, open is %t", v, ex.Open)
	}
	ex.Answer.Lines = []byte("Access-Control-Allow-Origin: theirs\r\n")
	c.Answer().Handle(ex)
	same(t, "the upstream's answer", said(ex.Answer), "Access-Control-Allow-Origin: theirs")
}

func TestAnswersTellBrowsersWhoMayReadThem(t *testing.T) {
	const theirs = "Content-Type: a\r\naccess-CONTROL-allow-origin: https://theirs\r\nVary: Accept\r\nAccess-Control-Max-Age: 5\r\nAccess: b\r\n"
	kept := []string{"Content-Type: a", "Vary: Accept", "Access: b"}
	for _, c := range []struct {
		cors, origin string
		want         []string
	}{
		{listed, "https://app.example", []string{"Vary: Origin", "Access-Control-Allow-Origin: https://app.example", "Access-Control-Expose-Headers: X-Out, X-Too"}},
		{listed, "https://other.example", []string{"Vary: Origin"}},
		{listed, "", []string{"Vary: Origin"}},
		{`{"enable": true}`, "https://any", []string{"Access-Control-Allow-Origin: *"}},
		{`{"enable": true}`, "", []string{"Access-Control-Allow-Origin: *"}},
		{`{"enable": true, "allowed_origins": ["https://*"]}`, "https://any", []string{"Vary: Origin", "Access-Control-Allow-Origin: https://any"}},
		{`{"enable": true, "allowed_origins": ["https://a"], "allow_credentials": true}`, "https://a", []string{
			"Vary: Origin", "Access-Control-Allow-Origin: https://a", "Access-Control-Allow-Credentials: true",
		}},
	} {
		request := "GET / HTTP/1.1\r\nHost: a\r\n"
		if c.origin != "" {
			request += "Origin: " + c.origin + "\r\n"
		}
		ex := exchange(t, request)
		ex.Answer.Lines = []byte(theirs)
		if v := compiled(t, c.cors).Answer().Handle(ex); v != pipeline.Next {
			t.Errorf("verdict %d", v)
		}
		same(t, c.cors+" "+c.origin, said(ex.Answer), append(c.want, kept...)...)
	}
}

func TestCORSThatIsOffCostsNothing(t *testing.T) {
	for _, cors := range []string{"", "null", "{}", `{"enable": false, "allowed_origins": ["*"], "allow_credentials": true}`} {
		if compiled(t, cors) != nil {
			t.Errorf("%q: compiled", cors)
		}
	}
}

func TestExplanationsNameTheRule(t *testing.T) {
	c := compiled(t, listed).Preflight()
	for request, want := range map[string]string{
		"OPTIONS / HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\nAccess-Control-Request-Method: GET\r\n":    "permits the call",
		"OPTIONS / HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\nAccess-Control-Request-Method: DELETE\r\n": "no permission, for allowed_methods",
		"GET / HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\n":                                              "may read the answer",
		"GET / HTTP/1.1\r\nHost: a\r\nOrigin: https://evil.example\r\n":                                             "may not read the answer",
		"GET / HTTP/1.1\r\nHost: a\r\n": "no preflight",
	} {
		ex := exchange(t, request)
		f := pipeline.Finding{Verdict: c.Handle(ex)}
		c.(pipeline.Explainer).Explain(ex, &f)
		if !strings.Contains(f.Said, want) {
			t.Errorf("%s: %s", request, f.Said)
		}
	}
}

func FuzzOriginsAndHeadersNeverEndALine(f *testing.F) {
	f.Add("https://app.example", "x-a, b", "GET")
	f.Fuzz(func(t *testing.T, from, headers, method string) {
		call := &wire.Call{Method: []byte("OPTIONS")}
		call.SetLines([]byte("Origin: " + from + "\r\nAccess-Control-Request-Method: " + method + "\r\nAccess-Control-Request-Headers: " + headers + "\r\n"))
		ex := pipeline.For(call)
		ex.Version = &pipeline.Version{}
		compiled(t, `{"enable": true, "allowed_origins": ["https://*.example"], "allowed_headers": ["*"]}`).Preflight().Handle(ex)
		for _, line := range said(ex.Answer) {
			if strings.ContainsAny(line, "\r\n\x00") || line != "" && !strings.HasPrefix(line, "Access-Control-") && !strings.HasPrefix(line, "Vary: ") {
				t.Fatalf("a line %q", line)
			}
		}
	})
}

const actual = "GET /a HTTP/1.1\r\nHost: a\r\nOrigin: https://x.apps.example\r\n"

func TestCORSDoesNotAllocate(t *testing.T) {
	c := compiled(t, listed)
	answer, preflight := c.Answer(), c.Preflight()
	call, asked := exchange(t, actual), exchange(t, "OPTIONS /a HTTP/1.1\r\nHost: a\r\nOrigin: https://x.apps.example\r\nAccess-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: x-one\r\n")
	theirs := []byte("Content-Type: a\r\nAccess-Control-Allow-Origin: b\r\n")
	if n := testing.AllocsPerRun(100, func() {
		preflight.Handle(call)
		call.Answer.Lines = append(call.Answer.Lines[:0], theirs...)
		answer.Handle(call)
		asked.Answer.Lines = asked.Answer.Lines[:0]
		preflight.Handle(asked)
	}); n != 0 && !race.Enabled {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAnswer(b *testing.B) {
	c := compiled(b, listed)
	entry, answer, ex := c.Preflight(), c.Answer(), exchange(b, actual)
	theirs := []byte("Content-Type: application/json\r\nDate: Sat, 21 Nov 2026 20:00:00 GMT\r\nServer: origin\r\nX-Request-Id: 1\r\n")
	b.ReportAllocs()
	for b.Loop() {
		ex.Answer.Lines = append(ex.Answer.Lines[:0], theirs...)
		entry.Handle(ex)
		answer.Handle(ex)
	}
}
