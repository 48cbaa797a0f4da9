package auth

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/vars"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// asked is a request with a query and header lines.
func asked(query string, lines ...string) *pipeline.Exchange {
	call := &wire.Call{Started: time.Now(), Query: []byte(query)}
	if len(lines) > 0 {
		call.SetLines([]byte(strings.Join(lines, "\r\n") + "\r\n"))
	}
	return pipeline.For(call)
}

func everywhere() *definition.Auth {
	return &definition.Auth{UseParam: true, ParamName: "api_key", UseCookie: true, CookieName: "session"}
}

func TestACookieComesBeforeAParameterBeforeTheHeader(t *testing.T) {
	for _, c := range []struct {
		name  string
		conf  *definition.Auth
		query string
		lines []string
		want  string
	}{
		{"header", everywhere(), "", []string{"Authorization: h"}, "h"},
		{"parameter", everywhere(), "api_key=p", nil, "p"},
		{"cookie", everywhere(), "", []string{"Cookie: session=c"}, "c"},
		{"all", everywhere(), "api_key=p", []string{"Authorization: h", "Cookie: session=c"}, "c"},
		{"parameter and header", everywhere(), "api_key=p", []string{"Authorization: h"}, "p"},
		{"an empty cookie does not count", everywhere(), "api_key=p", []string{"Cookie: session="}, "p"},
		{"an empty parameter does not count", everywhere(), "api_key=", []string{"Authorization: h"}, "h"},
		{"a parameter without a value does not count", everywhere(), "api_key", []string{"Authorization: h"}, "h"},
		{"nowhere", everywhere(), "apikey=p", []string{"Cookie: sessions=c", "X: h"}, ""},
		{"names follow the header's", &definition.Auth{HeaderName: "X-Key", UseParam: true}, "X-Key=p", nil, "p"},
		{"the cookie's too", &definition.Auth{HeaderName: "X-Key", UseCookie: true}, "", []string{"cookie: X-Key=c"}, "c"},
		{"no header", &definition.Auth{DisableHeader: true, UseParam: true, ParamName: "k"}, "", []string{"Authorization: h"}, ""},
		{"only the header", &definition.Auth{ParamName: "k", CookieName: "k"}, "k=p", []string{"Authorization: h", "Cookie: k=c"}, "h"},
		{"escapes", everywhere(), "a=b&api%5Fkey=a%2Bb+c%3D%3d&api_key=no", nil, "a+b c=="},
		{"broken escapes", everywhere(), "api_key=%zz", []string{"Authorization: h"}, "h"},
		{"a broken escape at the end", everywhere(), "api_key=a%4", nil, ""},
		{"the first of two parameters", everywhere(), "api_key=1&api_key=2", nil, "1"},
		{"names of parameters have a case", everywhere(), "API_KEY=p", nil, ""},
		{"several cookies", everywhere(), "", []string{"Cookie: a=1;session=c ; b=2"}, "c"},
		{"several lines of cookies", everywhere(), "", []string{"Cookie: a=1", "X: y", "Cookie: session=c"}, "c"},
		{"a cookie in quotes", everywhere(), "", []string{`Cookie: session="c"`}, "c"},
		{"cookies that are none", everywhere(), "", []string{"Cookie: ;; =x; session; session=c;"}, ""},
		{"equals signs in a cookie", everywhere(), "", []string{"Cookie: session=YWI=="}, "YWI=="},
	} {
		s := newSource(c.conf)
		if got := string(s.find(asked(c.query, c.lines...))); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAKeyFromAnywhereLetsItsCallerIn(t *testing.T) {
	st := newStore()
	key := issue(t, st, &definition.Session{Alias: "it"})
	def := &definition.API{AuthConfigs: map[string]*definition.Auth{"authToken": everywhere()}}
	s := compiled(t, New(NewSessions(options(st)), 3), def)
	for name, ex := range map[string]*pipeline.Exchange{
		"header": asked("", "Authorization: Bearer "+key), "parameter": asked("api_key=bearer+" + key), "cookie": asked("", "Cookie: session="+key),
		"parameter, escaped": asked("api_key=" + strings.ReplaceAll(key, "_", "%5F")),
	} {
		if v := s.Handle(ex); v != pipeline.Next || ex.Session.Alias != "it" || string(ex.Token) != key {
			t.Errorf("%s: %d, %+v, token %q", name, v, ex.Rejection, ex.Token)
		}
	}
	for name, want := range map[string]*pipeline.Rejection{"": missing, "api_key=nobodys": unknown, "api_key=x": noKey} {
		if ex := asked(name); s.Handle(ex) != pipeline.Rejected || ex.Rejection != want {
			t.Errorf("%q: %+v", name, ex.Rejection)
		}
	}
}

func TestCredentialsAreTakenOutOfWhatGoesUpstream(t *testing.T) {
	st := newStore()
	key := issue(t, st, &definition.Session{})
	header := "Authorization: " + key
	for _, c := range []struct {
		name        string
		conf        *definition.Auth
		query       string
		lines       []string
		wantQuery   string
		wantCookies string // "-": as the client's
	}{
		{"header", everywhere(), "a=1", []string{header}, "a=1", "-"},
		{"parameter", everywhere(), "a=1&api_key=" + key + "&b=%20", []string{header}, "a=1&b=%20", "-"},
		{"every parameter of the name", everywhere(), "api_key=" + key + "&x&api%5fkey=y&&z", nil, "x&&z", "-"},
		{"alone", everywhere(), "api_key=" + key, nil, "", "-"},
		{"a parameter that is not looked at stays", &definition.Auth{ParamName: "api_key"}, "api_key=1", []string{header}, "api_key=1", "-"},
		{"cookie", everywhere(), "", []string{"Cookie: a=1; session=" + key + ";b=2"}, "", "Cookie: a=1; b=2\r\n"},
		{"the only cookie", everywhere(), "", []string{"Cookie: session=" + key}, "", ""},
		{"the first that begins like it", everywhere(), "", []string{header, "Cookie: a=1; session_x=1; session_y=2"}, "", "Cookie: a=1; session_y=2\r\n"},
		{"and the credential", everywhere(), "", []string{"Cookie: session_x=1; session=" + key + "; session_y=2"}, "", "Cookie: session_y=2\r\n"},
		{"in several lines", everywhere(), "", []string{"Cookie: a=1", "cookie: session=" + key, "Cookie: session=again; b=2"}, "", "Cookie: a=1\r\nCookie: b=2\r\n"},
		{"no cookie of the name", everywhere(), "", []string{header, "Cookie: a=1"}, "", "-"},
	} {
		def := &definition.API{StripAuthData: true, AuthConfigs: map[string]*definition.Auth{"authToken": c.conf}}
		s := compiled(t, New(NewSessions(options(st)), 3), def)
		for _, before := range []string{"", "X-Version"} {
			ex := asked(c.query, c.lines...)
			if before != "" {
				ex.Outgoing.AlsoDrop(before)
			}
			if s.Handle(ex) != pipeline.Next {
				t.Errorf("%s: refused: %+v", c.name, ex.Rejection)
				continue
			}
			out := &ex.Outgoing
			if got := string(ex.Query()); got != c.wantQuery || string(ex.Call.Query) != c.query {
				t.Errorf("%s: query %q, want %q", c.name, got, c.wantQuery)
			}
			dropped := slices.Contains(out.Drop, "Cookie")
			if got := string(out.Extra); dropped != (c.wantCookies != "-") || dropped && got != c.wantCookies {
				t.Errorf("%s: cookies %q (dropped %v), want %q", c.name, got, dropped, c.wantCookies)
			}
			if !slices.Contains(out.Drop, "Authorization") || before != "" && !slices.Contains(out.Drop, before) {
				t.Errorf("%s: dropped %q", c.name, out.Drop)
			}
			if string(ex.Token) != key {
				t.Errorf("%s: the token became %q", c.name, ex.Token)
			}
			ex.Release()
		}
	}
}

func TestAQueryThatAStageSetIsStripped(t *testing.T) {
	ex := asked("v=1&api_key=x&a=1")
	ex.Outgoing.Query, ex.Outgoing.HasQuery = append(ex.Outgoing.Query, "api_key=x&a=1&api_key=y"...), true
	stripParameter(ex, "api_key")
	if got := string(ex.Query()); got != "a=1" {
		t.Errorf("%q", got)
	}
}

func TestCredentialsFromAnywhereDoNotAllocate(t *testing.T) {
	st := newStore()
	key := issue(t, st, &definition.Session{})
	def := &definition.API{StripAuthData: true, AuthConfigs: map[string]*definition.Auth{"authToken": everywhere()}}
	s := compiled(t, New(NewSessions(options(st)), 3), def)
	for name, call := range map[string]*wire.Call{
		"parameter":          asked("a=1&api_key=" + key + "&b=2").Call,
		"parameter, escaped": asked("api_key=%" + "73" + key[1:]).Call,
		"cookie":             asked("", "Cookie: a=1; session="+key+"; b=2").Call,
	} {
		if n := testing.AllocsPerRun(1000, func() {
			ex := pipeline.For(call)
			if s.Handle(ex) != pipeline.Next {
				t.Fatal(name)
			}
			ex.Release()
		}); n != 0 && !race.Enabled { // with the race detector on, pools drop what they hold at random
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// FuzzQuery holds what is read of a query, and what is left of it, against what
// the standard library makes of it.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"", "k=1", "a=b&k=%41+b&k=2", "k", "&&k=&", "k=%", "%6b=x", "k=a;b", "k==&=k"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, written string) {
		if strings.ContainsAny(written, " \r\n#;") {
			return // no request target holds them; of semicolons the standard library has its own opinion
		}
		ex := asked(written)
		defer ex.Release()
		values, _ := url.ParseQuery(written)
		got := string(parameterOf(ex, "k"))
		if want := values.Get("k"); want != "" && !broken(written) && got != want {
			t.Fatalf("%q: %q, want %q", written, got, want)
		}
		stripParameter(ex, "k")
		left := string(ex.Query())
		if vars.HasParameter([]byte(left), "k") {
			t.Fatalf("%q left %q", written, left)
		}
		after, _ := url.ParseQuery(left)
		values.Del("k")
		if after.Encode() != values.Encode() {
			t.Fatalf("%q left %q", written, left)
		}
	})
}

// broken tells whether a part of a query cannot be decoded.
func broken(query string) bool {
	_, err := url.ParseQuery(query)
	return err != nil
}

// FuzzCookie holds cookies that are taken out against those that stay.
func FuzzCookie(f *testing.F) {
	for _, seed := range []string{"", "k=1", "a=b; k=2;c", "k", ";;k=;", `k="x"`, "kk=1; k=2", " k = 1 "} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		if strings.ContainsAny(first+second, "\r\n\x00") {
			return // no header line holds them
		}
		ex := asked("", "Cookie: "+first, "Cookie: "+second)
		defer ex.Release()
		value := cookieOf(ex.Call, "k")
		if len(value) > 0 && !strings.Contains(first+second, string(value)) {
			t.Fatalf("%q and %q hold %q", first, second, value)
		}
		stripCookie(ex, "k")
		if !slices.Contains(ex.Outgoing.Drop, "Cookie") {
			if len(value) > 0 {
				t.Fatalf("%q and %q pass", first, second)
			}
			return
		}
		again := &wire.Call{}
		again.SetLines(ex.Outgoing.Extra)
		if left := cookieOf(again, "k"); left != nil {
			t.Fatalf("%q and %q left %q", first, second, ex.Outgoing.Extra)
		}
		if names(ex.Call)-names(again) != taken(ex.Call) {
			t.Fatalf("%q and %q left %q", first, second, ex.Outgoing.Extra)
		}
	})
}

