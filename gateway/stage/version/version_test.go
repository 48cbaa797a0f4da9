package version

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/vars"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

var limits = wire.Config{MaxHeader: 64 << 10, MaxURL: 32 << 10, MaxHeaders: 100, MaxBody: 1 << 20}

// define reads a definition whose members are added to a plain one with the
// listen path /api/.
func define(t testing.TB, members string) *definition.API {
	t.Helper()
	def, err := definition.ParseAPI([]byte(`{"api_id": "a", "proxy": {"listen_path": "/api/", "target_url": "http://b", "strip_listen_path": true}, ` + members + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return def
}

// compiled is an API as the gateway makes it, with this package's stages alone.
func compiled(t testing.TB, def *definition.API, o Options) (*pipeline.API, pipeline.Stage) {
	t.Helper()
	stage, err := Compile(def, o)
	if err != nil {
		t.Fatal(err)
	}
	api := &pipeline.API{Definition: def}
	for i, name := range def.VersionNames() {
		api.Versions = append(api.Versions, &pipeline.Version{Name: name, Place: i, Definition: def.VersionData.Versions[name]})
	}
	if len(api.Versions) == 0 {
		api.Versions = []*pipeline.Version{{Definition: def.Unversioned()}}
	}
	api.Version = api.Versions[0]
	return api, stage
}

// request is an exchange for a call below the listen path. head is the request
// line without the protocol, and header lines.
func request(t testing.TB, api *pipeline.API, head string) *pipeline.Exchange {
	t.Helper()
	return requestWith(t, api, head, "")
}

// requestWith is request with a body, in whole even where it is announced in
// chunks.
func requestWith(t testing.TB, api *pipeline.API, head, body string) *pipeline.Exchange {
	t.Helper()
	line, lines, _ := strings.Cut(head, "\n")
	raw := line + " HTTP/1.1\r\nHost: a\r\n" + strings.ReplaceAll(lines, "\n", "\r\n")
	if lines != "" {
		raw += "\r\n"
	}
	call, fault := wire.Imagine([]byte(raw+"\r\n"+body), limits)
	if fault != nil {
		t.Fatalf("%q: %s", head, fault.Text)
	}
	return placed(t, api, call)
}

func placed(t testing.TB, api *pipeline.API, call *wire.Call) *pipeline.Exchange {
	t.Helper()
	ex := pipeline.For(call)
	path, err := match.Decode(nil, call.Path)
	if err != nil {
		t.Fatal(err)
	}
	ex.API, ex.Version, ex.PathBuf = api, api.Version, path
	ex.Path, ex.Rest = match.Rest(path, 1), match.Rest(call.Path, 1)
	return ex
}

func TestAnAPIThatIsAllAlikeHasNoStage(t *testing.T) {
	for _, members := range []string{
		`"name": "x"`,
		`"version_data": {"not_versioned": true, "versions": {"Default": {}, "v2": {"expires": "2020-01-01 00:00"}}}`,
		`"version_data": {"not_versioned": true, "versions": {"v": {"expires": "-1", "paths": {"ignored": []}}}}`,
		`"version_data": {"not_versioned": true, "versions": {"v": {"extended_paths": {"ignored": [{"path": "/a"}], "mock_response": [{"path": "/a"}]}}}}`,
	} {
		def := define(t, members)
		stage, err := Compile(def, Options{})
		mocks, err2 := Mocks(def.Unversioned(), Options{})
		sizes, err3 := Sizes(def.Unversioned(), Options{})
		if stage != nil || mocks != nil || sizes != nil || err != nil || err2 != nil || err3 != nil {
			t.Errorf("%s: %v %v %v, %v %v %v", members, stage, mocks, sizes, err, err2, err3)
		}
	}
}

func TestCallsNameTheirVersion(t *testing.T) {
	const (
		none     = `"version_data": {"versions": {"v1": {}, "v2": {}}}`
		header   = `"location": "header", "key": "x-v", "strip_versioning_data": true`
		param    = `"location": "url-param", "key": "v v", "strip_versioning_data": true`
		path     = `"location": "url", "strip_path": true`
		fallback = `, "fallback_to_default": true`
		pattern  = `, "url_versioning_pattern": "^v[0-9]$"`
	)
	for _, c := range []struct{ selector, versions, head, want string }{
		{header, none, "GET /api/a", "version_missing"},
		{header, none, "GET /api/a\nX-V: v2", "v2 /a without X-V"},
		{header, twoVersions, "GET /api/a", "v1 /a"},
		{header, twoVersions, "GET /api/a\nX-V: v3", "version_unknown"},
		{header + fallback, twoVersions, "GET /api/a\nX-V: v3", "v1 /a without X-V"},
		{header + fallback, none, "GET /api/a\nX-V: v3", "version_unknown"},
		{param, none, "GET /api/a?v+v=v2&x=1&&v%20v=v1", "v2 /a?x=1&"},
		{param, none, "GET /api/a?v=v2", "version_missing"},
		// An upstream that sees both may read the other one than the gateway does.
		{`"location": "url-param", "key": "v"`, twoVersions, "GET /api/a?v=v2&v=v1", "version_unknown"},
		{`"location": "url-param", "key": "v"`, twoVersions, "GET /api/a?v=&%76=v2", "version_unknown"},
		{`"location": "url-param", "key": "v"` + fallback, twoVersions, "GET /api/a?v=v3&v=v2", "version_unknown"},
		{`"location": "url-param", "key": "v"`, twoVersions, "GET /api/a?v=v2&v=%762", "v2 /a"},
		{`"location": "header", "key": "x-v"`, twoVersions, "GET /api/a\nX-V: v1\nx-v: v2", "version_unknown"},
		{`"location": "header", "key": "x-v"`, twoVersions, "GET /api/a\nX-V: v2\nx-v: v2\nX-W: v1", "v2 /a"},
		{header, twoVersions, "GET /api/a\nX-V: v2\nx-v: v1", "v2 /a without X-V"},
		{path, none, "GET /api/v2/a%2Fb", "v2 /a%2Fb"},
		{path, twoVersions, "GET /api/", "v1 /"},
		{path, twoVersions, "GET /api/a/v2", "version_unknown"},
		{path + fallback, twoVersions, "GET /api/a/v2", "v1 /a/v2"},
		{path + pattern, twoVersions, "GET /api/a/v2", "v1 /a/v2"},
		{path + pattern + fallback, twoVersions, "GET /api/v7/a", "v1 /a"},
		{path + pattern, twoVersions, "GET /api/v7/a", "version_unknown"},
		{`"location": "url"`, twoVersions, "GET /api/v2/a", "v2 /v2/a"},
		{`"location": ""`, twoVersions, "GET /api/v2/a", "v1 /v2/a"},
	} {
		api, stage := compiled(t, define(t, `"definition": {`+c.selector+`}, `+c.versions), Options{})
		ex := request(t, api, c.head)
		got := ""
		if stage.Handle(ex) == pipeline.Rejected {
			got = ex.Rejection.Reason.String()
		} else {
			got = ex.Version.Name + " " + string(ex.Rest)
			if ex.Outgoing.HasQuery {
				got += "?" + string(ex.Outgoing.Query)
			}
			for _, name := range ex.Outgoing.Drop {
				got += " without " + name
			}
		}
		if got != c.want {
			t.Errorf("{%s} %s: %q, want %q", c.selector, c.head, got, c.want)
		}
	}
}

const twoVersions = `"version_data": {"default_version": "v1", "versions": {"v1": {}, "v2": {}}}`

func TestAVersionIsGoodUntilItsEnd(t *testing.T) {
	api, stage := compiled(t, define(t, `"version_data": {"not_versioned": true, "versions": {"v": {"expires": "2030-06-01 12:00"}}}`), Options{})
	end := time.Date(2030, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		at   time.Time
		want *pipeline.Rejection
	}{{end.Add(-time.Nanosecond), nil}, {end, expiredAPI}, {end.Add(time.Hour), expiredAPI}} {
		ex := request(t, api, "GET /api/x")
		ex.Started = c.at
		if stage.Handle(ex); ex.Rejection != c.want {
			t.Errorf("%s: %+v", c.at, ex.Rejection)
		}
		End(api.Version.Definition).Handle(ex)
		if got := string(ex.Answer.Lines); (got == "X-Svc-Api-Expires: Sat, 01 Jun 2030 12:00:00 GMT\r\n") != (c.want == nil) {
			t.Errorf("%s: %q", c.at, got)
		}
	}
}

func TestRefusalsSayWhatTheContractSaysAndAreTold(t *testing.T) {
	for r, want := range map[*pipeline.Rejection]string{
		ambiguous:      "version_missing Ambiguous default API version for this non-versioned API",
		missing:        "version_missing Version information not found",
		unclear:        "version_unknown This API version does not seem to exist",
		unknown:        "version_unknown This API version does not seem to exist",
		expiredVersion: "version_expired Api Version has expired, please check documentation or contact administrator",
		expiredAPI:     "version_expired API has expired, please check documentation or contact administrator",
		forbidden:      "path_denied Requested endpoint is forbidden",
	} {
		if got := r.Reason.String() + " " + r.Message; got != want || r.Status != 403 || r.Event != event.VersionFailure {
			t.Errorf("%d %s (%s), want %s", r.Status, got, r.Event, want)
		}
	}
}

func TestDecisionsAreExplained(t *testing.T) {
	const versions = `"definition": {"location": "header", "key": "V"}, "version_data": {"versions": {
		"v1": {"paths": {"ignored": ["/open"], "black_list": ["/admin"], "white_list": ["/a"]}}, "v2": {"expires": "2020-01-01 00:00"}}}`
	for _, c := range []struct{ members, head, said, fact, fix string }{
		{versions, "GET /api/a", "names no version", "version_data.versions v1, v2", "name one of v1, v2 (header V)"},
		{versions, "GET /api/a\nV: v1\nV: v2", "more than one version", "version_data.versions v1, v2", "name one version (header V)"},
		{versions, "GET /api/a\nV: v9", "does not exist", "version_data.versions v1, v2", "name one of v1, v2"},
		{versions, "GET /api/a\nV: v2", "has expired", "expires 2020-01-01 00:00", "to a later time"},
		{versions, "GET /api/a\nV: v1", `for version "v1"`, "paths.white_list[0] /a", ""},
		{versions, "GET /api/b\nV: v1", "not on it", "white_list no entry for the call", "white_list"},
		{versions, "GET /api/admin;x\nV: v1", "black list", "paths.black_list[0] /admin", "black_list"},
		{versions, "GET /api/open\nV: v1", "no key is asked for", "paths.ignored[0] /open", ""},
		{`"version_data": {"not_versioned": true, "versions": {"a": {}, "b": {}}}`, "GET /api/", "which of its versions applies is not clear", "version_data.not_versioned true", "Default"},
	} {
		api, stage := compiled(t, define(t, c.members), Options{})
		ex := request(t, api, c.head)
		f := &pipeline.Finding{Verdict: stage.Handle(ex)}
		stage.(pipeline.Explainer).Explain(ex, f)
		var facts strings.Builder
		for _, fact := range f.Facts {
			facts.WriteString(fact.Rule + " " + fact.Value + "; ")
		}
		if !strings.Contains(f.Said, c.said) || !strings.Contains(facts.String(), c.fact) || !strings.Contains(f.Fix, c.fix) || (f.Fix == "") != (c.fix == "") {
			t.Errorf("%s: %q, facts %q, fix %q", c.head, f.Said, facts.String(), f.Fix)
		}
	}
}

func TestChoosingAVersionDoesNotAllocate(t *testing.T) {
	lists := `"version_data": {"default_version": "v1", "versions": {"v1": {"paths": {"ignored": ["/open"], "black_list": ["/admin"], "white_list": ["/a/{b}", "^/x[0-9]+$"]}}, "v2": {}}}`
	for _, c := range []struct{ selector, versions, head string }{
		{`{"location": "header", "key": "X-Version", "strip_versioning_data": true}`, twoVersions, "GET /api/a\nX-Version: v2"},
		{`{"location": "url-param", "key": "v", "strip_versioning_data": true}`, twoVersions, "GET /api/a?b=c&v=%762&d=e"},
		{`{"location": "url", "strip_path": true, "url_versioning_pattern": "^v[0-9]+$"}`, twoVersions, "GET /api/v2/a"},
		{`{"location": "url"}`, lists, "GET /api/v1/a/b"},
		{`{}`, lists, "GET /api/open"},
		{`{}`, lists, "GET /api/x12"},
		{`{}`, lists, "GET /api/y//admin;x"},
	} {
		api, stage := compiled(t, define(t, `"definition": `+c.selector+`, `+c.versions), Options{})
		ex := request(t, api, c.head)
		path, rest := ex.Path, ex.Rest
		n := testing.AllocsPerRun(1000, func() {
			ex.Path, ex.Rest, ex.Open = path, rest, false
			ex.Outgoing.HasQuery, ex.Outgoing.Drop = false, nil
			ex.Outgoing = pipeline.Outgoing{Query: ex.Outgoing.Query[:0], Path: ex.Outgoing.Path[:0]}
			stage.Handle(ex)
		})
		most := 0.0
		if strings.Contains(c.head, "X-Version") {
			most = 1 // the list of dropped headers, which a pooled exchange keeps
		}
		if n > most && !race.Enabled {
			t.Errorf("%s: %v allocations", c.head, n)
		}
	}
}

func FuzzVersionSelectors(f *testing.F) {
	f.Add("v1", "a=b&v=v2", "/v1/x", uint8(0))
	f.Add("", "v=%76%32&v", "//v2//x/%2F", uint8(1))
	f.Add("v2\t", "%76=v1&&v=+&v=%zz", "/v2;a/b", uint8(2))
	f.Add(" ", "v", "/", uint8(3))
	var stages [4]pipeline.Stage
	var apis [4]*pipeline.API
	for i, selector := range []string{
		`{"location": "header", "key": "V", "strip_versioning_data": true}`,
		`{"location": "url-param", "key": "v", "strip_versioning_data": true}`,
		`{"location": "url", "strip_path": true}`,
		`{"location": "url", "strip_path": true, "fallback_to_default": true, "url_versioning_pattern": "^v"}`,
	} {
		apis[i], stages[i] = compiled(f, define(f, `"definition": `+selector+`, `+twoVersions), Options{})
	}
	f.Fuzz(func(t *testing.T, header, asked, path string, which uint8) {
		which %= 4
		raw := fmt.Sprintf("GET /api%s?%s HTTP/1.1\r\nHost: a\r\nV: %s\r\n\r\n", path, asked, header)
		call, fault := wire.Imagine([]byte(raw), limits)
		if fault != nil || len(call.Path) == 0 || call.Path[0] != '/' {
			return
		}
		if _, err := match.Decode(nil, call.Path); err != nil || !strings.HasPrefix(string(call.Path), "/api") {
			return
		}
		ex := placed(t, apis[which], call)
		verdict := stages[which].Handle(ex)
		switch {
		case verdict == pipeline.Rejected && ex.Rejection != unknown:
			t.Fatalf("%q: refused with %+v", raw, ex.Rejection)
		case len(ex.Path) == 0 || ex.Path[0] != '/' || len(ex.Rest) == 0 || ex.Rest[0] != '/':
			t.Fatalf("%q: path %q, rest %q", raw, ex.Path, ex.Rest)
		}
		if decoded, err := match.Decode(nil, ex.Rest); err != nil || string(decoded) != string(ex.Path) {
			t.Fatalf("%q: path %q is not that of rest %q: %v", raw, ex.Path, ex.Rest, err)
		}
		if which == 1 && verdict == pipeline.Next && ex.Outgoing.HasQuery && vars.HasParameter(ex.Outgoing.Query, "v") {
			t.Fatalf("%q: %q still names a version", raw, ex.Outgoing.Query)
		}
	})
}

func BenchmarkVersion(b *testing.B) {
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf(`"/resource%d/{id}"`, i)
	}
	lists := `"version_data": {"not_versioned": true, "versions": {"v": {"paths": {"white_list": [` + strings.Join(many, ",") + `]}}}}`
	for _, c := range []struct{ name, members, head string }{
		{"header", `"definition": {"location": "header", "key": "X-Version"}, ` + twoVersions, "GET /api/a\nAccept: */*\nUser-Agent: x\nX-Version: v2"},
		{"param", `"definition": {"location": "url-param", "key": "v"}, ` + twoVersions, "GET /api/a?b=c&v=v2"},
		{"path", `"definition": {"location": "url"}, ` + twoVersions, "GET /api/v2/a"},
		{"lists", lists, "GET /api/resource500/7"},
	} {
		b.Run(c.name, func(b *testing.B) {
			api, stage := compiled(b, define(b, c.members), Options{})
			ex := request(b, api, c.head)
			b.ReportAllocs()
			for b.Loop() {
				stage.Handle(ex)
			}
		})
	}
}
