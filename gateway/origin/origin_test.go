package origin

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
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

func compiled(t testing.TB, cors string) *CORS {
	t.Helper()
	c, err := Compile(&definition.API{CORS: json.RawMessage(cors)})
	if err != nil {
		t.Fatalf("%s: %v", cors, err)
	}
	return c
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

func stageOf(t testing.TB, def *definition.API) pipeline.Stage {
	t.Helper()
	s, err := CompileAddresses(def)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCallersAreLetPassByTheirAddress(t *testing.T) {
	allow := definition.API{EnableIPAllowList: true, AllowedIPs: []string{"192.0.2.7", "10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32", "::ffff:198.51.100.0/120", "203.0.113.9/24"}}
	block := definition.API{EnableIPBlockList: true, BlockedIPs: []string{"10.9.0.0/16", "2001:db8:9::1"}}
	both := allow
	both.EnableIPBlockList, both.BlockedIPs = true, block.BlockedIPs
	everybody := definition.API{EnableIPAllowList: true, AllowedIPs: []string{"0.0.0.0/0", "::/0"}}
	for _, c := range []struct {
		name   string
		def    definition.API
		passes []string
		not    []string
	}{
		{
			"allow", allow,
			[]string{"192.0.2.7", "10.0.0.0", "10.255.255.255", "10.1.2.3", "10.2.0.0", "::ffff:10.1.1.1", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8::1%eth0", "198.51.100.255", "203.0.113.1"},
			[]string{"192.0.2.6", "192.0.2.8", "9.255.255.255", "11.0.0.0", "2001:db9::", "2001:db7:ffff::", "::1", "198.51.101.0", "0.0.0.0", "255.255.255.255", ""},
		},
		{"block", block, []string{"10.8.255.255", "10.10.0.0", "2001:db8:9::2", "::1", ""}, []string{"10.9.0.0", "10.9.255.255", "::ffff:10.9.1.1", "2001:db8:9::1"}},
		{"both", both, []string{"10.8.0.1", "2001:db8::2"}, []string{"10.9.0.1", "2001:db8:9::1", "192.0.2.6"}},
		{"everybody", everybody, []string{"0.0.0.0", "255.255.255.255", "::", "ffff::"}, nil},
	} {
		stage := stageOf(t, &c.def)
		for i, text := range slices.Concat(c.passes, c.not) {
			ex := exchange(t, "GET / HTTP/1.1\r\nHost: a\r\n")
			if text != "" {
				ex.Client = netip.MustParseAddr(text)
			}
			want := pipeline.Next
			if i >= len(c.passes) {
				want = pipeline.Rejected
			}
			got := stage.Handle(ex)
			if got != want {
				t.Errorf("%s: %s: verdict %d, want %d", c.name, text, got, want)
			}
			if got == pipeline.Rejected && (ex.Rejection.Status != 403 || ex.Rejection.Message != "access from this IP has been disallowed") {
				t.Errorf("%s: %+v", c.name, ex.Rejection)
			}
		}
	}
}

func TestListsThatAreOffCostNothing(t *testing.T) {
	for _, def := range []definition.API{
		{}, {AllowedIPs: []string{"x"}, BlockedIPs: []string{"y"}}, {EnableIPBlockList: true},
	} {
		if stageOf(t, &def) != nil {
			t.Errorf("%+v: compiled", def)
		}
	}
	if _, err := CompileAddresses(&definition.API{EnableIPAllowList: true}); err == nil {
		t.Error("a list that nobody is on was taken")
	}
}

func TestExplanationsNameTheEntry(t *testing.T) {
	stage := stageOf(t, &definition.API{
		EnableIPAllowList: true, AllowedIPs: []string{"192.0.2.7", "10.0.0.0/8"}, EnableIPBlockList: true, BlockedIPs: []string{"10.9.0.0/16"},
	})
	for text, want := range map[string]string{
		"10.1.1.1": "[{allowed_ips 10.0.0.0/8 10.1.1.1 definition} {blacklisted_ips none of 1 10.1.1.1 definition}] calls from 10.1.1.1 may pass",
		"10.9.1.1": "[{allowed_ips 10.0.0.0/8 10.9.1.1 definition} {blacklisted_ips 10.9.0.0/16 10.9.1.1 definition}] 10.9.1.1 is on the list of those who may not call",
		"1.1.1.1":  "[{allowed_ips none of 2 1.1.1.1 definition} {blacklisted_ips none of 1 1.1.1.1 definition}] 1.1.1.1 is not on the list of those who may call",
	} {
		ex := exchange(t, "GET / HTTP/1.1\r\nHost: a\r\n")
		ex.Client = netip.MustParseAddr(text)
		f := pipeline.Finding{Verdict: stage.Handle(ex)}
		stage.(pipeline.Explainer).Explain(ex, &f)
		if got := fmt.Sprint(f.Facts, " ", f.Said); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
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

func FuzzSetsAgreeWithTheirPrefixes(f *testing.F) {
	f.Add([]byte{10, 0, 0, 0, 8, 10, 1, 0, 0, 16, 192, 0, 2, 7, 32}, uint32(0x0a010203))
	f.Fuzz(func(t *testing.T, raw []byte, n uint32) {
		var prefixes []netip.Prefix
		for ; len(raw) >= 5; raw = raw[5:] {
			four := netip.AddrFrom4([4]byte(raw[:4]))
			bits := int(raw[4] % 33)
			prefixes = append(prefixes, netip.PrefixFrom(four, bits).Masked())
			six := four.As16()
			six[10], six[11] = 0, 0 // no IPv4 in disguise
			six[0] = 0x20
			prefixes = append(prefixes, netip.PrefixFrom(netip.AddrFrom16(six), 96+bits).Masked())
		}
		s := newSet(prefixes)
		four := netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		six := four.As16()
		six[10], six[11], six[0] = 0, 0, 0x20
		for _, a := range []netip.Addr{four, netip.AddrFrom16(six)} {
			want := slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
			if s.has(a) != want {
				t.Fatalf("%v in %v: want %t", a, prefixes, want)
			}
		}
	})
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

func TestOriginsAndAddressesDoNotAllocate(t *testing.T) {
	c := compiled(t, listed)
	answer, preflight := c.Answer(), c.Preflight()
	ip := stageOf(t, &definition.API{EnableIPBlockList: true, BlockedIPs: []string{"10.0.0.0/8", "2001:db8::/32"}})
	call, asked := exchange(t, actual), exchange(t, "OPTIONS /a HTTP/1.1\r\nHost: a\r\nOrigin: https://x.apps.example\r\nAccess-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: x-one\r\n")
	call.Client = netip.MustParseAddr("2001:db7::1")
	theirs := []byte("Content-Type: a\r\nAccess-Control-Allow-Origin: b\r\n")
	if n := testing.AllocsPerRun(100, func() {
		preflight.Handle(call)
		ip.Handle(call)
		call.Answer.Lines = append(call.Answer.Lines[:0], theirs...)
		answer.Handle(call)
		asked.Answer.Lines = asked.Answer.Lines[:0]
		preflight.Handle(asked)
	}); n != 0 && !raceEnabled {
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

func BenchmarkAddresses(b *testing.B) {
	for _, n := range []int{10, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			list := make([]string, n)
			for i := range list {
				list[i] = netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String()
			}
			stage, ex := stageOf(b, &definition.API{EnableIPBlockList: true, BlockedIPs: list}), exchange(b, actual)
			ex.Client = netip.MustParseAddr("10.200.1.1")
			b.ReportAllocs()
			for b.Loop() {
				stage.Handle(ex)
			}
		})
	}
}
