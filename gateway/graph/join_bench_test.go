package graph

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/plan"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/resolve"

	"github.com/sluicegate/sluice/internal/datagraph"
	"github.com/sluicegate/sluice/internal/definition"
)

// joinGraph returns a supergraph of two subgraphs at an address.
func joinGraph(b *testing.B, url string) *Graph {
	e := New(Options{Plans: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	b.Cleanup(e.Close)
	api, err := datagraph.Composed(&definition.API{ID: "a", UseKeyless: true, GraphQL: &definition.GraphQL{
		Enabled: true, ExecutionMode: definition.ModeSupergraph,
		Supergraph: &definition.GraphQLSupergraph{Subgraphs: []definition.GraphQLMember{
			{Name: "users", URL: url + "/users", SDL: `type Query { users(first: Int): [User!]! } type User @key(fields: "id") { id: ID! name: String }`},
			{Name: "scores", URL: url + "/scores", SDL: `extend type User @key(fields: "id") { id: ID! @external score: Int }`},
		}},
	}})
	if err != nil {
		b.Fatal(err)
	}
	g, err := e.Compile(api, newCalls(b))
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// BenchmarkJoin compares an operation that is planned already, with one join of entities of
// two subgraphs, with the library alone: the same plan, the same requests by net/http.
func BenchmarkJoin(b *testing.B) {
	const answer = `{"data":{"users":[{"name":"Ada","score":1},{"name":"Bob","score":2},{"name":"Eve","score":3}]}}`
	answers := map[string]string{
		"/users":  `{"data":{"users":[{"name":"Ada","__typename":"User","id":"1"},{"name":"Bob","__typename":"User","id":"2"},{"name":"Eve","__typename":"User","id":"3"}]}}`,
		"/scores": `{"data":{"_entities":[{"__typename":"User","score":1},{"__typename":"User","score":2},{"__typename":"User","score":3}]}}`,
	}
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, answers[r.URL.Path]) }))
	b.Cleanup(source.Close)
	g := joinGraph(b, source.URL)
	besideLibrary(b, g, `query($n: Int) { users(first: $n) { name score } }`, answer, libraryJoin(b, g, source.URL))
}

// libraryJoin plans the operation for the library's own way to call subgraphs.
func libraryJoin(b *testing.B, g *Graph, url string) *resolve.GraphQLResponse {
	alone := &Graph{engine: g.engine, data: g.data, schema: g.schema, conf: plan.Configuration{Fields: g.fieldConfigurations()}}
	client := libraryClient(b)
	for name, s := range g.sources {
		sc, err := s.federated()
		if err != nil {
			b.Fatal(err)
		}
		md, err := s.nodesOf()
		if err != nil {
			b.Fatal(err)
		}
		alone.conf.DataSources = append(alone.conf.DataSources, librarySource(b, client, name, url+"/"+name, sc, md))
	}
	return libraryPlanOf(b, alone, "query O($v0:Int){users(first:$v0){name score}}")
}
