package persisted

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// An entry is a stored operation of a test.
type entry struct {
	method, path, operation string
	variables               string // JSON of an object
}

const byCode = "query ($code: ID!) { country(code: $code) { name } }"

func definitionOf(t testing.TB, entries ...entry) *definition.API {
	t.Helper()
	var list []map[string]any
	for _, e := range entries {
		o := map[string]any{"method": e.method, "path": e.path, "operation": e.operation}
		if e.variables != "" {
			o["variables"] = json.RawMessage(e.variables)
		}
		list = append(list, o)
	}
	raw, err := json.Marshal(map[string]any{"persist_graphql": list})
	if err != nil {
		t.Fatal(err)
	}
	return &definition.API{
		ID: "test", EnableContextVars: true, Proxy: definition.Proxy{ListenPath: "/x/", TargetURL: "http://u"},
		VersionData: &definition.VersionData{NotVersioned: true, Versions: map[string]*definition.Version{
			"Default": {UseExtendedPaths: true, ExtendedPaths: testenv.Part[definition.ExtendedPaths](string(raw))},
		}},
	}
}

// compiled compiles def and returns what was logged.
func compiled(t testing.TB, def *definition.API) (*Stage, *bytes.Buffer) {
	t.Helper()
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	s := New(def, def.Unversioned(), log)
	if s == nil {
		t.Fatal("no stage")
	}
	var governed *graphql.Stage
	if def.IsGraphQL() {
		g := graphql.New(graphql.Options{MaxBody: 1 << 20, Cache: 1 << 20, RefusedCache: 1 << 20, Log: log})
		stage, err := g.Compile(def)
		if err != nil {
			t.Fatal(err)
		}
		governed = stage
	}
	s.Govern(governed)
	return s, &logged
}

var limits = wire.Config{MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 1 << 20}

// exchange returns the exchange of a request as it is written on the wire, but
// for the listen path, which its target lacks.
func exchange(t testing.TB, request string) *pipeline.Exchange {
	t.Helper()
	call, fault := wire.NewCall([]byte(request), limits)
	if fault != nil {
		t.Fatal(fault.Text)
	}
	decoded, err := match.Decode(nil, call.Path)
	if err != nil {
		t.Fatal(err)
	}
	call.Started = time.Unix(1_700_000_000, 0)
	ex := pipeline.For(call)
	ex.Path, ex.PathBuf = decoded, decoded
	return ex
}

func call(t testing.TB, s *Stage, method, path string, headers ...string) (*pipeline.Exchange, pipeline.Verdict) {
	t.Helper()
	var request strings.Builder
	request.WriteString(method + " " + path + " HTTP/1.1\r\nHost: gate\r\n")
	for _, h := range headers {
		request.WriteString(h + "\r\n")
	}
	ex := exchange(t, request.String()+"\r\n")
	return ex, s.Handle(ex)
}

func TestCallsBecomeTheOperationsTheyStandFor(t *testing.T) {
	s, logged := compiled(t, definitionOf(t,
		entry{"GET", "/countries/{code}", byCode, `{"code": "$path.code"}`},
		entry{"GET", "/countries/all", "{ countries { name } }", ""},
		entry{"POST", "/countries/all", "mutation { reload }", "{}"},
		entry{"GET", "/countries/{code}/{codeX}/", byCode, `{"x": "$path.codeX/$path.code", "code": "$svc_context.headers_Code", "n": 1.50, "o": {"a\"": ["$svc_meta.user", null]}}`},
		entry{"DELETE", "/enc%6fded", "mutation M { m }", ""},
		entry{"GET", "/", "{ root }", ""},
	))
	if logged.Len() > 0 {
		t.Error(logged)
	}
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/countries/DE", `{"query":"query ($code: ID!) { country(code: $code) { name } }","variables":{"code":"DE"}}`},
		{"HEAD", "/countries/DE", `{"query":"query ($code: ID!) { country(code: $code) { name } }","variables":{"code":"DE"}}`},
		{"GET", "/countries/DE/", `{"query":"query ($code: ID!) { country(code: $code) { name } }","variables":{"code":"DE"}}`},
		{"GET", "/countries/a%2Fb%25%0A%22c?code=no", `{"query":"query ($code: ID!) { country(code: $code) { name } }","variables":{"code":"a/b%\n\"c"}}`},
		{"GET", "/countries/all", `{"query":"{ countries { name } }","variables":{}}`},
		{"POST", "/countries/all", `{"query":"mutation { reload }","variables":{}}`},
		{"GET", "/countries/DE/X", `{"query":"query ($code: ID!) { country(code: $code) { name } }","variables":{"code":"he\"ad","n":1.50,"o":{"a\"":["ann",null]},"x":"X/DE"}}`},
		{"DELETE", "/encoded", `{"query":"mutation M { m }","variables":{}}`},
		{"GET", "/", `{"query":"{ root }","variables":{}}`},
	} {
		ex := exchange(t, c.method+" "+c.path+" HTTP/1.1\r\nHost: gate\r\ncode: he\"ad\r\nContent-Type: text/plain\r\n\r\n")
		ex.Session = &definition.Session{MetaData: map[string]json.RawMessage{"user": json.RawMessage(`"ann"`)}}
		if v := s.Handle(ex); v != pipeline.Next {
			t.Errorf("%s %s: verdict %d", c.method, c.path, v)
			continue
		}
		out := &ex.Outgoing
		if got := string(out.Body); got != c.want || !json.Valid(out.Body) {
			t.Errorf("%s %s:\n got %s\nwant %s", c.method, c.path, got, c.want)
		}
		if !out.HasBody || !out.Post || !out.Root || string(out.Extra) != "Content-Type: application/json\r\n" || !slices.Contains(out.Drop, "Content-Type") {
			t.Errorf("%s %s: goes up as %+v", c.method, c.path, out)
		}
	}
}

