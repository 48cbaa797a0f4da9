package traffic

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

const (
	textNoVersion      = "Version information not found"
	textUnknownVersion = "This API version does not seem to exist"
	textExpiredVersion = "Api Version has expired, please check documentation or contact administrator"
	textExpiredAPI     = "API has expired, please check documentation or contact administrator"
	textAmbiguous      = "Ambiguous default API version for this non-versioned API"
	textForbidden      = "Requested endpoint is forbidden"
	textTooLarge       = "Request is too large"
	textNoLength       = "Content length is required for this request"
)

// versioned is a keyless API whose versions send their calls to folders of their
// own at the upstream. Of each version with tells more.
func versioned(id, target string, selector object, data object, with map[string]object) object {
	api := rig.APIDef(id, target, true)
	versions := object{}
	for name, more := range with {
		version := object{"name": name, "override_target": target + "/" + name}
		maps.Copy(version, more)
		versions[name] = version
	}
	all := object{"versions": versions}
	maps.Copy(all, data)
	api["definition"], api["version_data"] = selector, all
	return api
}

// lined is an API that is not versioned, and what its one version says.
func lined(id, target string, version object) object {
	api := rig.APIDef(id, target, true)
	version["name"] = "Default"
	api["version_data"] = object{"not_versioned": true, "versions": object{"Default": version}}
	return api
}

// A versionCase is a call and what becomes of it.
type versionCase struct {
	call   string // method, target, and header lines, each on a line
	status int
	text   string // of the refusal, when it is one
	line   string // what the upstream is asked, "" when it is not
}

// hold makes the calls and compares.
func hold(t *testing.T, g *traffic, up *scripted, cases []versionCase) {
	t.Helper()
	for _, c := range cases {
		before := len(up.with(""))
		head, rest, _ := strings.Cut(c.call, "\n")
		method, _, _ := strings.Cut(head, " ")
		raw := head + " HTTP/1.1\r\nHost: a\r\n"
		if rest != "" {
			raw += strings.ReplaceAll(rest, "\n", "\r\n") + "\r\n"
		}
		got := parse(t, conversation(t, g.addr, raw+"\r\n"), method)
		if len(got) != 1 || got[0].Status != c.status || c.text != "" && got[0].Body != errorBody(c.text) {
			t.Errorf("%q: %v, want %d %s", c.call, got, c.status, c.text)
			continue
		}
		line := ""
		if asked := up.with("")[before:]; len(asked) > 0 {
			line = strings.TrimSuffix(strings.Join(asked, " and "), " HTTP/1.1")
		}
		if line != c.line {
			t.Errorf("%q: the upstream was asked %q, want %q", c.call, line, c.line)
		}
	}
}

