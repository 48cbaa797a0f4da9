package graphql_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

// errorBody is the GraphQL answer with one error that has no place.
func errorBody(message string) string { return `{"errors":[{"message":"` + message + `"}]}` }

func TestRequestsThatAreNotUnderstood(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", nil))
	good := `{"query":"{ secret }"}`
	for _, c := range []struct {
		name, method, path, body string
		header                   []string
		status                   int
		reason, want             string
	}{
		{"empty", "POST", "", "", []string{jsonType}, 400, "graphql_invalid", "{\n    \"error\": \"the provided request is empty\"\n}"},
		{"white space", "POST", "", " \n", []string{jsonType}, 400, "graphql_invalid", "{\n    \"error\": \"the provided request is empty\"\n}"},
		{"not JSON", "POST", "", `{"query"`, []string{jsonType}, 400, "graphql_invalid", errorBody(`The request body is invalid JSON: expected \":\" at byte 8, where the text ends.`)},
		{"behind the JSON", "POST", "", good + "{}", []string{jsonType}, 400, "graphql_invalid", errorBody(`The request body is invalid JSON: expected the end of the text at byte 22.`)},
		{"a byte order mark", "POST", "", "\ufeff" + good, []string{jsonType}, 400, "graphql_invalid", errorBody(`The request body is invalid JSON: expected a value at byte 0.`)},
		{"not UTF-8", "POST", "", "{\"query\":\"{ secret }\xff\"}", []string{jsonType}, 400, "graphql_invalid", errorBody(`The request body is invalid JSON: expected UTF-8 at byte 20.`)},
		{"half a surrogate pair", "POST", "", `{"query":"{ secret } #\ud800"}`, []string{jsonType}, 400, "graphql_invalid", errorBody("The request has a string with half of a surrogate pair, which is no text.")},
		{"too deep", "POST", "", `{"query":"{ secret }","x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, []string{jsonType}, 400, "graphql_invalid", errorBody("The request body is nested in more than 80 objects and arrays.")},
		{"a text", "POST", "", `"{ secret }"`, []string{jsonType}, 400, "graphql_invalid", errorBody("The request body must be a JSON object with the member query.")},
		{"no query", "POST", "", `{"variables":{}}`, []string{jsonType}, 400, "graphql_invalid", errorBody("Must provide query string.")},
		{"empty query", "POST", "", `{"query":""}`, []string{jsonType}, 400, "graphql_invalid", errorBody("Must provide query string.")},
		{"query twice", "POST", "", `{"query":"{ secret }","query":"{ secret }"}`, []string{jsonType}, 400, "graphql_invalid", errorBody("The request gives query more than once.")},
		{"query twice, escaped", "POST", "", `{"query":"{ secret }","qu\u0065ry":"{ nope }"}`, []string{jsonType}, 400, "graphql_invalid", errorBody("The request gives query more than once.")},
		{"query in another case", "POST", "", `{"query":"{ secret }","Query":"{ nope }"}`, []string{jsonType}, 400, "graphql_invalid", errorBody("The request has a member whose name differs from query, operationName, variables or extensions in case only.")},
		{"operation name twice", "POST", "", `{"operationName":"a","query":"{ secret }","operationName":null}`, []string{jsonType}, 400, "graphql_invalid", errorBody("The request gives operationName more than once.")},
		{"query a number", "POST", "", `{"query":1}`, []string{jsonType}, 400, "graphql_invalid", errorBody("query must be a string.")},
		{"query null", "POST", "", `{"query":null}`, []string{jsonType}, 400, "graphql_invalid", errorBody("query must be a string.")},
		{"operation name a list", "POST", "", `{"query":"{ secret }","operationName":[]}`, []string{jsonType}, 400, "graphql_invalid", errorBody("operationName must be a string or null.")},
		{"variables a list", "POST", "", `{"query":"{ secret }","variables":[]}`, []string{jsonType}, 400, "graphql_invalid", errorBody("variables must be an object or null.")},
		{"variables a text", "POST", "", `{"query":"{ secret }","variables":"{}"}`, []string{jsonType}, 400, "graphql_invalid", errorBody("variables must be an object or null.")},
		{"extensions true", "POST", "", `{"query":"{ secret }","extensions":true}`, []string{jsonType}, 400, "graphql_invalid", errorBody("extensions must be an object or null.")},
		{"a document by name beside a query", "POST", "", `{"query":"{ secret }","documentId":"x"}`, []string{jsonType}, 400, "graphql_invalid", errorBody("documentId cannot be given beside query.")},
		{"a batch", "POST", "", "[" + good + "]", []string{jsonType}, 400, "graphql_invalid", errorBody("Batched requests are not accepted; send each operation on its own.")},
		{"no operation name", "POST", "", `{"query":"query A { secret } query B { secret }"}`, []string{jsonType}, 400, "graphql_invalid", errorBody("Must provide operation name if query contains multiple operations.")},
		{"unknown operation", "POST", "", `{"query":"query A { secret }","operationName":"B"}`, []string{jsonType}, 400, "graphql_invalid", errorBody(`Unknown operation named \"B\".`)},

		{"no content type, with an origin", "POST", "", good, []string{"Origin: https://elsewhere.example"}, 415, "graphql_media", errorBody("The request has no Content-Type, and a browser may have sent it; send application/json.")},
		{"no content type, with a cookie", "POST", "", good, []string{"Cookie: a=b"}, 415, "graphql_media", errorBody("The request has no Content-Type, and a browser may have sent it; send application/json.")},
		{"no content type, of a page", "POST", "", good, []string{"Referer: https://elsewhere.example/"}, 415, "graphql_media", errorBody("The request has no Content-Type, and a browser may have sent it; send application/json.")},
		{"no content type, of another site", "POST", "", good, []string{"Sec-Fetch-Site: cross-site"}, 415, "graphql_media", errorBody("The request has no Content-Type, and a browser may have sent it; send application/json.")},
		{"an empty content type", "POST", "", good, []string{"Content-Type: "}, 415, "graphql_media", errorBody("The request has an empty Content-Type; send application/json.")},
		{"no content type, and a form", "POST", "", `query={secret}`, nil, 400, "graphql_invalid", errorBody(`The request body is invalid JSON: expected a value at byte 0.`)},
		{"plain text", "POST", "", good, []string{"Content-Type: text/plain"}, 415, "graphql_media", errorBody("The request has a Content-Type that is not understood; send application/json.")},
		{"a document in another charset", "POST", "", `{ secret }`, []string{"Content-Type: application/graphql; charset=latin1"}, 415, "graphql_media", errorBody("The request has a Content-Type with a charset that is not understood; send UTF-8.")},
		{"no document", "POST", "", " \n", []string{"Content-Type: application/graphql"}, 400, "graphql_invalid", "{\n    \"error\": \"the provided request is empty\"\n}"},
		{"a form", "POST", "", `query={secret}`, []string{"Content-Type: application/x-www-form-urlencoded"}, 415, "graphql_media", errorBody("The request has a Content-Type that is not understood; send application/json.")},
		{"two content types", "POST", "", good, []string{jsonType, "Content-Type: application/x-www-form-urlencoded"}, 415, "graphql_media", errorBody("The request has more than one Content-Type; send application/json.")},
		{"another charset", "POST", "", good, []string{"Content-Type: application/json; charset=utf-16"}, 415, "graphql_media", errorBody("The request has a Content-Type with a charset that is not understood; send UTF-8.")},
		{"compressed", "POST", "", good, []string{jsonType, "Content-Encoding: gzip"}, 415, "graphql_media", errorBody("The request has a Content-Encoding that is not understood; send it uncompressed.")},
		{"nothing acceptable", "POST", "", good, []string{jsonType, "Accept: text/html"}, 406, "graphql_media", errorBody("The Accept header excludes every media type of GraphQL answers; application/graphql-response+json and application/json are served.")},
		{"all excluded", "POST", "", good, []string{jsonType, "Accept: application/json;q=0"}, 406, "graphql_media", errorBody("The Accept header excludes every media type of GraphQL answers; application/graphql-response+json and application/json are served.")},

		{"put", "PUT", "", good, []string{jsonType}, 405, "method_not_allowed", errorBody("The method is not one of GraphQL; use POST, or GET for queries.")},
		{"delete", "DELETE", "", "", nil, 405, "method_not_allowed", errorBody("The method is not one of GraphQL; use POST, or GET for queries.")},
		{"nothing in the URL", "GET", "", "", nil, 400, "graphql_invalid", errorBody("Must provide query string.")},
		{"a body in GET", "GET", "?query={secret}", good, []string{jsonType}, 400, "graphql_invalid", errorBody("A GET request must not have a body.")},
		{"a mutation in the URL", "GET", "?query=" + url.QueryEscape(`mutation { rename(code: 1, name: "x") { code } }`), "", nil, 405, "method_not_allowed", errorBody("Mutations are sent with POST only.")},
		{"query twice in the URL", "GET", "?query={secret}&%71uery={nope}", "", nil, 400, "graphql_invalid", errorBody("The request gives query more than once.")},
		{"query in another case in the URL", "GET", "?query={secret}&Quer%59={nope}", "", nil, 400, "graphql_invalid", errorBody("The request has a member whose name differs from query, operationName, variables or extensions in case only.")},
		{"broken escapes", "GET", "?query={secret}%2", "", nil, 400, "graphql_invalid", errorBody("The URL has a parameter that is not percent-encoded UTF-8.")},
		{"not UTF-8 in the URL", "GET", "?query={secret}%ff", "", nil, 400, "graphql_invalid", errorBody("The URL has a parameter that is not percent-encoded UTF-8.")},
		{"semicolons", "GET", "?a=1;query={secret}", "", nil, 400, "graphql_invalid", errorBody("The URL separates parameters by a semicolon; use an ampersand.")},
		{"variables that are no JSON", "GET", "?query={secret}&variables={", "", nil, 400, "graphql_invalid", errorBody("variables must be an object or null.")},
		{"a subscription without a stream", "POST", "", `{"query":"subscription { renamed { code } }"}`, []string{jsonType}, 406, "graphql_media", errorBody("Subscriptions are answered as text/event-stream only; ask for it with the Accept header.")},
		{"a WebSocket", "GET", "?query={secret}", "", []string{"Connection: Upgrade", "Upgrade: websocket"}, 422, "graphql_media", errorBody("websockets are not allowed")},
		{"too large", "POST", "", `{"query":"` + strings.Repeat(" ", 193<<10) + `{ secret }"}`, []string{jsonType}, 413, "body_too_large", errorBody("The request body is too large.")},
		{"a hash alone", "POST", "", `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + strings.Repeat("0", 64) + `"}}}`, []string{jsonType}, 200, "graphql_invalid", `{"errors":[{"message":"PersistedQueryNotSupported","extensions":{"code":"PERSISTED_QUERY_NOT_SUPPORTED"}}]}`},
		{"a hash of another text", "POST", "", `{"query":"{ secret }","extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + strings.Repeat("0", 64) + `"}}}`, []string{jsonType}, 400, "graphql_invalid", errorBody("provided sha does not match query")},
		{"a hash that is none", "POST", "", `{"query":"{ secret }","extensions":{"persistedQuery":{"version":1,"sha256Hash":"abc"}}}`, []string{jsonType}, 400, "graphql_invalid", errorBody("extensions.persistedQuery must be an object with version 1 and sha256Hash, 64 hexadecimal digits.")},
		{"a missing variable", "POST", "", `{"query":"query($c: ID!) { country(code: $c) { code } }"}`, []string{jsonType}, 400, "graphql_invalid", `{"errors":[{"message":"Variable \"$c\" of required type \"ID!\" was not provided.","locations":[{"line":1,"column":7}]}]}`},
		{"a syntax error", "POST", "", `{"query":"{"}`, []string{jsonType}, 400, "graphql_invalid", `{"errors":[{"message":"Syntax Error: Expected Name, found <EOF>.","locations":[{"line":1,"column":2}]}]}`},
		{"a line end to some", "POST", "", `{"query":"{ secret #\u2028 nope\n}"}`, []string{jsonType}, 400, "graphql_invalid", `{"errors":[{"message":"Syntax Error: Invalid character: U+2028. In a string, write it as \"\\u2028\".","locations":[{"line":1,"column":11}]}]}`},
		{"a line end to some, in the URL", "GET", "?query={secret%23%C2%85nope%0A}", "", nil, 400, "graphql_invalid", `{"errors":[{"message":"Syntax Error: Invalid character: U+0085. In a string, write it as \"\\u0085\".","locations":[{"line":1,"column":9}]}]}`},
		{"the end of the text to some", "POST", "", `{"query":"{ secret #\u0000 nope\n}"}`, []string{jsonType}, 400, "graphql_invalid", `{"errors":[{"message":"Syntax Error: Invalid character: U+0000. In a string, write it as \"\\u0000\".","locations":[{"line":1,"column":11}]}]}`},
		{"a type definition", "POST", "", `{"query":"type A { b: Int }"}`, []string{jsonType}, 400, "graphql_invalid", `{"errors":[{"message":"The \"A\" definition is not executable.","locations":[{"line":1,"column":1}]}]}`},
		{"too many tokens", "POST", "", `{"query":"{` + strings.Repeat(" secret", 16_000) + `}"}`, []string{jsonType}, 400, "graphql_too_large", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := w.send(c.method, "/a/"+c.path, c.body, c.header...)
			if got.status != c.status || c.want != "" && got.body != c.want || got.header.Get("X-Sluice-Reason") != c.reason {
				t.Errorf("got %d %s %s\nwant %d %s %s", got.status, got.header.Get("X-Sluice-Reason"), got.body, c.status, c.reason, c.want)
			}
			if len(got.seen) != 0 {
				t.Errorf("the upstream saw %q", got.seen)
			}
			if got := w.post(good); got.status != 200 {
				t.Errorf("afterwards: %v", got)
			}
		})
	}
}

// A document that is not JSON goes on as JSON, and a body without a media type gets one.
func TestBodiesThatOnlyLackAMediaType(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", nil))
	const document = "{ countries(filter: {code: \"DE\", size: 1}) { name } }"
	for _, c := range []struct{ name, body, kind, path, want string }{
		{"no content type", `{"query":"{ secret }"}`, "", "", `{"query":"{ secret }"}`},
		{"a document", "{ secret }", "Content-Type: application/graphql", "", `{"query":"{ secret }"}`},
		{"a document in UTF-8", "{ secret }", "Content-Type: application/GraphQL ; charset=utf-8", "", `{"query":"{ secret }"}`},
		{"a document to be escaped", document, "Content-Type: application/graphql", "", `{"query":` + strconv.Quote(document) + `}`},
		{"another document in the URL", "{ secret }", "Content-Type: application/graphql", "?query={nope}&x=1", `{"query":"{ secret }"}`},
	} {
		for range 2 {
			header := []string{c.kind}
			if c.kind == "" {
				header = nil
			}
			got := w.send("POST", "/a/"+c.path, c.body, header...)
			if got.status != 200 || len(got.seen) != 1 || got.seen[0].body != c.want || strings.Contains(got.seen[0].uri, "query") ||
				strings.Count(got.seen[0].header, "Content-Type: application/json\r\n") != 1 || strings.Count(got.seen[0].header, "Content-Type:") != 1 {
				t.Errorf("%s: %v, upstream saw %q", c.name, got, got.seen)
			}
		}
	}
	if got := w.send("POST", "/a/", "{ nope }", "Content-Type: application/graphql"); got.status != 400 || len(got.seen) != 0 || !strings.Contains(got.body, "nope") {
		t.Errorf("an unknown field: %v, upstream saw %q", got, got.seen)
	}
}

func TestMethodsThatAreAllowedAreNamed(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", nil))
	if got := w.send("PATCH", "/a/", ""); got.header.Get("Allow") != "GET, HEAD, POST, OPTIONS" {
		t.Errorf("%v %v", got, got.header)
	}
	if got := w.send("GET", "/a/?query="+url.QueryEscape(`mutation { rename(code: 1, name: "x") { code } }`), ""); got.header.Get("Allow") != "POST" {
		t.Errorf("%v %v", got, got.header)
	}
}

func TestQueriesInTheURL(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", nil))
	vars := url.Values{
		"query": {"query Q($c: ID!, $d: ID = \"+ &\") { country(code: $c) { name } x: country(code: $d) { code } }"}, "variables": {`{"c":"DE"}`},
		"operationName": {"Q"}, "extensions": {`{"a":1}`}, "other": {"1"},
	}.Encode()
	for _, c := range []struct{ method, query string }{
		{"GET", "query={secret}"}, {"GET", vars}, {"HEAD", "query={secret}"}, {"GET", "query=%7B+secret+%7D&variables=&operationName=&extensions=null"},
	} {
		for range 2 {
			got := w.send(c.method, "/a/?"+c.query, "")
			if got.status != 200 || len(got.seen) != 1 || got.seen[0].uri != "/?"+c.query || got.seen[0].method != c.method {
				t.Errorf("%s %s: %v, upstream saw %q", c.method, c.query, got, got.seen)
			}
		}
	}
	got := w.send("OPTIONS", "/a/?query={nope}&a=1", "", "X-HTTP-Method-Override: POST")
	if got.status != 200 || len(got.seen) != 1 || got.seen[0].method != "OPTIONS" || got.seen[0].uri != "/?a=1" || strings.Contains(got.seen[0].header, "Override") {
		t.Errorf("OPTIONS: %v, upstream saw %q", got, got.seen)
	}
}

func TestTheURLOfABodyDoesNotGoUp(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", nil))
	for in, want := range map[string]string{
		"":                             "/",
		"?a=1&b":                       "/?a=1&b",
		"?query={nope}":                "/",
		"?a=1&%71uery={nope}&b=2":      "/?a=1&b=2",
		"?operationName=X&variables=":  "/",
		"?x=1;Query={nope}&y=2":        "/?y=2",
		"?QUERY={nope}&variable%C5%BF": "/",
		"?id=x&+query={nope}&%71=1":    "/?%71=1",
	} {
		got := w.send("POST", "/a/"+in, `{"query":"{ secret }"}`, jsonType)
		if got.status != 200 || len(got.seen) != 1 || got.seen[0].uri != want {
			t.Errorf("%s: %v, upstream saw %q, want %s", in, got, got.seen, want)
		}
	}
}

func TestAnswersAreInTheMediaTypeThatIsLikedBest(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", nil), w.api("lenient", func(a *definition.API) { a.GraphQL.LegacyJSON200 = true }))
	const plain, response = "application/json; charset=utf-8", "application/graphql-response+json; charset=utf-8"
	for accept, want := range map[string]string{
		"": plain, "*/*": plain, "application/*": plain, "application/json": plain, "text/html, */*;q=0.1": plain,
		"application/graphql-response+json":                                 response,
		"application/graphql-response+json, application/json":               plain,
		"application/graphql-response+json, application/json;q=0.9":         response,
		"application/json;q=0.2, application/graphql-response+json;q=0.201": response,
		"APPLICATION/GraphQL-Response+JSON;charset=utf-8":                   response,
		"application/graphql-response+json;q=0, */*":                        plain,
		"*/*, application/json;q=0":                                         response,
		`text/plain;a="x, application/graphql-response+json", */*`:          plain,

		"text/event-stream": plain,
	} {
		var header []string
		if accept != "" {
			header = append(header, "Accept: "+accept)
		}
		got := w.post(`{"query":"{ nope }"}`, header...)
		if got.status != 400 || got.header.Get("Content-Type") != want {
			t.Errorf("%q: %v %s, want %s", accept, got, got.header.Get("Content-Type"), want)
		}
		status := 200
		if want == response {
			status = 400
		}
		if got := w.send("POST", "/lenient/", `{"query":"{ nope }"}`, append(header, jsonType)...); got.status != status || got.header.Get("Content-Type") != want {
			t.Errorf("lenient, %q: %v", accept, got)
		}
		body := `{"data":{"__typename":"Query"}}`
		if accept == "text/event-stream" {
			want, body = accept, "event: next\ndata: "+body+"\n\nevent: complete\ndata:\n\n"
		}
		if got := w.post(`{"query":"{ __typename }"}`, header...); got.status != 200 || got.header.Get("Content-Type") != want || got.body != body || len(got.seen) != 0 {
			t.Errorf("%q: %v %s", accept, got, got.header.Get("Content-Type"))
		}
	}
}

func TestSubscriptionsGoUpAsStreams(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", nil))
	if got := w.post(`{"query":"subscription { renamed { code } }"}`, "Accept: text/event-stream"); got.status != 200 || len(got.seen) != 1 {
		t.Errorf("%v", got)
	}
}

func TestABatchHasNoSubscription(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", func(a *definition.API) { a.GraphQL.BatchMax = 5 }))
	got := w.post(`[{"query":"{ secret }"},{"query":"subscription { renamed { code } }"}]`, "Accept: text/event-stream")
	if got.status != 400 || !strings.HasSuffix(got.body, `,{"errors":[{"message":"A subscription cannot be part of a batch."}]}]`) || len(got.seen) != 0 {
		t.Errorf("%v", got)
	}
}

func TestBodiesThatComeInPieces(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", nil))
	for _, n := range []int{100, 9 << 10, 60 << 10} {
		body := `{"query":"{ secret }","x":"` + strings.Repeat("y", n) + `"}`
		req, err := http.NewRequest("POST", "http://"+w.Addr+"/a/", struct{ *strings.Reader }{strings.NewReader(body)})
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if seen := w.reached(); resp.StatusCode != 200 || len(seen) != 1 || seen[0].body != body {
			t.Errorf("%d bytes: %d, upstream saw %d requests", n, resp.StatusCode, len(seen))
		}
		if got := w.post(body); got.status != 200 || len(got.seen) != 1 || got.seen[0].body != body {
			t.Errorf("%d bytes with their length: %d", n, got.status)
		}
	}
}
