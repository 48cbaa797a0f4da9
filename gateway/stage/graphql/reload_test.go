package graphql_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

func withSchema(text string) func(*definition.API) {
	return func(a *definition.API) { a.GraphQL.Schema = text }
}

func TestABrokenSchemaAnswers500(t *testing.T) {
	w := newWorld(t)
	for name, text := range map[string]string{
		"no grammar": "type Query {", "no such type": "type Query { a: Nope }", "no query": "type A { b: Int }", "empty": "", "blank": " \n",
	} {
		failed := w.Load(w.api("a", withSchema(text)))
		if failed["a"] == nil || !strings.Contains(failed["a"].Error(), "graphql.schema") {
			t.Errorf("%s: %v", name, failed)
		}
		got := w.post(`{"query":"{ a }"}`)
		if got.status != 500 || got.body != plainBody("there was a problem proxying the request") || got.header.Get("X-Sluice-Reason") != "schema_broken" || len(got.seen) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	if said := w.log.String(); !strings.Contains(said, "definition not served") || !strings.Contains(said, "Nope") {
		t.Errorf("the log says %s", said)
	}
	w.MustLoad(w.api("a", nil))
	if failed := w.Load(w.api("a", withSchema("type Query {"))); failed["a"] == nil {
		t.Error("a broken schema is applied")
	}
	if got := w.post(`{"query":"{ secret }"}`); got.status != 200 {
		t.Errorf("the last good form does not stay: %v", got)
	}
}

func TestOtherFaultsOfADefinitionAnswer503(t *testing.T) {
	w := newWorld(t)
	w.Load(w.api("a", func(a *definition.API) { a.Proxy.TargetURL = "nowhere" }))
	if got := w.post(`{"query":"{ secret }"}`); got.status != 503 {
		t.Errorf("%v", got)
	}
}

func TestConnectionsToUpstreamsAreKeptAcrossReloads(t *testing.T) {
	w := newWorld(t)
	other := func(a *definition.API) { a.Proxy.TargetURL = "http://127.0.0.1:9" }
	w.MustLoad(w.api("a", nil), w.api("b", other))
	first := w.post(`{"query":"{ secret }"}`).seen[0].conn
	for range 3 {
		if got := w.post(`{"query":"{ secret }"}`).seen[0].conn; got != first {
			t.Fatalf("connection %s after %s", got, first)
		}
		w.MustLoad(w.api("a", nil))
		w.MustLoad(w.api("a", func(a *definition.API) { a.Name = "changed" }))
	}
}

// The same text is another operation under another schema.
func TestSchemasDoNotShareWhatIsKnown(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", withSchema("type Query { x: Int }")), w.api("b", withSchema("type Query { y: Int }")), w.api("c", withSchema("type Query { x: Int }")))
	for range 3 {
		for _, c := range []struct {
			path, query string
			status      int
		}{{"/a/", "{ x }", 200}, {"/b/", "{ x }", 400}, {"/a/", "{ y }", 400}, {"/b/", "{ y }", 200}, {"/c/", "{ x }", 200}, {"/c/", "{ y }", 400}} {
			if got := w.send("POST", c.path, fmt.Sprintf(`{"query":%q}`, c.query), jsonType); got.status != c.status {
				t.Errorf("%s %s: %v", c.path, c.query, got)
			}
		}
	}
	if known := w.GraphQL.Cached(); known.Entries != 2 || known.Refused != 2 {
		t.Errorf("%+v: equal schemas are to share what is known, others not", known)
	}
}

// What is chosen of a text is a part of what it is known by, and neither can
// pass for the other.
func TestOperationsOfOneTextAreApart(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", func(a *definition.API) { keyed(a) }))
	w.key("key", unlimited, definition.Access{RestrictedTypes: []definition.TypeFields{{Name: "Query", Fields: []string{"secret"}}}})
	const text = "query A { animals { name } } query B { secret }"
	for range 3 {
		for name, status := range map[string]int{"A": 200, "B": 400, "": 400, "C": 400} {
			if got := w.post(fmt.Sprintf(`{"query":%q,"operationName":%q}`, text, name), authorized("key")); got.status != status {
				t.Errorf("%q: %v", name, got)
			}
		}
	}
}

func TestReloadsSwapSchemasAndRights(t *testing.T) {
	w := newWorld(t)
	status := func(query string) int { return w.post(fmt.Sprintf(`{"query":%q}`, query)).status }
	w.MustLoad(w.api("a", withSchema("type Query { x: Int }")))
	if status("{ x }") != 200 || status("{ y }") != 400 {
		t.Error("first schema")
	}
	w.MustLoad(w.api("a", withSchema("type Query { y: Int }")))
	if status("{ x }") != 400 || status("{ y }") != 200 {
		t.Error("second schema")
	}
	if known := w.GraphQL.Cached(); known.Entries != 1 || known.Refused != 1 {
		t.Errorf("%+v: what was known of the first schema is to be dropped", known)
	}
	w.MustLoad(w.api("a", func(a *definition.API) {
		withSchema("type Query { y: Int }")(a)
		a.GraphQL.Limits = &definition.GraphQLLimits{MaxAliases: 1}
	}))
	if known := w.GraphQL.Cached(); known.Entries != 1 {
		t.Errorf("%+v: what is known of a schema outlives a change of something else", known)
	}
	if status("{ y }") != 200 || status("{ a: y b: y }") != 403 {
		t.Error("a limit of the API")
	}
	w.MustLoad(w.api("other", nil))
	if known := w.GraphQL.Cached(); known.Entries+known.Refused != 0 {
		t.Errorf("%+v after the API went", known)
	}
}

func TestRightsChangeWithTheSession(t *testing.T) {
	w := newWorld(t)
	w.MustLoad(w.api("a", keyed))
	w.key("one", unlimited, definition.Access{})
	w.key("two", unlimited, definition.Access{RestrictedTypes: []definition.TypeFields{{Name: "Query", Fields: []string{"secret"}}, {Name: "Nope"}}})
	for range 2 {
		if got := w.post(`{"query":"{ secret }"}`, authorized("one")); got.status != 200 {
			t.Errorf("%v", got)
		}
		if got := w.post(`{"query":"{ secret }"}`, authorized("two")); got.status != 400 {
			t.Errorf("%v", got)
		}
	}
	if said := w.log.String(); strings.Count(said, "no type Nope") != 1 {
		t.Errorf("unknown names are to be logged once: %s", said)
	}
}

func TestManyClientsWhileSchemasChange(t *testing.T) {
	w := newWorld(t)
	const x, y = "type Query { x: Int both: Int }", "type Query { y: Int both: Int }"
	w.MustLoad(w.api("a", withSchema(x)))
	var clients sync.WaitGroup
	for client := range 6 {
		clients.Go(func() {
			for i := range 150 {
				query := []string{"{ both }", "{ nope }", fmt.Sprintf("{ a%d: both }", i), "{ __typename }", fmt.Sprintf("{ b%d }", i)}[(i+client)%5]
				want := 200
				if strings.HasPrefix(query, "{ b") && query != "{ both }" || query == "{ nope }" {
					want = 400
				}
				if got := w.post(fmt.Sprintf(`{"query":%q}`, query)); got.status != want {
					t.Errorf("%s: %v", query, got)
				}
			}
		})
	}
	for i := range 20 {
		w.Load(w.api("a", withSchema([]string{x, y}[i%2]+fmt.Sprintf("\ntype T%d { a: Int }", i))))
	}
	clients.Wait()
}
