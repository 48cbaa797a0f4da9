package graphql_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// plainBody is what a refusal that is no GraphQL answer looks like.
func plainBody(message string) string { return "{\n    \"error\": \"" + message + "\"\n}" }

func authorized(key string) string { return "Authorization: " + key }

func TestRightsOfKeys(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", keyed))
	depth := unlimited
	depth.MaxQueryDepth = 3
	aliases := unlimited
	aliases.MaxQueryAliases = 1
	cost := unlimited
	cost.MaxQueryCost = 25
	w.key("free", unlimited, definition.Access{})
	w.key("depth", depth, definition.Access{})
	w.key("aliases", aliases, definition.Access{})
	w.key("cost", cost, definition.Access{})
	w.key("hidden", unlimited, definition.Access{DisableIntrospection: true})
	w.key("restricted", unlimited, definition.Access{RestrictedTypes: []definition.TypeFields{{Name: "Cat", Fields: []string{"name"}}, {Name: "Continent", Fields: []string{"*"}}}})
	w.key("allowed", unlimited, definition.Access{AllowedTypes: []definition.TypeFields{{Name: "Query", Fields: []string{"countries"}}, {Name: "Country", Fields: []string{"code"}}}})
	for _, c := range []struct {
		key, query   string
		status       int
		reason, want string
	}{
		{"free", "{ countries { continent { countries { name } } } __schema { types { name } } }", 200, "", ""},
		{"depth", "{ countries { name } }", 200, "", ""},
		{"depth", "{ countries { continent { name } } }", 403, "depth_limit", plainBody("depth limit exceeded")},
		{"depth", "{ countries { ...A } } fragment A on Country { continent { name } }", 403, "depth_limit", plainBody("depth limit exceeded")},
		{"aliases", "{ a: secret }", 200, "", ""},
		{"aliases", "{ a: secret b: secret }", 403, "operation_limit", plainBody("alias limit exceeded")},
		{"hidden", "{ secret __schema { types { name } } }", 403, "introspection_disabled", plainBody("introspection is disabled")},
		{"hidden", "{ countries { __typename name } }", 200, "", ""},
		{"restricted", "{ animals { name } }", 400, "field_restricted", errorBody("field: name is restricted on type: Animal")},
		{"restricted", "{ animals { ... on Dog { name } } }", 200, "", ""},
		{"restricted", "{ animals { ... on Cat { x: name } } __schema { queryType { name } } }", 400, "field_restricted", errorBody("field: name is restricted on type: Cat")},
		{"restricted", "{ countries { continent { code } } }", 400, "field_restricted", errorBody("all fields of Continent type are restricted")},
		{"allowed", "{ countries { code } }", 200, "", ""},
		{"allowed", "{ countries { code name } }", 400, "field_restricted", errorBody("field: name is restricted on type: Country")},
	} {
		for range 2 {
			got := w.post(fmt.Sprintf(`{"query":%q}`, c.query), authorized(c.key))
			if got.status != c.status || c.want != "" && got.body != c.want || got.header.Get("X-Sluice-Reason") != c.reason || len(got.seen) > 0 != (c.status == 200) {
				t.Errorf("%s, %s\n got %v %s\nwant %d %s", c.key, c.query, got, got.header.Get("X-Sluice-Reason"), c.status, c.want)
			}
		}
	}
	costly := `{"query":"query($n: Int) { countries(first: $n) { name code } }","variables":{"n":%d}}`
	if got := w.post(fmt.Sprintf(costly, 5), authorized("cost")); got.status != 200 {
		t.Errorf("a small list: %v", got)
	}
	if got := w.post(fmt.Sprintf(costly, 50), authorized("cost")); got.status != 403 || got.body != plainBody("cost limit exceeded") {
		t.Errorf("a large list: %v", got)
	}
}

