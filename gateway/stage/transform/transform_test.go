package transform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// exchange returns the exchange of a request below the listen path /api.
func exchange(t testing.TB, request string) *pipeline.Exchange {
	t.Helper()
	call, fault := wire.NewCall([]byte(request+"\r\n"), wire.Config{MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 1 << 20})
	if fault != nil {
		t.Fatal(fault.Text)
	}
	ex := pipeline.For(call)
	path, err := match.Decode(nil, call.Path)
	if err != nil {
		t.Fatal(err)
	}
	ex.PathBuf = path
	ex.Path, ex.Rest = match.Rest(path, 1), match.Rest(call.Path, 1)
	ex.Session = &definition.Session{MetaData: map[string]json.RawMessage{"team": json.RawMessage(`"blue\r\nX-Evil: 1\u0000"`)}}
	return ex
}

func version(t testing.TB, text string) *definition.Version {
	t.Helper()
	return testenv.Part[definition.Version](text)
}

// valid reports whether a definition may have the version.
func valid(v *definition.Version) bool {
	whole := &definition.API{
		Proxy:       definition.Proxy{ListenPath: "/a", TargetURL: "http://b"},
		VersionData: &definition.VersionData{Versions: map[string]*definition.Version{"v": v}},
	}
	return whole.Validate() == nil
}

var api = &definition.API{EnableContextVars: true}