func TestCallsChooseTheirVersion(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, noContent)
	target := "http://" + address
	two := map[string]object{"v1": nil, "v2": nil}
	header := object{"location": "header", "key": "X-Api-Version"}
	stripped := object{"location": "header", "key": "x-api-version", "strip_versioning_data": true, "fallback_to_default": true}
	pattern := object{"location": "url", "strip_versioning_data": true, "url_versioning_pattern": "^v[0-9]+$"}
	both := versioned("both", target, object{"location": "url", "strip_path": true}, nil, two)
	both["proxy"].(object)["strip_listen_path"] = false
	overlong := versioned("fallback", target, object{"location": "url", "strip_path": true, "fallback_to_default": true}, object{"default_version": "v1"}, two)
	g := newTraffic(t, nil, nil,
		versioned("header", target, header, nil, two),
		versioned("default", target, stripped, object{"default_version": "v2"}, two),
		versioned("param", target, object{"location": "url-param", "key": "version", "strip_versioning_data": true}, nil, two),
		versioned("kept", target, object{"location": "url-param", "key": "version"}, object{"default_version": "v1"}, two),
		versioned("path", target, object{"location": "url", "strip_path": true}, nil, two),
		versioned("whole", target, object{"location": "url"}, nil, two),
		versioned("pattern", target, pattern, object{"default_version": "v1"}, two),
		versioned("nowhere", target, object{}, nil, two),
		versioned("chosen", target, object{}, object{"default_version": "v2"}, two),
		overlong, both,
	)
	hold(t, g, up, []versionCase{
		{"GET /header/x", 403, textNoVersion, ""},
		{"GET /header/x\nX-Api-Version:", 403, textNoVersion, ""},
		{"GET /header/x\nX-Api-Version: v1", 200, "", "GET /v1/x"},
		{"GET /header/x\nx-api-VERSION:   v2  ", 200, "", "GET /v2/x"},
		{"GET /header/x\nX-Api-Version: v1\nX-Api-Version: v2", 403, textUnknownVersion, ""},
		{"GET /header/x\nX-Api-Version: V1", 403, textUnknownVersion, ""},
		{"GET /header/x?X-Api-Version=v1", 403, textNoVersion, ""},
		{"GET /default/x", 200, "", "GET /v2/x"},
		{"GET /default/x\nX-Api-Version: v1", 200, "", "GET /v1/x"},
		{"GET /default/x\nX-Api-Version: v9", 200, "", "GET /v2/x"},
		{"GET /param/x", 403, textNoVersion, ""},
		{"GET /param/x?version=", 403, textNoVersion, ""},
		{"GET /param/x?version=v1", 200, "", "GET /v1/x"},
		{"GET /param/x?a=1&version=v2&b=%20&version=v1", 200, "", "GET /v2/x?a=1&b=%20"},
		{"GET /param/x?ver%73ion=v%31&a", 200, "", "GET /v1/x?a"},
		{"GET /param/x?versions=v1", 403, textNoVersion, ""},
		{"GET /param/x?version=v9", 403, textUnknownVersion, ""},
		{"GET /param/x?version=%zz", 403, textUnknownVersion, ""},
		{"GET /kept/x?version=v2&a=1", 200, "", "GET /v2/x?version=v2&a=1"},
		{"GET /kept/x?version=v9", 403, textUnknownVersion, ""},
		{"GET /path", 403, textNoVersion, ""},
		{"GET /path/", 403, textNoVersion, ""},
		{"GET /path/v1", 200, "", "GET /v1"},
		{"GET /path/v1/", 200, "", "GET /v1"},
		{"GET /path/v2/a%2Fb/c?d=e", 200, "", "GET /v2/a%2Fb/c?d=e"},
		{"GET /path//v%31//x", 200, "", "GET /v1/x"},
		{"GET /path/v9/x", 403, textUnknownVersion, ""},
		{"GET /whole/v2/x", 200, "", "GET /v2/v2/x"},
		{"GET /both/v2/x", 200, "", "GET /v2/both/x"},
		{"GET /both/v2", 200, "", "GET /v2/both/"},
		{"GET /pattern/users", 200, "", "GET /v1/users"},
		{"GET /pattern/v2/users", 200, "", "GET /v2/users"},
		{"GET /pattern/v7/users", 403, textUnknownVersion, ""},
		{"GET /fallback/users/v2", 200, "", "GET /v1/users/v2"},
		{"GET /fallback/v2/users", 200, "", "GET /v2/users"},
		{"GET /nowhere/x\nX-Api-Version: v1", 403, textNoVersion, ""},
		{"GET /chosen/x", 200, "", "GET /v2/x"},
	})
	if rig.Call(t, "GET", g.Traffic+"/default/x", nil, "X-Api-Version", "v1"); strings.Contains(strings.ToLower(up.lastHead()), "x-api-version") {
		t.Errorf("the upstream is told the version: %q", up.lastHead())
	}
	if rig.Call(t, "GET", g.Traffic+"/header/x", nil, "X-Api-Version", "v1"); holds(up.lastHead(), "X-Api-Version: v1") != 1 {
		t.Errorf("the upstream is not told the version: %q", up.lastHead())
	}
	g.AwaitLog("VersionFailure")
}

