package traffic

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

const (
	invalidReason = "graphql_invalid"
	mediaReason   = "graphql_media"
	methodReason  = "method_not_allowed"
)

// badRequest is a request that breaks a rule of GraphQL or of how it is spoken.
type badRequest struct {
	name, method, path, body string
	header                   []string // names and values in turn; nil: Content-Type is JSON
	status                   int
	reason, want             string // want is the GraphQL error body
}

const secretBody = `{"query":"{ secret }"}`

// badBodies are bodies that no operation can be read from, or none to run.
func badBodies() []badRequest {
	var all []badRequest
	for _, c := range []struct{ name, body, message string }{
		{"cut short", `{"query":"{ secret`, `The request body is invalid JSON: expected a closing double quote at byte 18, where the text ends.`},
		{"no value", `{"query"}`, `The request body is invalid JSON: expected ":" at byte 8.`},
		{"two values", secretBody + secretBody, `The request body is invalid JSON: expected the end of the text at byte 22.`},
		{"a comma too many", `{"query":"{ secret }",}`, ""},
		{"a comment", `{"query":"{ secret }"/* */}`, ""},
		{"not UTF-8", "{\"query\":\"{ secret }\xff\"}", `The request body is invalid JSON: expected UTF-8 at byte 20.`},
		{"not UTF-8 where nobody looks", "{\"query\":\"{ secret }\",\"x\":\"\xc0\xaf\"}", ""},
		{"a byte order mark", "\ufeff" + secretBody, `The request body is invalid JSON: expected a value at byte 0.`},
		{"UTF-16", "\x00{\x00}", ""},
		{"a raw line feed in a string", "{\"query\":\"{\n secret }\"}", ""},
		{"half a surrogate pair", `{"query":"{ secret } #\udc00"}`, "The request has a string with half of a surrogate pair, which is no text."},
		{"nested too deep", `{"query":"{ secret }","x":` + strings.Repeat("[", 50_000), "The request body is nested in more than 80 objects and arrays."},
		{"a text", `"{ secret }"`, "The request body must be a JSON object with the member query."},
		{"a null", `null`, "The request body must be a JSON object with the member query."},
		{"a batch", "[" + secretBody + "]", "Batched requests are not accepted; send each operation on its own."},
		{"an empty batch", "[]", "Batched requests are not accepted; send each operation on its own."},
		{"query twice", `{"query":"{ secret }","query":"{ secret }"}`, "The request gives query more than once."},
		{"query twice, once escaped", `{"\u0071uery":"{ nope }","query":"{ secret }"}`, "The request gives query more than once."},
		{"query twice, once null", `{"query":"{ secret }","query":null}`, "The request gives query more than once."},
		{"variables twice", `{"variables":{},"query":"{ secret }","variables":{}}`, "The request gives variables more than once."},
		{"operationName twice", `{"operationName":null,"query":"{ secret }","operationName":null}`, "The request gives operationName more than once."},
		{"extensions twice", `{"extensions":{},"query":"{ secret }","extensions":{}}`, "The request gives extensions more than once."},
		{"a name in another case", `{"query":"{ secret }","Variables":{}}`, "The request has a member whose name differs from query, operationName, variables or extensions in case only."},
		{"no query", `{"variables":{}}`, "Must provide query string."},
		{"query empty", `{"query":""}`, "Must provide query string."},
		{"query null", `{"query":null}`, "query must be a string."},
		{"query an object", `{"query":{"query":"{ secret }"}}`, "query must be a string."},
		{"variables a list", `{"query":"{ secret }","variables":[]}`, "variables must be an object or null."},
		{"variables a text", `{"query":"{ secret }","variables":"{}"}`, "variables must be an object or null."},
		{"operationName a number", `{"query":"{ secret }","operationName":1}`, "operationName must be a string or null."},
		{"extensions a text", `{"query":"{ secret }","extensions":""}`, "extensions must be an object or null."},
	} {
		want := ""
		if c.message != "" {
			want = graphError(c.message)
		}
		all = append(all, badRequest{c.name, "POST", "", c.body, nil, 400, invalidReason, want})
	}
	return all
}