func must(t testing.TB) func(pipeline.Stage, error) pipeline.Stage {
	return func(s pipeline.Stage, err error) pipeline.Stage {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

const both = `{
	"global_headers": {"x-global": "g", "X-Both": "global", "X-Team": "<$svc_meta.team>", "X-Evil": "$svc_context.request_data_v", "X-Path": "$svc_context.path"},
	"global_headers_remove": ["x-gone", "X-Both"],
	"global_response_headers": {"X-Out": "global $svc_context.headers_X_Id", "X-Last": "global"},
	"global_response_headers_remove": ["server"],
	"use_extended_paths": true,
	"extended_paths": {
		"transform_headers": [
			{"path": "/users/{id}", "method": "GET", "add_headers": {"X-Both": "call", "X-Call": "c"}, "delete_headers": ["X-Global", "X-Also"]},
			{"path": "/users", "add_headers": {"X-Never": "behind"}},
			{"path": "/off", "add_headers": {"X-Never": "off"}, "disabled": true}
		],
		"transform_response_headers": [{"path": "/users", "add_headers": {"X-Last": "call", "X-Own": "call", "Server": "ours"}, "delete_headers": ["X-Theirs"]}]
	}}`

func lines(b []byte) []string {
	all := strings.Split(strings.TrimSuffix(string(b), "\r\n"), "\r\n")
	slices.Sort(all)
	return all
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	got = slices.Clone(got)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func TestHeadersOfRequests(t *testing.T) {
	stage := must(t)(CompileRequest(api, version(t, both)))
	for _, c := range []struct {
		request     string
		drop, lines []string
	}{
		{
			"GET /api/users/7?v=a%0d%0aX-Evil:%202 HTTP/1.1\r\nHost: a\r\n",
			[]string{"X-Global", "X-Both", "X-Team", "X-Evil", "X-Path", "X-Gone", "X-Call", "X-Also"},
			[]string{"X-Both: call", "X-Call: c", "X-Team: <blueX-Evil: 1>", "X-Evil: aX-Evil: 2", "X-Path: /api/users/7"},
		},
		{
			"POST /api/users HTTP/1.1\r\nHost: a\r\n",
			[]string{"X-Global", "X-Both", "X-Team", "X-Evil", "X-Path", "X-Gone", "X-Never"},
			[]string{"X-Global: g", "X-Both: global", "X-Team: <blueX-Evil: 1>", "X-Evil: ", "X-Path: /api/users", "X-Never: behind"},
		},
		{
			"GET /api/off HTTP/1.1\r\nHost: a\r\n",
			[]string{"X-Global", "X-Both", "X-Team", "X-Evil", "X-Path", "X-Gone"},
			[]string{"X-Global: g", "X-Both: global", "X-Team: <blueX-Evil: 1>", "X-Evil: ", "X-Path: /api/off"},
		},
	} {
		ex := exchange(t, c.request)
		if v := stage.Handle(ex); v != pipeline.Next {
			t.Fatalf("verdict %d", v)
		}
		same(t, c.request, ex.Outgoing.Drop, c.drop...)
		same(t, c.request, lines(ex.Outgoing.Extra), c.lines...)
	}
}

func TestHeadersThatOtherStagesSendAreReplaced(t *testing.T) {
	stage := must(t)(CompileRequest(api, version(t, both)))
	ex := exchange(t, "GET /api/off HTTP/1.1\r\nHost: a\r\n")
	ex.Outgoing.Drop = []string{"Authorization"}
	ex.Outgoing.Extra = []byte("x-GONE: 1\r\nX-Kept: 1\r\nX-Global: 2\r\n")
	stage.Handle(ex)
	if !slices.Contains(ex.Outgoing.Drop, "Authorization") || !slices.Contains(ex.Outgoing.Drop, "X-Gone") {
		t.Errorf("dropped are %q", ex.Outgoing.Drop)
	}
	got := lines(ex.Outgoing.Extra)
	if slices.Contains(got, "x-GONE: 1") || slices.Contains(got, "X-Global: 2") || !slices.Contains(got, "X-Kept: 1") || !slices.Contains(got, "X-Global: g") {
		t.Errorf("got %q", got)
	}
}

func TestHeadersOfAnswers(t *testing.T) {
	stage := must(t)(CompileResponse(api, version(t, both)))
	const theirs = "SERVER: theirs\r\nX-Theirs: 1\r\nx-last: theirs\r\nX-Lasting: 1\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"
	for path, want := range map[string][]string{
		"/users/1": {"X-Lasting: 1", "Set-Cookie: a", "Set-Cookie: b", "X-Own: call", "X-Out: global id", "X-Last: global"},
		"/other":   {"X-Lasting: 1", "Set-Cookie: a", "Set-Cookie: b", "X-Theirs: 1", "X-Out: global id", "X-Last: global"},
	} {
		ex := exchange(t, "GET /api"+path+" HTTP/1.1\r\nHost: a\r\nX-Id: id\r\n")
		ex.Answer.Lines = []byte(theirs)
		if v := stage.Handle(ex); v != pipeline.Next {
			t.Fatalf("verdict %d", v)
		}
		same(t, path, lines(ex.Answer.Lines), want...)
	}
}

func TestVersionsThatAskForNothingCostNothing(t *testing.T) {
	for _, v := range []*definition.Version{
		nil, version(t, `{}`), version(t, `{"global_headers": {"A": "b"}, "global_headers_remove": ["c"], "global_headers_disabled": true,
			"global_response_headers": {"A": "b"}, "global_response_headers_remove": ["c"], "global_response_headers_disabled": true}`),
		version(t, `{"extended_paths": {"transform_headers": [{"path": "/"}], "url_rewrites": [{"path": "/", "match_pattern": "a", "rewrite_to": "b"}]}}`),
		version(t, `{"use_extended_paths": true, "extended_paths": {"url_rewrites": [{"path": "/", "match_pattern": "a", "rewrite_to": "b", "disabled": true}]}}`),
	} {
		for _, compile := range []func(*definition.API, *definition.Version) (pipeline.Stage, error){CompileRequest, CompileResponse, CompileRewrite} {
			if stage := must(t)(compile(api, v)); stage != nil {
				t.Errorf("%+v: a stage %T", v, stage)
			}
		}
	}
}

func TestExplanationsNameTheRule(t *testing.T) {
	stage := must(t)(CompileRequest(api, version(t, both)))
	ex := exchange(t, "GET /api/users/7 HTTP/1.1\r\nHost: a\r\n")
	f := pipeline.Finding{Verdict: stage.Handle(ex)}
	stage.(pipeline.Explainer).Explain(ex, &f)
	if f.Said != "headers are changed by global_headers, then transform_headers of GET /users/{id}" {
		t.Error(f.Said)
	}
	if !slices.Contains(f.Facts, pipeline.Fact{Rule: "header X-Both", Value: "call", From: "definition"}) ||
		!slices.Contains(f.Facts, pipeline.Fact{Rule: "header X-Global", Value: "removed", From: "definition"}) {
		t.Errorf("%+v", f.Facts)
	}
}

func TestExplanationsTellNoCredential(t *testing.T) {
	stage := must(t)(CompileRequest(api, version(t, `{"global_headers": {"authorization": "Bearer of-the-upstream", "X-Api-Key": "$svc_meta.team", "X-Plain": "p"}}`)))
	ex := exchange(t, "GET /api/ HTTP/1.1\r\nHost: a\r\n")
	f := pipeline.Finding{Verdict: stage.Handle(ex)}
	stage.(pipeline.Explainer).Explain(ex, &f)
	if got := fmt.Sprint(f.Facts); strings.Contains(got, "of-the-upstream") || !strings.Contains(got, "Authorization ***") ||
		!strings.Contains(got, "$svc_meta.team") || !strings.Contains(got, "X-Plain p") {
		t.Error(got)
	}
}

// rewriting is a version with one rewrite.
func rewriting(t testing.TB, path, pattern, to, more string) pipeline.Stage {
	t.Helper()
	text := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	return must(t)(CompileRewrite(api, version(t, fmt.Sprintf(
		`{"use_extended_paths": true, "extended_paths": {"url_rewrites": [{"path": %s, "method": "GET", "match_pattern": %s, "rewrite_to": %s%s}]}}`,
		text(path), text(pattern), text(to), more))))
}

// outcome is what goes upstream of a call, "path?query", with a ! in front where
// the query is the client's own.
func outcome(t testing.TB, stage pipeline.Stage, request string) string {
	t.Helper()
	ex := exchange(t, request)
	defer ex.Release()
	if v := stage.Handle(ex); v == pipeline.Rejected {
		return fmt.Sprint(ex.Rejection.Status)
	}
	if !ex.Outgoing.HasPath {
		return "as it is"
	}
	if !ex.Outgoing.HasQuery {
		return "!" + string(ex.Outgoing.Path)
	}
	return string(ex.Outgoing.Path) + "?" + string(ex.Outgoing.Query)
}

func get(target string, headers ...string) string {
	return "GET " + target + " HTTP/1.1\r\nHost: a\r\n" + strings.Join(headers, "")
}

func TestURLsAreRewritten(t *testing.T) {
	for _, c := range []struct{ path, pattern, to, target, want string }{
		{"match/me", `(\w+)/(\w+)`, "my/service?value1=$1&value2=$2", "/api/match/me", "/my/service?value1=match&value2=me"},
		{"match/me", `(\w+)/(\w+)`, "my/service?value1=$1&value2=$2", "/api/match/me?x=1", "/my/service?value1=match&value2=me"},
		{"/a", `^/a/(.*)$`, "/b/$1", "/api/a/c/d?x=1&y=2", "/b/c/d?x=1&y=2"},
		{"/a", `^/a/(.*)$`, "/b/$1", "/api/a/c/d", "!/b/c/d"},
		{"/a", `^/a/(.*)$`, "/b/$1?z=1", "/api/a/c?x=1", "/b/c?x=1&z=1"},
		{"/a", `^/a/(\w+)`, "/b/$1", "/api/a/c?x=1", "!/b/c"},
		{"/a", `^/a/(\w+)\?.*`, "/b/$1", "/api/a/c?x=1", "/b/c?"},
		{"/a", `^/a/(\w+)$`, "/b/$1", "/api/a/c?x=1", "as it is"},
		{"/a", `^/api/a/(\w+)$`, "/b/$1", "/api/a/c", "!/b/c"},
		{"/a", `nothing`, "/b", "/api/a/c", "as it is"},
		{"/other", `.*`, "/b", "/api/a/c", "as it is"},
		{"/a", `/a(/x)?(/y)?`, "$1$2/z$0", "/api/a/x", "!//x/z/a/x"}, // one slash by the time it is sent,
		{"/a", `^/a/(.*)`, "/b/$1", "/api/a/c%2Fd%20e", "!/b/c%2Fd%20e"},
		// What becomes of the path in the query is one value.
		{"/a", `^/a/(.*)$`, "/b?id=$1&k=2", "/api/a/c&admin=1+2;x", "/b?id=c%26admin%3D1%2B2%3Bx&k=2"},
		{"/a", `^/a/(.*)$`, "/b?id=$1", "/api/a/c?x=1", "/b?id=c&x=1"},
		// And of the query in the path, one segment at most.
		{"/a", `id=([^&]*)`, "/b/$1/c", "/api/a?id=x/y?z", "/b/x%2Fy%3Fz/c?"},
		{"/a", `id=([^&]*)`, "/b/$1/c", "/api/a?id=x/../y", "400"},
		{"/a", `id=([^&]*)`, "/b/$1/c", "/api/a?id=..", "400"},
		{"/a", `id=([^&]*)`, "/b/$1/c", "/api/a?id=%2e%2E", "400"},
		{"/a", `id=([^&]*)`, "/b/$1/c", "/api/a?id=%2e%2e%2fetc", "400"},
		{"/a", `id=([^&]*)`, "/b/$1/c", "/api/a?id=%zz", "400"},
		{"/a", `id=([^&]*)`, "/b/$1/c", "/api/a?id=x%00", "400"},
		{"/a", `^/a/(.)(.)`, "/$1/./x", "/api/a/xy", ""},
		{"/a", `^/a/(.)(.*)`, "/$1$1/x", "/api/a/..x/y", "400"},
		{"/a", `.*`, "/$svc_context.headers_X_Evil/x?h=$svc_context.headers_X_Evil", "/api/a", "400"},
		{"/a", `.*`, "/x?h=$svc_context.headers_X_Evil", "/api/a", "/x?h=..%2F..%2Fx%3Fa%3D1%23"},
		{"/a", `.*`, "/$svc_context.headers_X_Dots/x", "/api/a", "400"},
		{"/a", `.*`, "/x$svc_context.path", "/api/a/b%20c", "!/x/api/a/b%20c"},
		{"/a", `.*`, "/t?m=$svc_meta.team", "/api/a", "/t?m=blue%0D%0AX-Evil%3A%201%00"},
		{"/a", `.*`, "/$5x/$", "/api/a", ""},
		{"/a", `.*`, "/cost$/$x", "/api/a", "!/cost$/$x"},
	} {
		if c.want == "" { // refused when it is loaded
			raw := fmt.Sprintf(`{"use_extended_paths": true, "extended_paths": {"url_rewrites": [{"path": "/a", "match_pattern": %q, "rewrite_to": %q}]}}`, c.pattern, c.to)
			if valid(version(t, raw)) {
				t.Errorf("%s: taken", c.to)
			}
			continue
		}
		got := outcome(t, rewriting(t, c.path, c.pattern, c.to, ""), get(c.target, "X-Evil: ../../x?a=1#\r\nX-Dots: ..\r\n"))
		if got != c.want {
			t.Errorf("%s -> %s of %s: got %s, want %s", c.pattern, c.to, c.target, got, c.want)
		}
	}
}

func TestQueriesThatStagesChangedAreRewritten(t *testing.T) {
	ex := exchange(t, get("/api/a/b?token=secret&x=1"))
	ex.Outgoing.Query, ex.Outgoing.HasQuery = []byte("x=1"), true
	rewriting(t, "/a", `^/a/(.*)`, "/c/$1", "").Handle(ex)
	if got := string(ex.Outgoing.Path) + "?" + string(ex.Outgoing.Query); got != "/c/b?x=1" {
		t.Errorf("got %s", got)
	}
	rewriting(t, "/a", `^/a/(\w+)`, "/d/$1", "").Handle(ex)
	if got := string(ex.Outgoing.Path) + "?" + string(ex.Outgoing.Query); got != "/d/b?x=1" {
		t.Errorf("kept: got %s", got)
	}
}

func TestTriggersChooseTheTarget(t *testing.T) {
	const triggers = `, "triggers": [
		{"on": "all", "options": {"header_matches": {"X-Enc": {"match_rx": "^g(z.)p$"}}, "query_val_matches": {"v": {"match_rx": "[0-9]+"}}}, "rewrite_to": "/both/$svc_context.trigger-0-X-Enc-0-0/$svc_context.trigger-0-v-1"},
		{"on": "any", "options": {"header_matches": {"X-Enc": {"match_rx": "br"}}, "path_part_matches": {"p": {"match_rx": "^spe(cial)$"}}}, "rewrite_to": "/any?p=$svc_context.trigger-1-p-1-0&e=$svc_context.trigger-1-X-Enc-0"},
		{"options": {"header_matches": {"X-Not": {"match_rx": "a", "reverse": true}}, "session_meta_matches": {"team": {"match_rx": "^blue"}}, "request_context_matches": {"headers_X_Go": {"match_rx": "yes"}}}, "rewrite_to": "/$1/reversed"}
	]`
	stage := rewriting(t, "/", `^/(\w+)`, "/plain/$1", triggers)
	for _, c := range []struct {
		target, headers, want string
	}{
		{"/api/a?v=x&v=12y", "X-Enc: gzip\r\n", "!/both/zi/12"},
		{"/api/a?v=x", "X-Enc: gzip\r\n", "!/plain/a"},
		{"/api/a?v=1", "X-Enc: gzop\r\nX-Enc: br\r\n", "!/both/zo/"},
		{"/api/a/special", "", "/any?p=cial&e="},
		{"/api/a", "X-Enc: x\r\nX-Enc: br\r\n", "/any?p=&e="},
		{"/api/a", "X-Enc: brr\r\n", "/any?p=&e=br"},
		{"/api/a", "X-Go: yes\r\n", "!/a/reversed"},
		{"/api/a", "X-Go: yes\r\nX-Not: b\r\n", "!/a/reversed"},
		{"/api/a", "X-Go: yes\r\nX-Not: a\r\n", "!/plain/a"},
		{"/api/a", "X-Go: no\r\n", "!/plain/a"},
	} {
		if got := outcome(t, stage, get(c.target, c.headers)); got != c.want {
			t.Errorf("%s %q: got %s, want %s", c.target, c.headers, got, c.want)
		}
	}
}

func TestTriggersThatAreNotMetLeaveNothing(t *testing.T) {
	stage := rewriting(t, "/", `.*`, "/", `, "triggers": [
		{"options": {"header_matches": {"A": {"match_rx": "a"}, "B": {"match_rx": "b"}}}, "rewrite_to": "/0"},
		{"options": {"header_matches": {"A": {"match_rx": "(.)"}}}, "rewrite_to": "/1"}]`)
	ex := exchange(t, get("/api/x", "A: a\r\n"))
	stage.Handle(ex)
	if string(ex.Outgoing.Path) != "/1" || ex.Captures.Get("0-A-0") != nil || string(ex.Captures.Get("1-A-0-0")) != "a" || ex.Captures.Len() != 2 {
		t.Errorf("%s, %d captures", ex.Outgoing.Path, ex.Captures.Len())
	}
}

func TestExplanationsTellWhatBecameOfAURL(t *testing.T) {
	stage := rewriting(t, "/a", `^/a/(.*)`, "/b/$1", `, "triggers": [{"options": {"header_matches": {"X": {"match_rx": "1"}}}, "rewrite_to": "/t/$1"}]`)
	for request, want := range map[string]string{
		get("/api/a/x?y=1"):           "the path becomes /b/x with the query y=1",
		get("/api/a/x", "X: 1\r\n"):   "the path becomes /t/x",
		get("/api/a"):                 "the expression does not match, so that the URL stays as it is",
		get("/api/b"):                 "no rule is for this call",
		get("/api/a/%2e.x/?a=1&b=%x"): "the path becomes /b/%2e.x/ with the query a=1&b=%x",
	} {
		ex := exchange(t, request)
		f := pipeline.Finding{Verdict: stage.Handle(ex)}
		stage.(pipeline.Explainer).Explain(ex, &f)
		if f.Said != want {
			t.Errorf("%s: %s", request, f.Said)
		}
	}
}

func FuzzRewrittenURLsStayBelowTheTarget(f *testing.F) {
	f.Add(`^/a/(.*)$`, "/b/$1?x=$1", "/api/a/c%2e%2e/d?y=../..", "..")
	f.Add(`([^/]+)`, "$1$1", "/api/./x", "a/b")
	f.Fuzz(func(t *testing.T, pattern, to, target, header string) {
		v := new(definition.Version)
		raw, _ := json.Marshal(map[string]any{"use_extended_paths": true, "extended_paths": map[string]any{
			"url_rewrites": []any{map[string]any{"path": "/", "match_pattern": pattern, "rewrite_to": to + "$svc_context.headers_X"}},
		}})
		if len(object.Decode(raw, v)) > 0 || !valid(v) {
			return
		}
		stage, err := CompileRewrite(api, v)
		if err != nil {
			t.Fatalf("valid, and not compiled: %v", err)
		}
		call, fault := wire.NewCall([]byte("GET "+target+" HTTP/1.1\r\nHost: a\r\nX: "+header+"\r\n\r\n"), wire.Config{MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 9})
		if fault != nil {
			return
		}
		ex := pipeline.For(call)
		if ex.PathBuf, err = match.Decode(nil, call.Path); err != nil {
			return
		}
		ex.Path, ex.Rest = match.Rest(ex.PathBuf, 1), match.Rest(call.Path, 1)
		if stage.Handle(ex) == pipeline.Rejected || !ex.Outgoing.HasPath {
			return
		}
		if _, err := match.Decode(nil, ex.Outgoing.Path); err != nil {
			t.Fatalf("%q: %v", ex.Outgoing.Path, err)
		}
		for _, c := range slices.Concat(ex.Outgoing.Path, ex.Outgoing.Query) {
			if c <= ' ' || c >= 0x7f || c == '#' {
				t.Fatalf("%q ? %q", ex.Outgoing.Path, ex.Outgoing.Query)
			}
		}
	})
}

func FuzzHeaderValuesStayOnTheirLine(f *testing.F) {
	f.Add("a\r\nX-Evil: 1\x00", "x$svc_meta.v$svc_context.request_data_q")
	f.Fuzz(func(t *testing.T, value, text string) {
		raw, _ := json.Marshal(map[string]any{"global_headers": map[string]string{"X-One": text}, "global_response_headers": map[string]string{"X-One": text}})
		def := &definition.API{EnableContextVars: true, VersionData: &definition.VersionData{Versions: map[string]*definition.Version{"Default": {}}, NotVersioned: true}}
		if len(object.Decode(raw, def.VersionData.Versions["Default"])) > 0 {
			return
		}
		def.ID, def.Proxy = "a", definition.Proxy{ListenPath: "/api/", TargetURL: "http://a"}
		if def.Validate() != nil {
			return
		}
		ex := exchange(t, get("/api/"))
		meta, _ := json.Marshal(value)
		ex.Session.MetaData["v"], ex.Call.Query = meta, []byte("q="+value)
		must(t)(CompileRequest(def, def.Unversioned())).Handle(ex)
		must(t)(CompileResponse(def, def.Unversioned())).Handle(ex)
		for _, got := range [][]byte{ex.Outgoing.Extra, ex.Answer.Lines} {
			if strings.Count(string(got), "\n") != 1 || strings.Count(string(got), "\r") != 1 || !strings.HasSuffix(string(got), "\r\n") || strings.IndexByte(string(got), 0) >= 0 {
				t.Fatalf("%q with %q: %q", text, value, got)
			}
		}
	})
}

func TestTransformsDoNotAllocate(t *testing.T) {
	v := version(t, both)
	request, response := must(t)(CompileRequest(api, v)), must(t)(CompileResponse(api, v))
	rewrite := rewriting(t, "/users", `^/users/(\d+)`, "/u/$1/$svc_context.trigger-0-X-Id-0?t=$svc_meta.team",
		`, "triggers": [{"options": {"header_matches": {"X-Id": {"match_rx": "(.)"}}, "query_val_matches": {"q": {"match_rx": "x"}}}, "rewrite_to": "/t/$1"}]`)
	ex := exchange(t, get("/api/users/7?q=y", "X-Id: id\r\n"))
	theirs := []byte("Server: theirs\r\nX-Theirs: 1\r\nContent-Type: a\r\n")
	if n := testing.AllocsPerRun(100, func() {
		ex.Outgoing.Drop, ex.Outgoing.Extra, ex.Answer.Lines = nil, ex.Outgoing.Extra[:0], append(ex.Answer.Lines[:0], theirs...)
		ex.Outgoing.HasQuery = false
		request.Handle(ex)
		rewrite.Handle(ex)
		response.Handle(ex)
	}); n != 0 && !race.Enabled {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHeaders(b *testing.B) {
	v := version(b, `{"global_headers": {"X-User": "$svc_meta.team", "X-Client": "$svc_context.remote_addr", "X-Path": "$svc_context.path"}, "global_headers_remove": ["X-Gone"]}`)
	stage, ex := must(b)(CompileRequest(api, v)), exchange(b, get("/api/users/7", "X-Id: id\r\nAccept: a\r\n"))
	b.ReportAllocs()
	for b.Loop() {
		ex.Outgoing.Drop, ex.Outgoing.Extra = nil, ex.Outgoing.Extra[:0]
		stage.Handle(ex)
	}
}

func BenchmarkRewrite(b *testing.B) {
	stage, ex := rewriting(b, "/users/{id}", `^/users/(\d+)$`, "/v2/$1", ""), exchange(b, get("/api/users/7"))
	b.ReportAllocs()
	for b.Loop() {
		stage.Handle(ex)
	}
}

func TestRewritesToOtherPlacesSayWhichTheseAre(t *testing.T) {
	text := `{"use_extended_paths": true, "extended_paths": {"url_rewrites": [
		{"path": "/a", "match_pattern": "^/a/(.*)", "rewrite_to": "http://first:81/base/$1?k=v", "triggers": [
			{"options": {"header_matches": {"X-To": {"match_rx": "api"}}}, "rewrite_to": "svc://orders/$1"},
			{"options": {"header_matches": {"X-To": {"match_rx": "own"}}}, "rewrite_to": "/own/$1"}]},
		{"path": "/b", "match_pattern": "^/b/(.*)", "rewrite_to": "https://second"},
		{"path": "/c", "match_pattern": "^/c/(.*)", "rewrite_to": "http://first:81?p=$1"}]}}`
	v := version(t, text)
	places := definition.RewriteTargets(v.Rewrites())
	if fmt.Sprint(places) != "[{http://first:81 url_rewrites[0].rewrite_to} {svc://orders url_rewrites[0].triggers[0].rewrite_to} {https://second url_rewrites[1].rewrite_to}]" {
		t.Fatalf("%v", places)
	}
	stage := must(t)(CompileRewrite(api, v))
	for _, c := range []struct {
		target, header, want string
		elsewhere            uint16
	}{
		{"/api/a/x%2Fy", "", "/base/x%2Fy?k=v", 1},
		{"/api/a/@evil.example/..x", "", "/base/@evil.example/..x?k=v", 1},
		{"/api/a/x", "api", "/x?", 2},
		{"/api/a/x", "own", "/own/x?", 0},
		{"/api/b/x", "", "/?", 3},
		{"/api/c/x", "", "/?p=x", 1},
	} {
		ex := exchange(t, get(c.target, "X-To: "+c.header+"\r\n"))
		if v := stage.Handle(ex); v != pipeline.Next {
			t.Fatalf("%s: %v", c.target, v)
		}
		if got := string(ex.Outgoing.Path) + "?" + string(ex.Outgoing.Query); got != c.want || ex.Outgoing.Alternate != c.elsewhere {
			t.Errorf("%s to %q: %q at %d, want %q at %d", c.target, c.header, got, ex.Outgoing.Alternate, c.want, c.elsewhere)
		}
		ex.Release()
	}
}