func TestOtherCallsPass(t *testing.T) {
	s, _ := compiled(t, definitionOf(t, entry{"GET", "/countries/{code}", byCode, `{"code": "$path.code"}`}))
	for _, path := range []string{"/", "/countries", "/countries/", "/countries//", "/countries/DE//", "/countries/DE/x", "/Countries/DE", "/x/countries/DE", "/" + strings.Repeat("a/", 200)} {
		ex, v := call(t, s, "GET", path)
		if v != pipeline.Next || ex.Outgoing.HasBody || ex.Outgoing.Root {
			t.Errorf("%s: verdict %d, %+v", path, v, ex.Outgoing)
		}
	}
}

func TestOtherMethodsOfAPathPass(t *testing.T) {
	s, _ := compiled(t, definitionOf(t,
		entry{"PUT", "/a/{x}", "mutation { m }", ""}, entry{"GET", "/a/{x}", "{ q }", ""}, entry{"POST", "/a/b", "mutation { p }", ""},
	))
	for _, c := range []struct {
		method, path string
		stored       bool
	}{
		{"POST", "/a/x", false},
		{"OPTIONS", "/a/x", false},
		{"DELETE", "/a/b", false},
		{"GET", "/a/b", true}, // the parameter's
	} {
		ex := exchange(t, c.method+" "+c.path+" HTTP/1.1\r\nHost: gate\r\n\r\n")
		if v := s.Handle(ex); v != pipeline.Next || ex.Outgoing.HasBody != c.stored || ex.Outgoing.Root != c.stored {
			t.Errorf("%s %s: verdict %d, %+v", c.method, c.path, v, ex.Outgoing)
		}
	}
}

