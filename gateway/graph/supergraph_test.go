package graph_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/internal/definition"
)

func TestFaultsOfSubgraphsAreErrorsWithPaths(t *testing.T) {
	w := newShop(t)
	entities := func(list string) http.HandlerFunc { return says(200, `{"data":{"_entities":[`+list+`]}}`) }
	const top = `{ top { upc inStock warehouse { city } } }`
	for _, c := range []struct {
		name, at string
		answer   http.HandlerFunc
		query    string
		want     string
	}{
		{
			"a status", "/inventory", says(500, "<html>"), top,
			`{"errors":[{"message":"subgraph \"inventory\": status 500","path":["top",0,"inStock"],E},{"message":"subgraph \"inventory\": status 500","path":["top",1,"inStock"],E},` +
				`{"message":"subgraph \"inventory\": status 500","path":["top",0,"warehouse"],E},{"message":"subgraph \"inventory\": status 500","path":["top",1,"warehouse"],E}],` +
				`"data":{"top":[{"upc":"p0","inStock":null,"warehouse":null},{"upc":"p1","inStock":null,"warehouse":null}]}}`,
		},
		{
			"HTML", "/inventory", says(200, "<html>"), `{ product(upc: "p1") { upc inStock } }`,
			`{"errors":[{"message":"subgraph \"inventory\": the response is not one of GraphQL","path":["product","inStock"],E}],"data":{"product":{"upc":"p1","inStock":null}}}`,
		},
		{
			"no data", "/inventory", says(200, `{"data":null}`), `{ product(upc: "p1") { inStock } }`,
			`{"errors":[{"message":"subgraph \"inventory\": the response is not one of GraphQL","path":["product","inStock"],E}],"data":{"product":{"inStock":null}}}`,
		},
		{
			"an error of one entity", "/inventory", says(200, `{"data":{"_entities":[{"__typename":"Product","inStock":true},{"__typename":"Product","inStock":null}]},"errors":[{"message":"bad","path":["_entities",1,"inStock"],"extensions":{"code":"BAD","secret":1}}]}`),
			`{ top { inStock } }`, `{"errors":[{"message":"bad","path":["top",1,"inStock"],"extensions":{"code":"BAD","serviceName":"inventory"}}],"data":{"top":[{"inStock":true},{"inStock":null}]}}`,
		},
		{
			"an error without a path, and data", "/inventory", says(200, `{"data":{"_entities":[{"__typename":"Product","inStock":true},null]},"errors":[{"message":"bad"}]}`),
			`{ top { inStock } }`, `{"errors":[{"message":"bad","path":["top",1,"inStock"],E}],"data":{"top":[{"inStock":true},{"inStock":null}]}}`,
		},
		{
			"an error and no nulls", "/inventory", says(200, `{"data":{"_entities":[{"__typename":"Product","inStock":true}]},"errors":[{"message":"bad"}]}`),
			`{ product(upc: "p1") { inStock } }`, `{"errors":[{"message":"bad","path":["product"],E}],"data":{"product":{"inStock":true}}}`,
		},
		{
			"errors without data", "/inventory", says(400, `{"errors":[{"message":"bad"}]}`), `{ product(upc: "p1") { inStock } }`,
			`{"errors":[{"message":"bad","path":["product","inStock"],E}],"data":{"product":{"inStock":null}}}`,
		},
		{
			"fewer entities", "/inventory", entities(`{"__typename":"Product","inStock":true}`), `{ top { inStock } }`,
			`{"errors":[{"message":"subgraph \"inventory\": there are 1 entities in the response, and 2 were asked for","path":["top",0,"inStock"],E},` +
				`{"message":"subgraph \"inventory\": there are 1 entities in the response, and 2 were asked for","path":["top",1,"inStock"],E}],"data":{"top":[{"inStock":null},{"inStock":null}]}}`,
		},
		{
			"another type", "/inventory", entities(`{"__typename":"User","inStock":true},{"__typename":"Product","inStock":true}`), `{ top { inStock } }`,
			`{"errors":[{"message":"subgraph \"inventory\": an entity is not of the type Product, which was asked for","path":["top",0,"inStock"],E}],"data":{"top":[{"inStock":null},{"inStock":true}]}}`,
		},
		{
			"no object", "/inventory", entities(`{"__typename":"Product","inStock":true},[]`), `{ top { inStock } }`,
			`{"errors":[{"message":"subgraph \"inventory\": an entity is no object","path":["top",1,"inStock"],E}],"data":{"top":[{"inStock":true},{"inStock":null}]}}`,
		},
		{"null is that there is none", "/inventory", entities(`null,{"__typename":"Product","inStock":true}`), `{ top { inStock } }`, `{"data":{"top":[{"inStock":null},{"inStock":true}]}}`},
		{
			"null in non-null", "/logistics", entities(`{"__typename":"Warehouse","trucks":[null]}`), `{ product(upc: "p1") { upc warehouse { trucks { plate } } } }`,
			`{"errors":[{"message":"Cannot return null for non-nullable field 'Query.product.warehouse.trucks'.","path":["product","warehouse","trucks",0],"extensions":{"serviceName":"logistics"}}],"data":{"product":{"upc":"p1","warehouse":null}}}`,
		},
		{
			"a non-null field of a subgraph that is away", "/logistics", says(503, ``), `{ product(upc: "p1") { upc warehouse { trucks { plate } } } }`,
			`{"errors":[{"message":"subgraph \"logistics\": status 503","path":["product","warehouse","trucks"],"extensions":{"serviceName":"logistics"}}],"data":{"product":{"upc":"p1","warehouse":null}}}`,
		},
		{
			"a value of another kind", "/inventory", entities(`{"__typename":"Product","inStock":"yes"}`), `{ product(upc: "p1") { upc inStock } me { name } }`,
			`{"errors":[{"message":"Bool cannot represent non-boolean value: \"\"yes\"\"","path":["product","inStock"],E}],"data":{"product":null,"me":{"name":"Ada"}}}`,
		},
		{
			"a subgraph that others need", "/accounts", says(503, ``), `{ top(first: 1) { reviews { stars writer { parcels } } } }`,
			`{"errors":[{"message":"subgraph \"accounts\": status 503","path":["top",0,"reviews",0,"writer","parcels"],"extensions":{"serviceName":"accounts"}},` +
				`{"message":"subgraph \"accounts\": status 503","path":["top",0,"reviews",1,"writer","parcels"],"extensions":{"serviceName":"accounts"}}],` +
				`"data":{"top":[{"reviews":[{"stars":0,"writer":{"parcels":null}},{"stars":4,"writer":{"parcels":null}}]}]}}`,
		},
		{
			"a subgraph with root fields", "/accounts", says(503, ``), `{ me { name } top(first: 1) { upc } }`,
			`{"errors":[{"message":"subgraph \"accounts\": status 503","path":["me"],"extensions":{"serviceName":"accounts"}}],"data":{"me":null,"top":[{"upc":"p0"}]}}`,
		},
		{
			"an alias that is the name of a key", "/inventory", says(500, ""), `{ product(upc: "p1") { upc: inStock sluice_upc: name } top(first: 1) { upc: warehouse { id: capacity } } }`,
			`{"errors":[{"message":"subgraph \"inventory\": status 500","path":["product","upc"],E},{"message":"subgraph \"inventory\": status 500","path":["top",0,"upc"],E}],` +
				`"data":{"product":{"upc":null,"sluice_upc":"Product 1"},"top":[{"upc":null}]}}`,
		},
		{
			"an error below an alias that is the name of a key", "/accounts", says(200, `{"data":{"me":{"__typename":"User","id":"1","sluice_email":null}},"errors":[{"message":"bad","path":["me","sluice_email"]}]}`),
			`{ me { email: name reviews { body } } }`,
			`{"errors":[{"message":"bad","path":["me","email"],"extensions":{"serviceName":"accounts"}}],"data":{"me":{"email":null,"reviews":[{"body":"text 0"},{"body":"text 3"}]}}}`,
		},
		{
			"an error of a root field", "/accounts", says(200, `{"data":{"me":null},"errors":[{"message":"bad","path":["me"],"extensions":{"serviceName":"x","code":7}}]}`), `{ me { name } top(first: 1) { upc } }`,
			`{"errors":[{"message":"bad","path":["me"],"extensions":{"code":7,"serviceName":"accounts"}}],"data":{"me":null,"top":[{"upc":"p0"}]}}`,
		},
	} {
		before := w.answers[c.at]
		w.does(c.at, c.answer)
		want := strings.ReplaceAll(c.want, "E}", `"extensions":{"serviceName":"inventory"}}`)
		if status, got := w.ask(c.query); status != 200 || got != want {
			t.Errorf("%s\n got %d %s\nwant %s", c.name, status, got, want)
		}
		w.does(c.at, before)
	}
}