func TestVersionsEnd(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, noContent)
	target := "http://" + address
	ended := lined("ended", target, object{"expires": "2020-01-01 00:00"})
	going := lined("going", target, object{"expires": "2999-12-31 23:59"})
	ambiguous := versioned("ambiguous", target, nil, object{"not_versioned": true}, map[string]object{"a": nil, "b": nil})
	named := versioned("named", target, object{"location": "header", "key": "V"}, object{"not_versioned": true},
		map[string]object{"Default": nil, "b": nil})
	single := versioned("single", target, nil, object{"not_versioned": true}, map[string]object{"only": nil})
	g := newTraffic(t, nil, nil, ended, going, ambiguous, named, single,
		versioned("ends", target, object{"location": "header", "key": "V"}, nil, map[string]object{
			"past": {"expires": "2020-01-01 00:00"}, "soon": {"expires": "2999-12-31 23:59"}, "odd": {"expires": "next year"},
			"never": {"expires": "-1"}, "empty": {"expires": ""},
		}))
	hold(t, g, up, []versionCase{
		{"GET /ends/x\nV: past", 403, textExpiredVersion, ""},
		{"GET /ends/x\nV: odd", 403, textExpiredVersion, ""},
		{"GET /ends/x\nV: soon", 200, "", "GET /soon/x"},
		{"GET /ends/x\nV: never", 200, "", "GET /never/x"},
		{"GET /ends/x\nV: empty", 200, "", "GET /empty/x"},
		{"GET /ended/x", 403, textExpiredAPI, ""},
		{"GET /going/x", 200, "", "GET /x"},
		{"GET /ambiguous/x", 403, textAmbiguous, ""},
		{"GET /named/x\nV: b", 200, "", "GET /Default/x"},
		{"GET /single/x", 200, "", "GET /only/x"},
	})
	for path, want := range map[string]string{
		"/ends/x soon": "Tue, 31 Dec 2999 23:59:00 GMT", "/going/x ": "Tue, 31 Dec 2999 23:59:00 GMT",
		"/ends/x past": "", "/ends/x never": "", "/ends/x nosuch": "", "/ended/x ": "",
	} {
		path, version, _ := strings.Cut(path, " ")
		got := rig.Call(t, "GET", g.Traffic+path, nil, "V", version).Header.Get("x-svc-api-expires")
		if got != want {
			t.Errorf("%s %s: %q, want %q", path, version, got, want)
		}
	}
	g.AwaitLog(`version_data.versions[\"odd\"].expires`)
}

// Versions are chosen before credentials are looked at, and keys are held to
// those that they list.
func TestKeysAreHeldToTheirVersions(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, noContent)
	target := "http://" + address
	keyed := versioned("keyed", target, object{"location": "header", "key": "V"}, object{"default_version": "v1"}, map[string]object{"v1": nil, "v2": nil})
	plain := lined("plain", target, object{})
	keyed["use_keyless"], plain["use_keyless"] = false, false
	limited := func(versions ...string) object {
		return object{"keyed": object{"api_id": "keyed", "versions": versions}, "plain": object{"api_id": "plain", "versions": versions}}
	}
	g := newTraffic(t, nil, object{"two": object{"access_rights": limited("v2")}}, keyed, plain)
	keys := map[string]string{
		"one":    g.newKey(object{"access_rights": limited("v1")}),
		"policy": g.newKey(object{"apply_policies": []string{"two"}}),
		"both":   g.newKey(object{"access_rights": limited("v2", "v1")}),
		"none":   g.newKey(object{"access_rights": limited()}),
	}
	hold(t, g, up, []versionCase{
		{"GET /keyed/x\nV: v9", 403, textUnknownVersion, ""},
		{"GET /keyed/x\nV: v2", 401, textMissing, ""},
		{"GET /keyed/x\nAuthorization: " + keys["one"], 200, "", "GET /v1/x"},
		{"GET /keyed/x\nV: v1\nAuthorization: " + keys["one"], 200, "", "GET /v1/x"},
		{"GET /keyed/x\nV: v2\nAuthorization: " + keys["one"], 403, textNoAccess, ""},
		{"GET /keyed/x\nV: v2\nAuthorization: " + keys["policy"], 200, "", "GET /v2/x"},
		{"GET /keyed/x\nAuthorization: " + keys["policy"], 403, textNoAccess, ""},
		{"GET /keyed/x\nAuthorization: " + keys["both"], 200, "", "GET /v1/x"},
		{"GET /keyed/x\nV: v2\nAuthorization: " + keys["both"], 200, "", "GET /v2/x"},
		{"GET /keyed/x\nAuthorization: " + keys["none"], 403, textNoAccess, ""},
		{"GET /plain/x\nAuthorization: " + keys["one"], 200, "", "GET /x"},
		{"GET /plain/x\nAuthorization: " + keys["none"], 200, "", "GET /x"},
	})
}