func TestHolesTakeWhatTheVariablesTypeAsks(t *testing.T) {
	const operation = "query ($i: Int!, $f: [Float!], $b: Boolean, $s: String, $e: Color) { q(i: $i, f: $f, b: $b, s: $s, e: $e) }"
	s, _ := compiled(t, definitionOf(t, entry{
		"GET", "/{v}/{k}", operation,
		`{"i": "$svc_context.headers_I", "f": ["$svc_context.headers_F", 2], "b": "$svc_context.headers_B", "s": "$path.v", "e": "$path.k", "unknown": "$path.k", "constant": "7"}`,
	}))
	good := []string{"I: -7", "F: 1.5e3", "B: true"}
	ex, v := call(t, s, "GET", "/1/RED", good...)
	want := `{"b":true,"constant":"7","e":"RED","f":[1.5e3,2],"i":-7,"s":"1","unknown":"RED"}}`
	if v != pipeline.Next || !strings.HasSuffix(string(ex.Outgoing.Body), `"variables":`+want) {
		t.Errorf("verdict %d, %s", v, ex.Outgoing.Body)
	}
	for _, c := range []struct{ header, want string }{
		{"I: 1.5", `Variable "$i" got invalid value "1.5"; Int cannot represent non-integer value: "1.5"`},
		{"I: 2147483648", `Variable "$i" got invalid value "2147483648"; Int cannot represent non-integer value: "2147483648"`},
		{"I: 007", `Variable "$i" got invalid value "007"; Int cannot represent non-integer value: "007"`},
		{"I: +1", `Variable "$i" got invalid value "+1"; Int cannot represent non-integer value: "+1"`},
		{"I: 1,\"x\":2", `Variable "$i" got invalid value "1,\"x\":2"; Int cannot represent non-integer value: "1,\"x\":2"`},
		{"X: absent", `Variable "$i" got invalid value ""; Int cannot represent non-integer value: ""`},
		{"F: NaN", `Variable "$f" got invalid value "NaN"; Float cannot represent non numeric value: "NaN"`},
		{"F: 1e999", `Variable "$f" got invalid value "1e999"; Float cannot represent non numeric value: "1e999"`},
		{"F: 0x1p2", `Variable "$f" got invalid value "0x1p2"; Float cannot represent non numeric value: "0x1p2"`},
		{"F: " + strings.Repeat("x", 1000), `Variable "$f" got invalid value "` + strings.Repeat("x", 200) + `..."; Float cannot represent non numeric value: "` + strings.Repeat("x", 200) + `..."`},
		{"B: True", `Variable "$b" got invalid value "True"; Boolean cannot represent a non boolean value: "True"`},
	} {
		headers := []string{c.header}
		for _, h := range good {
			if h[0] != c.header[0] && (c.header[0] != 'X' || h[0] != 'I') {
				headers = append(headers, h)
			}
		}
		ex, v := call(t, s, "GET", "/1/RED", headers...)
		if v != pipeline.Rejected || ex.Rejection.Status != 400 || ex.Rejection.Message != c.want || !ex.Rejection.GraphQL() || !json.Valid(ex.Rejection.JSON()) {
			t.Errorf("%.40s: verdict %d, %+v", c.header, v, ex.Rejection)
		}
		if ex.Outgoing.HasBody {
			t.Errorf("%.40s: something goes up", c.header)
		}
	}
}

func TestOperationsThatCannotBeRunAreRefusedAndLogged(t *testing.T) {
	s, logged := compiled(t, definitionOf(t,
		entry{"GET", "/syntax", "{ a ", ""},
		entry{"GET", "/two", "query A { a } query B { b }", ""},
		entry{"GET", "/none", "fragment F on Query { a }", ""},
		entry{"GET", "/subscription", "subscription { a }", ""},
		entry{"GET", "/good", "{ a }", ""},
	))
	for _, path := range []string{"/syntax", "/two", "/none", "/subscription"} {
		ex, v := call(t, s, "GET", path)
		if v != pipeline.Rejected || ex.Rejection.Status != 500 || ex.Rejection.Message != "there was a problem proxying the request" {
			t.Errorf("%s: verdict %d, %+v", path, v, ex.Rejection)
		}
		if !strings.Contains(logged.String(), "path="+path+" ") {
			t.Errorf("%s is not in the log: %s", path, logged)
		}
	}
	if _, v := call(t, s, "GET", "/good"); v != pipeline.Next {
		t.Errorf("the others suffer: %d", v)
	}
}

func TestAPIsWithoutStoredOperationsHaveNoStage(t *testing.T) {
	none := definitionOf(t)
	off := definitionOf(t, entry{"GET", "/a", "{ a }", ""})
	off.VersionData.Versions["Default"].UseExtendedPaths = false
	for _, def := range []*definition.API{{}, none, off} {
		if s := New(def, def.Unversioned(), nil); s != nil {
			t.Errorf("%v", s)
		}
	}
	wrong := definitionOf(t, entry{"GET", "no-slash", "{ a }", ""})
	if wrong.Validate() == nil {
		t.Error("a wrong path is taken")
	}
}

const sdl = `
	type Query { country(code: ID!, first: Int, in: In): Country countries(first: Int): [Country] }
	type Country { name: String secret: String continent: Continent }
	type Continent { countries: [Country] }
	input In { n: Int! m: Float }`

// governed makes def a GraphQL API.
func governed(def *definition.API) *definition.API {
	def.GraphQL = &definition.GraphQL{Enabled: true, ExecutionMode: definition.ModeProxy, Schema: sdl}
	return def
}

