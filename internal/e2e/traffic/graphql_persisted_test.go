package traffic

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// storing gives an API paths that stand for operations.
func storing(def object, operations ...object) object {
	def["enable_context_vars"] = true
	def["version_data"] = object{"not_versioned": true, "versions": object{"Default": object{
		"name": "Default", "use_extended_paths": true, "extended_paths": object{"persist_graphql": operations},
	}}}
	return def
}

// stores is a path that stands for an operation.
func stores(method, path, operation string, variables object) object {
	return object{"method": method, "path": path, "operation": operation, "variables": variables}
}

const (
	byCode   = "query ($code: ID!) { country(code: $code) { name } }"
	byNumber = "query ($n: Int, $who: String) { countries(first: $n) { code } secret }"
)

// storedCalls are the operations of an API that is no GraphQL API otherwise.
func storedCalls() []object {
	return []object{
		stores("GET", "/country/{code}", byCode, object{"code": "$path.code"}),
		stores("GET", "/country/all", "{ countries { code } }", nil),
		stores("GET", "/list/{n}", byNumber, object{"n": "$path.n", "who": "$svc_context.headers_X_Who"}),
		stores("POST", "/rename/{code}/{name}", "mutation ($c: ID!, $n: String!, $o: O) { rename(code: $c, name: $n) { code } }", object{
			"c": "$path.code", "n": "<$path.name> by $svc_context.headers_X_Who of $svc_meta.team", "o": object{"list": []any{"$path.code", nil, true, 1.5}, "k": "$svc_context.method_none"},
		}),
	}
}

// sent is what a stored operation became.
type sent struct {
	Query     string
	Variables map[string]any
}

// A path that stands for an operation becomes that operation, whatever values
// its call has: they stay values.
func TestPathsStandForStoredOperations(t *testing.T) {
	t.Parallel()
	up, target := newRecorder(t)
	g := newTraffic(t, nil, nil, storing(rig.APIDef("rest", target+"/graph/ql", false), storedCalls()...))
	key := g.newKey(object{"access_rights": rig.AccessTo("rest"), "quota_max": 1000, "quota_renewal_rate": 3600, "meta_data": object{"team": "a\"b\r\nX-Evil: 1"}})
	hostile := `"},"query":"{ nope }","x":{"y":"`
	for _, c := range []struct {
		method, path, who, query string
		variables                map[string]any
	}{
		{"GET", "/country/DE", "", byCode, map[string]any{"code": "DE"}},
		{"GET", "/country/DE/", "", byCode, map[string]any{"code": "DE"}},
		{"GET", "/country/DE?query=%7Bnope%7D&x=1", "", byCode, map[string]any{"code": "DE"}},
		{"GET", "/country/a%2Fb%20c+d%25%22%5c%0a", "", byCode, map[string]any{"code": "a/b c+d%\"\\\n"}},
		{"GET", "/country/%22%7D%2C%22query%22%3A%22%7B%20nope%20%7D%22%2C%22x%22%3A%7B%22y%22%3A%22", "", byCode, map[string]any{"code": hostile}},
		{"GET", "/country/%C3%A9%F0%9F%98%80", "", byCode, map[string]any{"code": "é😀"}},
		{"GET", "/country/$path.code", "", byCode, map[string]any{"code": "$path.code"}},
		{"GET", "/country/%24svc_meta.team", "", byCode, map[string]any{"code": "$svc_meta.team"}},
		{"GET", "/country/12", "", byCode, map[string]any{"code": "12"}},
		{"GET", "/country/all", "", "{ countries { code } }", map[string]any{}},
		{"GET", "/list/12", "", byNumber, map[string]any{"n": 12.0, "who": ""}},
		{"GET", "/list/-3", hostile, byNumber, map[string]any{"n": -3.0, "who": hostile}},
		{"POST", "/rename/7/Berlin", "ann", "mutation ($c: ID!, $n: String!, $o: O) { rename(code: $c, name: $n) { code } }", map[string]any{
			"c": "7", "n": "<Berlin> by ann of a\"b\r\nX-Evil: 1", "o": map[string]any{"list": []any{"7", nil, true, 1.5}, "k": ""},
		}},
	} {
		headers := []string{"Authorization", key, "Content-Type", "text/plain", "X-Mine", "1"}
		if c.who != "" {
			headers = append(headers, "X-Who", c.who)
		}
		got := rig.Call(t, c.method, g.Traffic+"/rest"+c.path, "a body that nobody asked for", headers...)
		reached := up.reached()
		if got.Status != 200 || got.Body != plainAnswerBody || len(reached) != 1 {
			t.Errorf("%s %s: %s; the upstream saw %q", c.method, c.path, got, reached)
			continue
		}
		var body sent
		if err := json.Unmarshal([]byte(reached[0].body), &body); err != nil || body.Query != c.query || !reflect.DeepEqual(body.Variables, c.variables) {
			t.Errorf("%s %s became %s, %v; want %v", c.method, c.path, reached[0].body, err, c.variables)
		}
		header := reached[0].header
		if !strings.HasPrefix(reached[0].line, "POST /graph/ql") || strings.Contains(reached[0].line, "query") || len(header["Content-Type"]) != 1 || header.Get("Content-Type") != rig.JSONMedia || header.Get("X-Mine") != "1" || header.Get("X-Evil") != "" {
			t.Errorf("%s %s went up as %s", c.method, c.path, reached[0].head)
		}
	}
	for path, want := range map[string]expectation{
		"/list/x":   {400, invalidReason, graphError(`Variable "$n" got invalid value "x"; Int cannot represent non-integer value: "x"`)},
		"/list/1.5": {400, invalidReason, ""}, "/list/99999999999": {400, invalidReason, ""}, "/list/1,%22who%22:1": {400, invalidReason, ""}, "/list/%20": {400, invalidReason, ""},
	} {
		got := rig.Call(t, "GET", g.Traffic+"/rest"+path, nil, "Authorization", key)
		if reached := up.reached(); got.Status != want.status || got.Reason() != want.reason || want.body != "" && got.Body != want.body || len(reached) > 0 {
			t.Errorf("%s: %s; the upstream saw %q", path, got, reached)
		}
	}
	got := rig.Call(t, "DELETE", g.Traffic+"/rest/country/DE", nil, "Authorization", key)
	if reached := up.reached(); got.Status != 200 || len(reached) != 1 || reached[0].line != "DELETE /graph/ql/country/DE HTTP/1.1" {
		t.Errorf("another method: %s; the upstream saw %q", got, reached)
	}
	if got := rig.Call(t, "GET", g.Traffic+"/rest/country/DE", nil); got.Status != 401 || len(up.reached()) > 0 {
		t.Errorf("without a key: %s", got)
	}
	got = rig.Call(t, "GET", g.Traffic+"/rest/elsewhere/x?y", nil, "Authorization", key)
	if reached := up.reached(); got.Status != 200 || len(reached) != 1 || reached[0].line != "GET /graph/ql/elsewhere/x?y HTTP/1.1" {
		t.Errorf("another path: %s; the upstream saw %q", got, reached)
	}
	if remaining(got) != "985" {
		t.Errorf("after 15 calls that went up %s are left of 1000", remaining(got))
	}
	up.say("500 Internal Server Error", "X-Up: 1\r\nContent-Type: text/html\r\n", "<p>no")
	if got := rig.Call(t, "GET", g.Traffic+"/rest/country/DE", nil, "Authorization", key); got.Status != 500 || got.Body != "<p>no" || got.Header.Get("X-Up") != "1" {
		t.Errorf("an upstream in trouble: %s", got)
	}
}