func TestListsOfPathsDecide(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, noContent)
	target := "http://" + address
	simple := lined("simple", target, object{"paths": object{
		"ignored": []string{"/open"}, "black_list": []string{"/open", "/secret/{id}", "^/x[0-9]+$"},
	}})
	allowed := lined("allowed", target, object{"use_extended_paths": true, "extended_paths": object{
		"ignored":    []object{{"path": "/health"}},
		"black_list": []object{{"path": "/users/admin", "ignore_case": true}, {"path": "/off", "disabled": true}},
		"white_list": []object{
			{"path": "/users", "method": "GET"},
			{"path": "/off"},
			{"path": "/files/*", "method": "put"},
			{"path": "/old", "method_actions": object{
				"GET":  object{"action": "no_action", "code": 200, "data": "", "headers": object{}},
				"POST": object{"action": "reply", "code": 418, "data": `{"tea": true}`, "headers": object{"X-Pot": "yes"}},
			}},
		},
	}})
	folded := lined("folded", target, object{"ignore_endpoint_case": true, "paths": object{"black_list": []string{"/Secret"}}})
	// The lists that are not in use say nothing.
	unused := lined("unused", target, object{
		"paths": object{"black_list": []string{"/a"}}, "extended_paths": object{"black_list": []object{{"path": "/b"}}},
	})
	keyed := lined("keyed", target, object{"paths": object{"ignored": []string{"/open"}, "white_list": []string{"/closed"}}})
	keyed["use_keyless"] = false
	g := newTraffic(t, nil, nil, simple, allowed, folded, unused, keyed)
	key := g.newKey(object{"access_rights": rig.AccessTo("keyed"), "quota_max": 2, "quota_renewal_rate": 3600})
	hold(t, g, up, []versionCase{
		{"GET /simple/open", 200, "", "GET /open"}, // ignored goes before black
		{"GET /simple/other", 200, "", "GET /other"},
		{"POST /simple/secret/1/x", 403, textForbidden, ""},
		{"GET /simple/secret", 200, "", "GET /secret"},
		{"GET /simple/x12", 403, textForbidden, ""},
		{"GET /simple/ax12", 200, "", "GET /ax12"},
		{"GET /simple/secret%2F1", 403, textForbidden, ""},
		{"GET /simple/secret//1", 403, textForbidden, ""},
		{"GET /simple/secret;a=b/1", 403, textForbidden, ""},
		{"GET /simple/%73ecret/1", 403, textForbidden, ""},
		{"GET /allowed/health/x", 200, "", "GET /health/x"},
		{"GET /allowed/users", 200, "", "GET /users"},
		{"GET /allowed/users/7", 200, "", "GET /users/7"},
		{"POST /allowed/users", 403, textForbidden, ""},
		{"GET /allowed/usersx", 403, textForbidden, ""},
		{"GET /allowed/users/Admin/x", 403, textForbidden, ""},
		{"GET /allowed/off", 200, "", "GET /off"},
		{"PUT /allowed/files/a/b", 200, "", "PUT /files/a/b"},
		{"GET /allowed/old", 200, "", "GET /old"},
		{"PUT /allowed/old", 403, textForbidden, ""},
		{"POST /allowed/old\nContent-Length: 0", 418, "", ""},
		{"GET /allowed/", 403, textForbidden, ""},
		{"GET /folded/sEcReT", 403, textForbidden, ""},
		{"GET /unused/a", 403, textForbidden, ""},
		{"GET /unused/b", 200, "", "GET /b"},
		{"GET /keyed/open", 200, "", "GET /open"},
		{"GET /keyed/open\nAuthorization: no-such-key", 200, "", "GET /open"},
		{"GET /keyed/closed", 401, textMissing, ""},
		{"GET /keyed/other", 403, textForbidden, ""},
		{"GET /keyed/closed\nAuthorization: " + key, 200, "", "GET /closed"},
		{"GET /keyed/open\nAuthorization: " + key, 200, "", "GET /open"},
		{"GET /keyed/open\nAuthorization: " + key, 200, "", "GET /open"},
		{"GET /keyed/closed\nAuthorization: " + key, 200, "", "GET /closed"},
		{"GET /keyed/closed\nAuthorization: " + key, 403, textQuota, ""},
		{"GET /keyed/open\nAuthorization: " + key, 200, "", "GET /open"},
	})
	got := rig.Call(t, "POST", g.Traffic+"/allowed/old", nil)
	if got.Body != `{"tea": true}` || got.Header.Get("X-Pot") != "yes" || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("the reply is %s, %v", got, got.Header)
	}
	g.AwaitLog("VersionFailure")
}