func says(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// sent returns what a subgraph was sent: operations with their variables, and headers.
func (w *world) sent(path string) (bodies []string, headers []http.Header) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		if c.line == "POST "+path {
			bodies, headers = append(bodies, c.body), append(headers, c.header)
		}
	}
	w.calls = nil
	slices.Sort(bodies)
	return bodies, headers
}

func TestEqualEntitiesAreAskedForOnce(t *testing.T) {
	for _, oneByOne := range []bool{false, true} {
		w := newShop(t, func(api *definition.API) { api.GraphQL.Supergraph.DisableQueryBatching = oneByOne })
		_, got := w.ask(`{ reviews { author { parcels } } }`)
		if want := `{"data":{"reviews":[{"author":{"parcels":0}},{"author":{"parcels":5}},{"author":{"parcels":10}},{"author":{"parcels":0}},{"author":{"parcels":5}}]}}`; got != want {
			t.Errorf("got %s", got)
		}
		bodies, _ := w.sent("/logistics")
		const one = `{"query":"query($representations: [_Any!]!){_entities(representations: $representations){... on User {__typename parcels}}}","variables":{"representations":[`
		ada, bob, cem := `{"__typename":"User","email":"ada@x.org"}`, `{"__typename":"User","email":"bob@x.org"}`, `{"__typename":"User","email":"cem@x.org"}`
		want := []string{one + ada + "," + bob + "," + cem + "]}}"}
		if oneByOne {
			want = []string{one + ada + "]}}", one + bob + "]}}", one + cem + "]}}"}
		}
		if !slices.Equal(bodies, want) {
			t.Errorf("one by one %t: asked\n%s", oneByOne, strings.Join(bodies, "\n"))
		}
	}
}