func TestOnAGraphQLAPIOperationsMustFitTheSchema(t *testing.T) {
	s, logged := compiled(t, governed(definitionOf(t,
		entry{"GET", "/unknown", "{ nope }", ""},
		entry{"GET", "/missing", byCode, ""},
		entry{"GET", "/constant", "query ($n: Int) { countries(first: $n) { name } }", `{"n": "5"}`},
		entry{"GET", "/input/{n}", "query ($in: In) { country(code: 1, in: $in) { name } }", `{"in": {"n": "$path.n", "m": "$svc_context.headers_M"}}`},
		entry{"GET", "/good/{code}", byCode, `{"code": "$path.code"}`},
	)))
	for path, want := range map[string]string{
		"/unknown":  `Cannot query field \"nope\" on type \"Query\".`,
		"/missing":  `Variable \"$code\" of required type \"ID!\" was not provided.`,
		"/constant": `Int cannot represent non-integer value: \"5\"`,
	} {
		ex, v := call(t, s, "GET", path)
		if v != pipeline.Rejected || ex.Rejection.Status != 500 {
			t.Errorf("%s: verdict %d, %+v", path, v, ex.Rejection)
		}
		if log := strings.ReplaceAll(logged.String(), `\\\"`, `\"`); !strings.Contains(log, want) && !strings.Contains(log, "field: nope not defined") {
			t.Errorf("%s: logged %s, want %s", path, log, want)
		}
	}
	ex, v := call(t, s, "GET", "/input/3", "M: 1e2")
	if v != pipeline.Next || !strings.HasSuffix(string(ex.Outgoing.Body), `"variables":{"in":{"n":3,"m":1e2}}}`) {
		t.Errorf("verdict %d, %s", v, ex.Outgoing.Body)
	}
	if ex, v = call(t, s, "GET", "/good/DE"); v != pipeline.Next || len(ex.Operations) != 1 || ex.Operations[0] == nil {
		t.Errorf("verdict %d, %d operations", v, len(ex.Operations))
	}
	ex.Release()
}

func TestOnAGraphQLAPITheKeysRulesHold(t *testing.T) {
	s, _ := compiled(t, governed(definitionOf(t,
		entry{"GET", "/secret", "{ countries { secret } }", ""},
		entry{"GET", "/deep", "{ countries { continent { countries { name } } } }", ""},
		entry{"GET", "/good", "{ countries { name } }", ""},
	)))
	key := func(ex *pipeline.Exchange) *pipeline.Exchange {
		ex.Session = &definition.Session{AccessRights: map[string]*definition.Access{"test": {
			APIID: "test", RestrictedTypes: []definition.TypeFields{{Name: "Country", Fields: []string{"secret"}}},
		}}}
		ex.Session.MaxQueryDepth = 3
		ex.Policies = definition.NewPolicySet(nil)
		ex.Grant = &pipeline.Grant{Rate: -1, Quota: -1}
		return ex
	}
	for path, want := range map[string]struct {
		status  int
		message string
	}{
		"/secret": {400, "field: secret is restricted on type: Country"},
		"/deep":   {403, "depth limit exceeded"},
		"/good":   {},
	} {
		ex := key(exchange(t, "GET "+path+" HTTP/1.1\r\nHost: gate\r\n\r\n"))
		v := s.Handle(ex)
		switch {
		case want.status == 0 && v != pipeline.Next:
			t.Errorf("%s: %+v", path, ex.Rejection)
		case want.status > 0 && (v != pipeline.Rejected || ex.Rejection.Status != want.status || ex.Rejection.Message != want.message):
			t.Errorf("%s: verdict %d, %+v", path, v, ex.Rejection)
		}
		ex.Release()
	}
}