func TestEntriesMatchAnywhereWhenThatIsChosen(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, noContent)
	g := newTraffic(t, settings{"gateway.path_lists": "unanchored"}, nil,
		lined("loose", "http://"+address, object{"paths": object{"black_list": []string{"/admin", "/loose/x"}}}))
	hold(t, g, up, []versionCase{
		{"GET /loose/a/administrators", 403, textForbidden, ""},
		{"GET /loose/xyz", 403, textForbidden, ""},
		{"GET /loose/adm", 200, "", "GET /adm"},
	})
}

func TestPathsOfVersionsThatAreNamedInThePath(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, noContent)
	target := "http://" + address
	lists := map[string]object{
		"v1": {"paths": object{"black_list": []string{"/secret"}}},
		"v2": {"paths": object{"white_list": []string{"/secret"}}},
	}
	g := newTraffic(t, nil, nil,
		versioned("cut", target, object{"location": "url", "strip_path": true}, nil, lists),
		versioned("kept", target, object{"location": "url"}, nil, lists))
	hold(t, g, up, []versionCase{
		{"GET /cut/v1/secret", 403, textForbidden, ""},
		{"GET /cut/v1/x/secret", 200, "", "GET /v1/x/secret"},
		{"GET /cut/v2/secret", 200, "", "GET /v2/secret"},
		{"GET /cut/v2/other", 403, textForbidden, ""},
		{"GET /kept/v1/secret/x", 403, textForbidden, ""},
		{"GET /kept/v1/other", 200, "", "GET /v1/v1/other"},
		{"GET /kept/v2/secret", 200, "", "GET /v2/v2/secret"},
		{"GET /kept/v2/other", 403, textForbidden, ""},
	})
}

func TestMocksStandForTheUpstream(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, noContent)
	api := lined("mocked", "http://"+address, object{"use_extended_paths": true, "extended_paths": object{"mock_response": []object{
		{"path": "/hello/{name}", "method": "GET", "code": 202, "body": "hi", "headers": object{"X-Mock": "1"}},
		{"path": "/gone", "code": 204},
	}}})
	api["use_keyless"] = false
	g := newTraffic(t, nil, nil, api)
	key := g.newKey(object{"access_rights": rig.AccessTo("mocked"), "quota_max": 3, "quota_renewal_rate": 3600})
	hold(t, g, up, []versionCase{
		{"GET /mocked/hello/you", 401, textMissing, ""},
		{"POST /mocked/hello/you\nContent-Length: 0\nAuthorization: " + key, 200, "", "POST /hello/you"},
		{"DELETE /mocked/gone\nAuthorization: " + key, 204, "", ""},
	})
	got := rig.Call(t, "GET", g.Traffic+"/mocked/hello/you", nil, "Authorization", key)
	if got.Status != 202 || got.Body != "hi" || got.Header.Get("X-Mock") != "1" || got.Header.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("%s %v", got, got.Header)
	}
	if got := rig.Call(t, "HEAD", g.Traffic+"/mocked/hello/you", nil, "Authorization", key); got.Status != 403 {
		t.Errorf("a mock costs no quota: %s", got)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, noContent)
	target := "http://" + address
	g := newTraffic(t, nil, nil,
		lined("global", target, object{"global_size_limit": 10}),
		lined("some", target, object{"use_extended_paths": true, "global_size_limit": 1000, "extended_paths": object{"size_limits": []object{
			{"path": "/small", "method": "PUT", "size_limit": 5}, {"path": "/large", "size_limit": 5000},
		}}}))
	for _, c := range []struct {
		method, path string
		size         int
		chunked      bool
		want         int
		text         string
	}{
		{"POST", "/global/x", 10, false, 200, ""},
		{"POST", "/global/x", 11, false, 400, textTooLarge},
		{"POST", "/global/x", 10, true, 200, ""},
		{"POST", "/global/x", 11, true, 400, textTooLarge},
		{"PATCH", "/global/x", 1 << 14, true, 400, textTooLarge},
		{"POST", "/global/x", 0, false, 200, ""},
		{"DELETE", "/global/x", 100, false, 200, ""},
		{"GET", "/global/x", 100, true, 200, ""},
		{"PUT", "/some/small", 5, false, 200, ""},
		{"PUT", "/some/small/x", 6, false, 400, textTooLarge},
		{"PUT", "/some/small", 6, true, 400, textTooLarge},
		{"POST", "/some/small", 6, true, 200, ""},
		{"POST", "/some/large", 1001, false, 400, textTooLarge},
	} {
		raw := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: a\r\n", c.method, c.path)
		sent := strings.Repeat("x", c.size)
		if c.chunked { // in two pieces, of which the first alone is not too large
			raw += fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n2\r\nxx\r\n%x\r\n%s\r\n0\r\n\r\n", c.size-2, sent[2:])
		} else {
			raw += fmt.Sprintf("Content-Length: %d\r\n\r\n%s", c.size, sent)
		}
		got := parse(t, conversation(t, g.addr, raw), c.method)
		if len(got) != 1 || got[0].Status != c.want || c.text != "" && got[0].Body != errorBody(c.text) {
			t.Errorf("%s %s, %d bytes, chunked %v: %v, want %d", c.method, c.path, c.size, c.chunked, got, c.want)
		}
	}
	hold(t, g, up, []versionCase{
		{"POST /global/x", 411, textNoLength, ""},
		{"PUT /some/small", 411, textNoLength, ""},
		{"GET /global/x", 200, "", "GET /x"},
		{"POST /global/x\nContent-Length: ten", 400, "content length is not a valid Integer", ""},
	})
}