// On a GraphQL API the rules of the key hold for stored operations too.
func TestStoredOperationsAreNoWayAroundTheRules(t *testing.T) {
	t.Parallel()
	g := newGraphs(t, nil, nil, func(target string) []object {
		return []object{storing(rig.GraphDef("g", target, false, object{"proxy": object{"request_headers": object{"X-Added": "yes"}}}),
			stores("GET", "/country/{code}", "query ($code: ID!) { country(code: $code) { name continent { code } } }", object{"code": "$path.code"}),
			stores("GET", "/schema", "{ __schema { queryType { name } } }", nil),
			stores("GET", "/first/{n}", "query ($n: Int) { countries(first: $n) { code } }", object{"n": "$path.n"}),
			stores("GET", "/broken", "{ nope }", nil),
			stores("GET", "/alone", "{ __typename }", nil),
		)}
	})
	key := func(most int, rules, limits object) string {
		session := object{"access_rights": rig.AccessWith("g", rules), "max_query_depth": most, "quota_max": 100, "quota_renewal_rate": 3600}
		maps.Copy(session, limits)
		return g.newKey(session)
	}
	free := key(-1, nil, nil)
	for _, c := range []struct {
		path, key string
		want      expectation
	}{
		{"/country/DE", free, passes},
		{"/country/DE", key(4, nil, nil), passes},
		{"/country/DE", key(3, nil, nil), tooDeep},
		{"/country/DE", key(-1, object{"restricted_types": []object{rig.Restrict("Country", "name")}}, nil), fieldRefused("name", "Country")},
		{"/country/DE", key(-1, object{"allowed_types": []object{rig.Restrict("Query", "country"), rig.Restrict("Country", "name")}}, nil), fieldRefused("continent", "Country")},
		{"/schema", free, passes},
		{"/schema", key(-1, object{"disable_introspection": true}, nil), noSchema},
		{"/first/3", key(-1, nil, object{"max_query_cost": 20}), passes},
		{"/first/300", key(-1, nil, object{"max_query_cost": 20}), limitRefused("cost")},
		{"/first/x", free, expectation{400, invalidReason, ""}},
		{"/first/3", key(-1, object{"trusted_documents_only": true}, nil), passes},
		{"/broken", free, expectation{500, "not_served", errorBody("there was a problem proxying the request")}},
		{"/elsewhere", free, expectation{400, invalidReason, graphError("Must provide query string.")}},
	} {
		got := rig.Call(t, "GET", g.traffic.Traffic+"/g"+c.path, nil, "Authorization", c.key)
		g.check(c.path, got, c.want)
	}
	got := rig.Call(t, "GET", g.traffic.Traffic+"/g/country/DE", nil, "Authorization", free)
	reached := g.up.reached()
	if len(reached) != 1 || reached[0].header.Get("X-Added") != "yes" || remaining(got) != "97" {
		t.Errorf("three calls went up; %s are left of 100, and the upstream saw %q", remaining(got), reached)
	}
}