// badOperations are requests whose operation cannot be run.
func badOperations() []badRequest {
	var all []badRequest
	for _, c := range []struct{ name, body, want string }{
		{"white space only", `{"query":" # nothing\n"}`, graphErrorAt("Syntax Error: Unexpected <EOF>.", 2, 1)},
		{"syntax", `{"query":"{ secret"}`, graphErrorAt("Syntax Error: Expected Name, found <EOF>.", 1, 9)},
		{"a NUL", `{"query":"{ secret \u0000 }"}`, ""},
		{"a schema", `{"query":"type Query { a: Int }"}`, ""},
		{"fragments only", `{"query":"fragment F on Query { secret }"}`, ""},
		{"no name among several", `{"query":"query A { secret } query B { secret }"}`, graphError("Must provide operation name if query contains multiple operations.")},
		{"an unknown name", `{"query":"query A { secret }","operationName":"B"}`, graphError(`Unknown operation named "B".`)},
		{"an operation beside the one to run", `{"query":"query A { secret } query B { nope }","operationName":"A"}`, graphErrorAt("field: nope not defined on type: Query", 1, 30)},
		{"an unknown field", `{"query":"{ nope }"}`, graphErrorAt("field: nope not defined on type: Query", 1, 3)},
		{"no argument", `{"query":"{ country { name } }"}`, ""},
		{"fields that disagree", `{"query":"{ x: secret x: a { b } }"}`, ""},
		{"a fragment without end", `{"query":"{ ...F } fragment F on Query { ...F }"}`, ""},
		{"no variable", `{"query":"query($c: ID!) { country(code: $c) { name } }"}`, graphErrorAt(`Variable "$c" of required type "ID!" was not provided.`, 1, 7)},
		{"a variable of another type", `{"query":"query($c: ID!) { country(code: $c) { name } }","variables":{"c":{}}}`, ""},
		{"a variable twice", `{"query":"query($n: Int) { countries(first: $n) { name } }","variables":{"n":1,"n":100}}`, ""},
		{"a variable twice, once escaped", `{"query":"query($n: Int) { countries(first: $n) { name } }","variables":{"n":1,"\u006e":100}}`, ""},
		{"a variable's field twice", `{"query":"query($f: Filter) { countries(filter: $f) { name } }","variables":{"f":{"minimum":1,"minimum":2}}}`, ""},
		{"a subscription", `{"query":"subscription { renamed { code } }"}`, ""},
	} {
		bad := badRequest{c.name, "POST", "", c.body, nil, 400, invalidReason, c.want}
		if c.name == "a subscription" {
			bad.status, bad.reason = 406, mediaReason
		}
		all = append(all, bad)
	}
	return all
}

// badHeads are requests that say something wrong around the operation.
func badHeads() []badRequest {
	typed := func(kind ...string) (h []string) {
		for _, k := range kind {
			h = append(h, "Content-Type", k)
		}
		return h
	}
	mutation := url.QueryEscape(`mutation { rename(code: 1, name: "x") { code } }`)
	return []badRequest{
		{"no content type, of a browser", "POST", "", secretBody, []string{"Sec-Fetch-Site", "cross-site"}, 415, mediaReason, graphError("The request has no Content-Type, and a browser may have sent it; send application/json.")},
		{"a text", "POST", "", "{ secret }", typed("text/plain"), 415, mediaReason, graphError("The request has a Content-Type that is not understood; send application/json.")},
		{"a form", "POST", "", "query={secret}", typed("application/x-www-form-urlencoded"), 415, mediaReason, ""},
		{"a form of files", "POST", "", "--x\r\n\r\n--x--", typed("multipart/form-data; boundary=x"), 415, mediaReason, ""},
		{"two types in a line", "POST", "", secretBody, typed("application/json, text/plain"), 415, mediaReason, ""},
		{"another charset", "POST", "", secretBody, typed("application/json; charset=utf-16le"), 415, mediaReason, graphError("The request has a Content-Type with a charset that is not understood; send UTF-8.")},
		{"compressed", "POST", "", secretBody, append(typed(rig.JSONMedia), "Content-Encoding", "gzip"), 415, mediaReason, graphError("The request has a Content-Encoding that is not understood; send it uncompressed.")},
		{"compressed otherwise", "POST", "", secretBody, append(typed(rig.JSONMedia), "Content-Encoding", "identity, br"), 415, mediaReason, ""},
		{"PUT", "PUT", "", secretBody, nil, 405, methodReason, graphError("The method is not one of GraphQL; use POST, or GET for queries.")},
		{"PATCH", "PATCH", "", secretBody, nil, 405, methodReason, ""},
		{"DELETE", "DELETE", "", "", nil, 405, methodReason, ""},
		{"an unknown method", "QUERY", "", secretBody, nil, 405, methodReason, ""},
		{"a mutation in the URL", "GET", "?query=" + mutation, "", nil, 405, methodReason, graphError("Mutations are sent with POST only.")},
		{"a mutation among queries in the URL", "GET", "?query=query+A{secret}" + mutation[:8] + "+B" + mutation[8:] + "&operationName=B", "", nil, 405, methodReason, ""},
		{"nothing in the URL", "GET", "", "", nil, 400, invalidReason, graphError("Must provide query string.")},
		{"a body in GET", "GET", "?query={secret}", secretBody, nil, 400, invalidReason, graphError("A GET request must not have a body.")},
		{"query twice in the URL", "GET", "?query={secret}&qu%65ry={nope}", "", nil, 400, invalidReason, graphError("The request gives query more than once.")},
		{"query behind a semicolon", "GET", "?query={secret}&a=1;query={nope}", "", nil, 400, invalidReason, ""},
		{"not UTF-8 in the URL", "GET", "?query={secret}%23%ff", "", nil, 400, invalidReason, graphError("The URL has a parameter that is not percent-encoded UTF-8.")},
		{"half an escape", "GET", "?query={secret}%2", "", nil, 400, invalidReason, ""},
		{"variables in the URL that are no JSON", "GET", "?query={secret}&variables=x", "", nil, 400, invalidReason, graphError("variables must be an object or null.")},
		{"an upgrade", "GET", "?query={secret}", "", []string{"Connection", "Upgrade", "Upgrade", "websocket"}, 422, mediaReason, graphError("websockets are not allowed")},
	}
}