// names counts the cookies of a call, and taken those that are to go.
func names(call *wire.Call) (n int) { return count(call, func(string, int) bool { return true }) }

func taken(call *wire.Call) int {
	return count(call, func(name string, before int) bool {
		return name == "k" || strings.HasPrefix(name, "k") && before == 0
	})
}

func count(call *wire.Call, counts func(name string, before int) bool) (n int) {
	before := 0
	for i := range call.Fields {
		for pair := range strings.SplitSeq(string(call.ValueOf(&call.Fields[i])), ";") {
			pair = strings.Trim(pair, " \t")
			if pair == "" {
				continue
			}
			name, _, _ := strings.Cut(pair, "=")
			name = strings.Trim(name, " \t")
			if counts(name, before) {
				n++
			}
			if strings.HasPrefix(name, "k") {
				before++
			}
		}
	}
	return n
}

func BenchmarkSources(b *testing.B) {
	st := newStore()
	key := issue(b, st, &definition.Session{})
	def := &definition.API{AuthConfigs: map[string]*definition.Auth{"authToken": everywhere()}}
	s := compiled(b, New(NewSessions(options(st)), 3), def)
	for _, c := range []struct {
		name string
		ex   *pipeline.Exchange
	}{
		{"header", asked("a=1", "Authorization: "+key)}, {"parameter", asked("a=1&api_key=" + key)}, {"cookie", asked("a=1", "Cookie: a=1; session="+key)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Handle(c.ex)
			}
		})
	}
}