func TestWhatWasCountedIsFilledInAfterCounting(t *testing.T) {
	s, _ := compiled(t, definitionOf(t,
		entry{"GET", "/left", "query ($n: Int, $s: String) { a(n: $n, s: $s) }", `{"n": "$svc_context.quota_remaining", "s": "$svc_context.quota_limit"}`},
		entry{"GET", "/other", "{ a }", ""},
	))
	var sent []string
	f := s.Forward(stageFunc(func(ex *pipeline.Exchange) pipeline.Verdict {
		sent = append(sent, string(ex.Outgoing.Body))
		return pipeline.Answered
	}))
	for _, path := range []string{"/left", "/other", "/nowhere"} {
		ex := exchange(t, "GET "+path+" HTTP/1.1\r\nHost: gate\r\n\r\n")
		ex.Grant = pipeline.NewGrant()
		ex.Grant.Quota = ex.Grant.AddLimit(counter.Limit{Max: 9})
		if v := s.Handle(ex); v != pipeline.Next {
			t.Fatalf("%s: verdict %d, %+v", path, v, ex.Rejection)
		}
		ex.Charge.Whole, ex.Charge.Counts[0] = true, counter.Count{Remaining: 8}
		f.Handle(ex)
	}
	want := []string{`{"query":"query ($n: Int, $s: String) { a(n: $n, s: $s) }","variables":{"n":8,"s":"9"}}`, `{"query":"{ a }","variables":{}}`, ""}
	if !reflect.DeepEqual(sent, want) {
		t.Errorf("got %q", sent)
	}
	plain, _ := compiled(t, definitionOf(t, entry{"GET", "/a", "{ a }", ""}))
	if next := f.(forward).next; reflect.ValueOf(plain.Forward(next)).Pointer() != reflect.ValueOf(next).Pointer() {
		t.Error("a stage stands before the upstream for nothing")
	}
}

type stageFunc func(ex *pipeline.Exchange) pipeline.Verdict

func (f stageFunc) Handle(ex *pipeline.Exchange) pipeline.Verdict { return f(ex) }

func TestMakingOperationsDoesNotAllocate(t *testing.T) {
	s, _ := compiled(t, governed(definitionOf(t,
		entry{"GET", "/countries/{code}", "query ($code: ID!, $n: Int) { country(code: $code, first: $n) { name } }", `{"code": "$path.code", "n": "$svc_context.headers_N"}`},
	)))
	first := exchange(t, "GET /countries/D%2FE HTTP/1.1\r\nHost: gate\r\nN: 12\r\nContent-Type: a\r\n\r\n")
	if n := testing.AllocsPerRun(200, func() {
		ex := pipeline.For(first.Call)
		ex.Path = first.Path
		if s.Handle(ex) != pipeline.Next {
			t.Fatal("refused")
		}
		ex.Release()
	}); n != 0 && !race.Enabled {
		t.Errorf("%v allocations", n)
	}
}

func FuzzValuesStayWhereTheyBelong(f *testing.F) {
	s, _ := compiled(f, definitionOf(f, entry{"GET", "/{p}", "query ($a: String, $i: Int) { q }", `{"a": "<$path.p>", "h": ["$svc_context.headers_H"], "i": "$svc_context.headers_I", "z": {"k": true}}`}))
	f.Add(`","b":"c`, `\u0022`, "1")
	f.Add("é\xff%/", "}]", "-2")
	f.Fuzz(func(t *testing.T, p, h, i string) {
		if p == "" || strings.ContainsAny(h+i, "\r\n\x00") || strings.TrimSpace(h) != h || strings.TrimSpace(i) != i {
			return
		}
		raw := "GET / HTTP/1.1\r\nHost: gate\r\nH: " + h + "\r\nI: " + i + "\r\n\r\n"
		call, fault := wire.NewCall([]byte(raw), limits)
		if fault != nil {
			return
		}
		ex := pipeline.For(call)
		path, err := match.Decode(nil, []byte("/"+url.PathEscape(p)))
		if err != nil {
			return
		}
		ex.Path = path
		if s.Handle(ex) != pipeline.Next || !ex.Outgoing.HasBody {
			return
		}
		var got struct {
			Variables map[string]any `json:"variables"`
		}
		dec := json.NewDecoder(bytes.NewReader(ex.Outgoing.Body))
		dec.UseNumber()
		if err := dec.Decode(&got); err != nil {
			t.Fatalf("%s: %v", ex.Outgoing.Body, err)
		}
		want := map[string]any{"a": "<" + valid(p) + ">", "h": []any{valid(h)}, "i": json.Number(i), "z": map[string]any{"k": true}}
		if !reflect.DeepEqual(got.Variables, want) {
			t.Fatalf("got %#v, want %#v", got.Variables, want)
		}
	})
}

// valid replaces each byte that is not UTF-8, as JSON readers do.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

func BenchmarkHandle(b *testing.B) {
	s, _ := compiled(b, definitionOf(b, entry{"GET", "/countries/{code}", byCode, `{"code": "$path.code"}`}))
	first := exchange(b, "GET /countries/DE HTTP/1.1\r\nHost: gate\r\n\r\n")
	b.ReportAllocs()
	for b.Loop() {
		ex := pipeline.For(first.Call)
		ex.Path = first.Path
		s.Handle(ex)
		ex.Release()
	}
}