func TestHiddenSchemasAreNotTold(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", func(a *definition.API) { keyed(a); a.GraphQL.Suggestions = true }))
	w.key("open", unlimited, definition.Access{})
	w.key("hidden", unlimited, definition.Access{DisableIntrospection: true})
	for _, body := range []string{
		`{"query":"{ countrie }"}`, `{"query":"{ countries }"}`, `{"query":"{ country { name } }"}`, `{"query":"{ animals { lives } }"}`,
		`{"query":"query($f: Filter) { countries(filter: $f) { code } }","variables":{"f":{"siz":1}}}`,
	} {
		for _, key := range []string{"open", "hidden", "open", "hidden"} {
			got := w.post(body, authorized(key))
			if got.status != 400 {
				t.Errorf("%s: %v", body, got)
			}
			for _, name := range []string{"Country", "code", "Cat", "size"} {
				if key == "hidden" && !strings.Contains(body, name) && strings.Contains(got.body, name) {
					t.Errorf("%s tells %s: %s", body, name, got.body)
				}
			}
		}
	}
}

// Some servers have their schema where no introspection is asked for.
func TestHiddenSchemasAreNotAskedForAsTexts(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", keyed))
	w.key("open", unlimited, definition.Access{})
	w.key("hidden", unlimited, definition.Access{DisableIntrospection: true})
	for _, path := range []string{"/a/?sdl&query={secret}", "/a/?query={secret}&SD%4C=1", "/a/schema?query={secret}", "/a/Schema.graphql/?query={secret}"} {
		if got := w.send("GET", path, "", authorized("hidden")); got.status != 403 || got.body != plainBody("introspection is disabled") || len(got.seen) != 0 {
			t.Errorf("%s: %v, upstream saw %q", path, got, got.seen)
		}
		if got := w.send("GET", path, "", authorized("open")); got.status != 200 || len(got.seen) != 1 {
			t.Errorf("%s with a key that may: %v", path, got)
		}
	}
	for _, path := range []string{"/a/?query={secret}", "/a/schemas?query={secret}&sdlx=1&x=sdl"} {
		if got := w.send("GET", path, "", authorized("hidden")); got.status != 200 {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestRefusalsCostNoQuota(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", keyed))
	w.key("key", definition.Limits{QuotaMax: 10, QuotaRenewalRate: 3600, MaxQueryDepth: 2, Rate: 1000, Per: 60}, definition.Access{DisableIntrospection: true})
	left := func() string {
		t.Helper()
		got := w.post(`{"query":"{ secret }"}`, authorized("key"))
		if got.status != 200 {
			t.Fatalf("%v", got)
		}
		return got.header.Get("X-Ratelimit-Remaining")
	}
	if n := left(); n != "9" {
		t.Fatalf("%s left after one call", n)
	}
	for _, body := range []string{
		``, `{`, `[]`, `{"query":"{ nope }"}`, `{"query":"{ countries { name } }"}`, `{"query":"{ __schema { queryType { name } } }"}`,
		`{"query":"query($c: ID!) { country(code: $c) { name } }"}`, `{"query":"subscription { renamed { code } }"}`,
	} {
		for range 2 {
			if got := w.post(body, authorized("key")); got.status < 400 || len(got.seen) > 0 {
				t.Errorf("%s: %v", body, got)
			}
		}
	}
	if n := left(); n != "8" {
		t.Errorf("%s left, want 8", n)
	}
	if got := w.post(`{"query":"{ __typename }"}`, authorized("key")); got.status != 200 || got.header.Get("X-Ratelimit-Remaining") != "7" {
		t.Errorf("what the gateway answers itself: %v, %s left", got, got.header.Get("X-Ratelimit-Remaining"))
	}
}

func TestTheRateHoldsWhatIsRefused(t *testing.T) {
	for name, body := range map[string]func(i int) string{
		"unseen":  func(i int) string { return fmt.Sprintf(`{"query":"{ a%d: secret }"}`, i) },
		"invalid": func(int) string { return `{"query":"{ nope }"}` },
		"no JSON": func(int) string { return `{` },
		"seen":    func(int) string { return `{"query":"{ secret }"}` },
	} {
		w := newWorld(t)
		w.MustLoad(w.api("a", keyed))
		w.key("key", definition.Limits{QuotaMax: -1, Rate: 5, Per: 3600}, definition.Access{})
		for i := range 8 {
			got := w.post(body(i), authorized("key"))
			if (got.status == 429) != (i >= 5) {
				t.Errorf("%s, request %d: %v", name, i, got)
			}
		}
	}
}

func TestBatches(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", func(a *definition.API) { keyed(a); a.GraphQL.BatchMax = 3 }))
	w.key("key", definition.Limits{QuotaMax: 10, QuotaRenewalRate: 3600, Rate: 1000, Per: 60, MaxQueryDepth: 2}, definition.Access{})
	good := `{"query":"{ secret }"}`
	got := w.post("["+good+" , "+good+"]", authorized("key"))
	if got.status != 200 || len(got.seen) != 1 || got.seen[0].body != "["+good+" , "+good+"]" || got.header.Get("X-Ratelimit-Remaining") != "8" {
		t.Errorf("two: %v, %s left, upstream saw %q", got, got.header.Get("X-Ratelimit-Remaining"), got.seen)
	}
	notRun := errorBody("Not run, because another operation of the batch was refused.")
	for _, c := range []struct {
		body   string
		status int
		want   string
	}{
		{"[]", 400, errorBody("A batch must have at least one operation.")},
		{"[" + strings.Repeat(good+",", 3) + good + "]", 400, errorBody("A batch may have at most 3 operations.")},
		{"[" + good + ",1]", 400, errorBody("Operation 2 of the batch: The request body must be a JSON object with the member query.")},
		{"[" + good + `,{"query":1}]`, 400, errorBody("Operation 2 of the batch: query must be a string.")},
		{"[" + good + `,{]`, 400, errorBody(`The request body is invalid JSON: expected a name in double quotes at byte 25.`)},
		{"[" + good + `,{"query":"{ nope }"}]`, 400, "[" + notRun + `,{"errors":[{"message":"field: nope not defined on type: Query","locations":[{"line":1,"column":3}]}]}]`},
		{`[{"query":"{ countries { name } }"},` + good + "]", 403, "[" + errorBody("depth limit exceeded") + "," + notRun + "]"},
	} {
		got := w.post(c.body, authorized("key"))
		if got.status != c.status || got.body != c.want || len(got.seen) != 0 {
			t.Errorf("%s\n got %v\nwant %d %s", c.body, got, c.status, c.want)
		}
	}
	for i, want := range []string{"5", "2", ""} {
		got := w.post("["+good+","+good+","+good+"]", authorized("key"))
		if got.header.Get("X-Ratelimit-Remaining") != want && i < 2 || i == 2 && got.status != 403 {
			t.Errorf("batch %d: %v, %s left, want %s", i, got, got.header.Get("X-Ratelimit-Remaining"), want)
		}
	}
	if got := w.post(good, authorized("key")); got.status != 200 || got.header.Get("X-Ratelimit-Remaining") != "1" {
		t.Errorf("after a batch too many: %v", got)
	}
}

func TestABatchIsNoLargerThanADocumentMayBe(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", func(a *definition.API) { a.GraphQL.BatchMax = 100 }))
	one := `{"query":"{` + strings.Repeat(" secret", 490) + `}"}`
	for n, status := range map[int]int{1: 200, 15: 200, 35: 400} {
		body := "[" + strings.Repeat(one+",", n-1) + one + "]"
		got := w.post(body)
		if got.status != status || len(got.seen) > 0 != (status == 200) || status == 400 && !strings.Contains(got.body, "more tokens together than one document may have") {
			t.Errorf("%d operations: %.300v", n, got)
		}
	}
}

func persisted(hash string) string {
	return `"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + hash + `"}}`
}

func TestTrustedDocuments(t *testing.T) {
	w := newWorld(t)
	one, two := "{ secret }", "query A { secret } query B($c: ID!) { country(code: $c) { \"\"\"\n\"\"\" name } }"
	two = "query A { secret } query B($c: ID!) { country(code: $c) { name } } # \"quoted\"\n"
	w.MustLoad(w.api("a", func(a *definition.API) {
		keyed(a)
		a.GraphQL.TrustedDocuments = &definition.GraphQLTrustedDocuments{Documents: map[string]string{hashOf(one): one, hashOf(two): two}}
	}))
	w.key("any", unlimited, definition.Access{})
	w.key("only", unlimited, definition.Access{TrustedDocumentsOnly: true})
	for _, c := range []struct {
		key, body string
		status    int
		want, up  string // what the client gets when it is refused, else what goes up
	}{
		{"any", "{" + persisted(hashOf(one)) + "}", 200, "", `{"query":"{ secret }"}`},
		{"only", `{"operationName":"B","variables":{"c":"D\u0045"},` + persisted(hashOf(two)) + "}", 200, "", `{"query":"query A { secret } query B($c: ID!) { country(code: $c) { name } } # \"quoted\"\n","operationName":"B","variables":{"c":"D\u0045"}}`},
		{"only", `{"operationName":"B",` + persisted(hashOf(two)) + "}", 400, `{"errors":[{"message":"Variable \"$c\" of required type \"ID!\" was not provided.","locations":[{"line":1,"column":28}]}]}`, ""},
		{"only", `{"query":"{ secret }"}`, 200, "", `{"query":"{ secret }"}`},
		{"only", `{"query":"{ secret } "}`, 403, plainBody("Only stored documents can be run; this is none of them"), ""},
		{"only", `{"query":"{ secret }",` + persisted(hashOf(one)) + "}", 200, "", `{"query":"{ secret }",` + persisted(hashOf(one)) + "}"},
		{"any", `{"query":"{ secret } ",` + persisted(hashOf(one)) + "}", 400, errorBody("provided sha does not match query"), ""},
		{"any", "{" + persisted(hashOf("x")) + "}", 200, `{"errors":[{"message":"PersistedQueryNotFound","extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}}]}`, ""},
		{"any", `{"query":"{ secret } #",` + persisted(hashOf("{ secret } #")) + "}", 200, "", `{"query":"{ secret } #",` + persisted(hashOf("{ secret } #")) + "}"},
		{"any", "{" + persisted(hashOf("{ secret } #")) + "}", 200, `{"errors":[{"message":"PersistedQueryNotFound","extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}}]}`, ""},
	} {
		for range 2 {
			got := w.post(c.body, authorized(c.key))
			if got.status != c.status || c.want != "" && got.body != c.want || len(got.seen) > 0 != (c.up != "") || c.up != "" && got.seen[0].body != c.up {
				t.Errorf("%s, %s\n got %v\nwant %d %s\nupstream saw %q", c.key, c.body, got, c.status, c.want, got.seen)
			}
		}
	}
	got := w.send("GET", `/a/?x=1&operationName=A&extensions={"persistedQuery":{"version":1,"sha256Hash":"`+hashOf(two)+`"}}`, "", authorized("only"))
	if got.status != 200 || len(got.seen) != 1 || !strings.HasPrefix(got.seen[0].uri, "/?x=1&query=query%20A%20") || !strings.HasSuffix(got.seen[0].uri, "&operationName=A") {
		t.Errorf("GET: %v, upstream saw %q", got, got.seen)
	}
}

func TestClientsRegisterDocumentsWhereTheyMay(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", func(a *definition.API) {
		keyed(a)
		a.GraphQL.TrustedDocuments = &definition.GraphQLTrustedDocuments{Register: true}
	}))
	w.key("any", unlimited, definition.Access{})
	w.key("only", unlimited, definition.Access{TrustedDocumentsOnly: true})
	w.key("poor", unlimited, definition.Access{RestrictedTypes: []definition.TypeFields{{Name: "Query", Fields: []string{"secret"}}}})
	alone := "{" + persisted(hashOf("{ secret }")) + "}"
	whole := `{"query":"{ secret }",` + persisted(hashOf("{ secret }")) + "}"
	for _, c := range []struct {
		key, body string
		status    int
		passes    bool
	}{
		{"any", alone, 200, false},
		{"poor", whole, 400, false},
		{"any", alone, 200, false},
		{"any", whole, 200, true},
		{"any", alone, 200, true},
		{"poor", alone, 400, false},
		{"only", alone, 200, false},
		{"only", whole, 403, false},
	} {
		if got := w.post(c.body, authorized(c.key)); got.status != c.status || len(got.seen) > 0 != c.passes {
			t.Errorf("%s, %s: %v, upstream saw %q", c.key, c.body, got, got.seen)
		}
	}
}