// Every version of a GraphQL API has stored operations of its own, and is
// governed; a path that is ignored asks for no key there either.
func TestVersionsOfGraphQLAPIs(t *testing.T) {
	t.Parallel()
	storedIn := func(path, operation string, more object) object {
		version := object{"use_extended_paths": true, "extended_paths": object{
			"persist_graphql": []object{stores("GET", path, operation, nil)}, "ignored": []object{{"path": "/free"}},
		}}
		maps.Copy(version, more)
		return version
	}
	g := newGraphs(t, nil, nil, func(target string) []object {
		def := rig.GraphDef("g", target, false, nil)
		def["definition"] = object{"location": "url", "strip_path": true}
		def["version_data"] = object{"versions": object{
			"v1": storedIn("/one", "{ secret }", nil), "v2": storedIn("/two", "{ countries { code } }", nil),
			"v3": storedIn("/free", "{ secret }", nil),
		}}
		return []object{def}
	})
	rights := rig.AccessWith("g", object{"versions": []string{"v1", "v2", "v3"}, "restricted_types": []object{{"name": "Query", "fields": []string{"secret"}}}})
	key := g.newKey(object{"access_rights": rights})
	for _, c := range []struct {
		method, path, key, body string
		status                  int
		reached                 string
	}{
		{"GET", "/g/v1/one", key, "", 400, ""}, // secret is not for this key
		{"GET", "/g/v2/two", key, "", 200, "{ countries { code } }"},
		{"GET", "/g/v1/two", key, "", 400, ""}, // no operation in this version: a GraphQL call without a query
		{"POST", "/g/v1/", key, rig.QueryBody("{ countries { code } }"), 200, "{ countries { code } }"},
		{"POST", "/g/v2/", key, rig.QueryBody("{ secret }"), 400, ""},
		{"POST", "/g/v2/", "", rig.QueryBody("{ countries { code } }"), 401, ""},
		{"POST", "/g/v2/free", "", rig.QueryBody("{ countries { code } }"), 200, "{ countries { code } }"},
		{"POST", "/g/v2/free", "", rig.QueryBody("{ nothing }"), 400, ""},
		{"GET", "/g/v3/free", "", "", 200, "{ secret }"},
	} {
		headers := []string{"Content-Type", rig.JSONMedia}
		if c.key != "" {
			headers = append(headers, "Authorization", c.key)
		}
		g.up.reached()
		got := rig.Call(t, c.method, g.traffic.Traffic+c.path, c.body, headers...)
		var body strings.Builder
		for _, one := range g.up.reached() {
			body.WriteString(one.body)
		}
		if got.Status != c.status || !strings.Contains(body.String(), strings.Trim(rig.Quoted(c.reached), `"`)) || (body.String() == "") != (c.reached == "") {
			t.Errorf("%s %s %s: %s, and the upstream got %q", c.method, c.path, c.body, got, body.String())
		}
	}
}