func TestSubgraphsThatAreSlowOrAwayAreSaid(t *testing.T) {
	w := newShop(t)
	w.does("/inventory", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for _, c := range []struct {
		change func(*definition.API)
		want   string
	}{
		{func(api *definition.API) { api.Proxy.Transport = &definition.Transport{ResponseTimeout: 0.2} }, `no answer within 200ms`},
		{func(api *definition.API) { api.GraphQL.Supergraph.Subgraphs[3].URL = "http://127.0.0.1:1/" }, `it cannot be reached`},
	} {
		w.serve(c.want, supergraphOf(w.sources, shop), c.change)
		want := `{"errors":[{"message":"subgraph \"inventory\": ` + c.want + `","path":["product","inStock"],"extensions":{"serviceName":"inventory"}}],"data":{"product":{"upc":"p1","inStock":null}}}`
		if _, got := w.ask(`{ product(upc: "p1") { upc inStock } }`); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

// Equal entities share a representation, so that an error of one is said wherever the field
// is null.
func TestErrorsOfEqualEntities(t *testing.T) {
	w := newShop(t)
	w.does("/logistics", says(200, `{"data":{"_entities":[{"__typename":"User","parcels":1},{"__typename":"User","parcels":null},{"__typename":"User","parcels":3}]},"errors":[{"message":"bad","path":["_entities",1,"parcels"]}]}`))
	_, got := w.ask(`{ reviews { author { parcels } } }`)
	const bad = `{"message":"bad","path":["reviews",%d,"author","parcels"],"extensions":{"serviceName":"logistics"}}`
	if want := `{"errors":[` + fmt.Sprintf(bad, 1) + "," + fmt.Sprintf(bad, 4) + `],"data":{"reviews":[{"author":{"parcels":1}},{"author":{"parcels":null}},{"author":{"parcels":3}},{"author":{"parcels":1}},{"author":{"parcels":null}}]}}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// With batches off, the failure of one request is that of one entity.
func TestEntitiesThatAreAskedForOneByOneFailOneByOne(t *testing.T) {
	w := newShop(t, func(api *definition.API) { api.GraphQL.Supergraph.DisableQueryBatching = true })
	w.does("/inventory", func(w http.ResponseWriter, r *http.Request) {
		switch body, _ := io.ReadAll(r.Body); {
		case strings.Contains(string(body), `"p1"`):
			w.WriteHeader(500)
		case strings.Contains(string(body), `"p2"`):
			_, _ = io.WriteString(w, `{"data":{"_entities":[null]},"errors":[{"message":"bad","path":["_entities",0,"inStock"]}]}`)
		default:
			_, _ = io.WriteString(w, `{"data":{"_entities":[{"__typename":"Product","inStock":true}]}}`)
		}
	})
	_, got := w.ask(`{ top(first: 4) { inStock } }`)
	for _, want := range []string{
		`{"message":"subgraph \"inventory\": status 500","path":["top",1,"inStock"],"extensions":{"serviceName":"inventory"}}`,
		`{"message":"bad","path":["top",2,"inStock"],"extensions":{"serviceName":"inventory"}}`,
		`"data":{"top":[{"inStock":true},{"inStock":null},{"inStock":null},{"inStock":true}]}}`,
	} {
		if !strings.Contains(got, want) || strings.Count(got, "message") != 2 {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

func TestListsOfEntitiesAreBounded(t *testing.T) {
	w := newShop(t)
	var list []string
	for i := range 10_001 {
		list = append(list, fmt.Sprintf(`{"__typename":"Product","upc":"p%d"}`, i))
	}
	w.does("/products", says(200, `{"data":{"top":[`+strings.Join(list, ",")+`]}}`))
	w.asked()
	_, got := w.ask(`{ top { inStock } }`)
	const failed = `{"message":"subgraph \"inventory\": there are more than 10000 entities in a list","path":["top",%d,"inStock"],"extensions":{"serviceName":"inventory"}}`
	if !strings.HasPrefix(got, `{"errors":[`+fmt.Sprintf(failed, 0)) || strings.Count(got, "message") != 100 || strings.Count(got, `{"inStock":null}`) != 10_001 {
		t.Errorf("got %.500s", got)
	}
	if asked := w.asked(); len(asked) != 1 {
		t.Errorf("%d requests", len(asked))
	}
}

func TestHeadersOfSubgraphs(t *testing.T) {
	for _, strip := range []bool{false, true} {
		w := newShop(t, func(api *definition.API) {
			api.UseKeyless, api.StripAuthData = false, strip
			s := api.GraphQL.Supergraph
			s.GlobalHeaders = map[string]string{"X-Path": "at $svc_context.path", "x-own": "global"}
			s.Subgraphs[2].Headers = map[string]string{"X-Own": "reviews"}
		})
		const key = "the-key"
		w.Put(key, &definition.Session{AccessRights: map[string]*definition.Access{"graph": {APIID: "graph"}}})
		if status, got := w.post(`{"query":"{ me { name reviews { body } } }"}`, http.Header{"Authorization": {key}, "X-Other": {"no"}}); status != 200 || strings.Contains(got, "errors") {
			t.Fatal(status, got)
		}
		w.mu.Lock()
		for _, c := range w.calls {
			want := map[string]string{"X-Path": "at /graph/", "X-Own": "global", "X-Other": "", "Authorization": key}
			if c.line == "POST /reviews" {
				want["X-Own"] = "reviews"
			}
			if strip {
				want["Authorization"] = ""
			}
			for name, value := range want {
				if got := strings.Join(c.header[name], ","); got != value {
					t.Errorf("%s: %s is %q, want %q", c.line, name, got, value)
				}
			}
		}
		w.mu.Unlock()
	}
}

func TestExplanationsShowThePlan(t *testing.T) {
	w := newShop(t)
	w.asked()
	q, err := explain.Parse([]byte(`{"method":"POST","url":"/graph/","headers":{"Content-Type":"application/json"},"body":` +
		quoted(`{"query":"{ me { name parcels } product(upc: \"p1\") { inStock name warehouse { capacity } } }"}`) + `}`))
	if err != nil {
		t.Fatal(err)
	}
	report := w.Explain(q)
	last := report.Steps[len(report.Steps)-1]
	var got []string
	for _, f := range last.Facts {
		got = append(got, f.From+", "+f.Rule+": "+f.Value+" by "+f.Seen)
	}
	slices.Sort(got)
	want := []string{
		"step 1, subgraph accounts: me by {me {name __typename email}}",
		"step 1, subgraph products: product by query($v0: String!, $v1: Boolean){product(upc: $v0){name(upper: $v1) __typename upc}}",
		"step 2, subgraph inventory: product.inStock, product.warehouse by query($representations: [_Any!]!){_entities(representations: $representations){... on Product {__typename inStock warehouse {__typename id}}}}",
		"step 2, subgraph logistics: me.parcels by query($representations: [_Any!]!){_entities(representations: $representations){... on User {__typename parcels}}}",
		"step 3, subgraph logistics: product.warehouse.capacity by query($representations: [_Any!]!){_entities(representations: $representations){... on Warehouse {__typename capacity}}}",
	}
	if !report.Outcome.Allowed || last.Said != "answered from subgraphs" || !slices.Equal(got, want) {
		t.Errorf("%v, %s\n%s\nwant\n%s", report.Outcome, last.Said, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if asked := w.asked(); len(asked) != 0 {
		t.Errorf("asked %q", asked)
	}
}

// The schema of clients is merged_sdl. A gateway that gets none, as from a file, composes
// the subgraphs itself.
func TestASupergraphIsComposedIfItIsNotYet(t *testing.T) {
	w := newShop(t)
	const query = `{ __type(name: "User") { name } me { parcels } }`
	want := `{"data":{"__type":{"name":"User"},"me":{"parcels":0}}}`
	if status, got := w.ask(query); status != 200 || got != want {
		t.Errorf("composed by the gateway: %d %s", status, got)
	}
	w.serve("2", supergraphOf(w.sources, shop), func(api *definition.API) {
		api.GraphQL.Supergraph.MergedSDL = `type Query { me: User } type User { id: ID! }`
	})
	if status, got := w.ask(`{ me { id } }`); status != 200 || got != `{"data":{"me":{"id":"1"}}}` {
		t.Errorf("with merged_sdl: %d %s", status, got)
	}
	if status, got := w.ask(query); status != 400 || !strings.Contains(got, "parcels") {
		t.Errorf("a field that merged_sdl lacks: %d %s", status, got)
	}
	for _, c := range []struct {
		change func(*definition.GraphQLSupergraph)
		want   string
	}{
		{func(s *definition.GraphQLSupergraph) {
			s.MergedSDL = `type Query { me: User other: Int } type User { id: ID! }`
		}, "graphql.supergraph.merged_sdl: has the field Query.other, which no subgraph has"},
		{func(s *definition.GraphQLSupergraph) { s.Subgraphs[1].SDL = `type Query { me: Int }` }, "graphql.supergraph.subgraphs[0].sdl: "},
		{func(s *definition.GraphQLSupergraph) { s.Subgraphs[1].SDL, s.Subgraphs[1].APIID = "", "products" }, "graphql.supergraph.subgraphs[1].sdl: is not there; only the admin fills in"},
	} {
		api := supergraphOf(w.sources, shop)
		c.change(api.GraphQL.Supergraph)
		failed := w.Gateway.Apply(&definition.Bundle{Revision: c.want, APIs: []*definition.API{api}})
		if text := fmt.Sprint(failed); !strings.Contains(text, c.want) {
			t.Errorf("got %.300s\nwant %s", text, c.want)
		}
	}
}