// Whatever is wrong with a request: its client is told in GraphQL, in the media
// type that it takes, the upstream is not asked, and no quota is spent.
func TestEveryBadRequestIsRefusedForFree(t *testing.T) {
	t.Parallel()
	g := oneGraph(t, false, nil)
	key := g.newKey(object{"access_rights": rig.AccessTo("g"), "quota_max": 100, "quota_renewal_rate": 3600, "rate": 100_000, "per": 1})
	left := func(want string) {
		t.Helper()
		got := g.ask("g", key, "{ secret }")
		g.check("a good request", got, passes)
		if remaining(got) != want {
			t.Errorf("%q calls are left, want %s", remaining(got), want)
		}
	}
	left("99")
	for _, bad := range slices.Concat(badBodies(), badOperations(), badHeads()) {
		for accept, kind := range map[string]string{
			"": "application/json; charset=utf-8", "application/json": "application/json; charset=utf-8",
			"application/graphql-response+json, application/json;q=0.9": "application/graphql-response+json; charset=utf-8",
		} {
			g.refuses(bad, key, accept, kind)
		}
	}
	left("98")
	if got := g.post("g", "", "Authorization", key); got.Status != 400 || got.Body != errorBody("the provided request is empty") || got.Header.Get("Content-Type") != rig.JSONMedia {
		t.Errorf("an empty body: %s", got)
	}
	for _, accept := range []string{"text/html", "application/json;q=0, application/xml"} {
		if got := g.post("g", secretBody, "Authorization", key, "Accept", accept); got.Status != 406 || got.Reason() != mediaReason {
			t.Errorf("Accept %s: %s", accept, got)
		}
	}
	large := rig.Call(t, "POST", g.traffic.Traffic+"/g/", strings.Repeat(" ", 1<<20)+secretBody, "Content-Type", rig.JSONMedia, "Authorization", key)
	if large.Status != 413 || large.Reason() != "body_too_large" {
		t.Errorf("a body that is too large: %s", large)
	}
	if reached := g.up.reached(); len(reached) > 0 {
		t.Errorf("the upstream saw %q", reached)
	}
	left("97")
}

// refuses sends a bad request and compares what it comes to.
func (g *graphs) refuses(bad badRequest, key, accept, kind string) {
	g.T.Helper()
	header := bad.header
	if header == nil {
		header = []string{"Content-Type", rig.JSONMedia}
	}
	header = append([]string{"Authorization", key}, header...)
	if accept != "" {
		header = append(header, "Accept", accept)
	}
	got := rig.Call(g.T, bad.method, g.traffic.Traffic+"/g/"+bad.path, bad.body, header...)
	what := fmt.Sprintf("%s, for who takes %q", bad.name, accept)
	g.check(what, got, expectation{bad.status, bad.reason, bad.want})
	if got.Header.Get("Content-Type") != kind || !strings.HasPrefix(got.Body, `{"errors":[{"message":"`) {
		g.T.Errorf("%s: %s", what, got)
	}
	if allow := got.Header.Get("Allow"); (allow != "") != (got.Status == 405) {
		g.T.Errorf("%s: methods that are allowed: %q", what, allow)
	}
}

// Refusals are free of quota, not of the rate: a client that sends nothing but
// nonsense is slowed down.
func TestRefusedOperationsCountUnderTheRate(t *testing.T) {
	t.Parallel()
	g := oneGraph(t, false, nil)
	for name, body := range map[string]string{
		"not JSON": "{", "empty": "", "unknown field": `{"query":"{ nope }"}`, "too deep": `{"query":"{ a { a { b } } }"}`,
		"restricted": `{"query":"{ pet { ... on Cat { lives } } }"}`, "introspection": `{"query":"{ __schema { queryType { name } } }"}`,
	} {
		rules := object{"disable_introspection": true, "restricted_types": []object{{"name": "Cat", "fields": []string{"lives"}}}}
		key := g.newKey(object{"access_rights": rig.AccessWith("g", rules), "quota_max": 100, "quota_renewal_rate": 3600, "rate": 4, "per": 3600, "max_query_depth": 3})
		for i := range 6 {
			got := g.post("g", body, "Authorization", key)
			if over := got.Status == 429 && got.Body == errorBody(textRate); over != (i >= 4) || !over && got.Status != 400 && got.Status != 403 {
				t.Errorf("%s, request %d: %s", name, i+1, got)
			}
		}
	}
	if reached := g.up.reached(); len(reached) > 0 {
		t.Errorf("the upstream saw %q", reached)
	}
}
