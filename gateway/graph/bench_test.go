package graph

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/wundergraph/astjson"
	gds "github.com/wundergraph/graphql-go-tools/v2/pkg/engine/datasource/graphql_datasource"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/plan"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/resolve"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

const benchSchema = `type Query { users(first: Int): [User!]! } type User { id: ID! name: String }`

func benchGraph(b *testing.B, url string) *Graph {
	e := New(Options{Plans: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	b.Cleanup(e.Close)
	g, err := e.Compile(&definition.API{ID: "a", UseKeyless: true, GraphQL: &definition.GraphQL{
		Enabled: true, ExecutionMode: definition.ModeDataGraph, Schema: benchSchema,
		Engine: &definition.GraphQLEngine{DataSources: []definition.GraphQLDataSource{{
			Kind: "GraphQL", Name: "users", RootFields: []definition.GraphQLRootFields{{Type: "Query", Fields: []string{"users"}}},
			Config: definition.GraphQLSourceConfig{URL: url},
		}}},
	}}, newCalls(b))
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// BenchmarkAnswer compares an operation that is planned already with the library alone: the
// same request to the source by net/http, the same plan, and no printing of operations,
// headers, bounds and checks.
func BenchmarkAnswer(b *testing.B) {
	const answer = `{"data":{"users":[{"id":"1","name":"Ada"},{"id":"2","name":"Bob"},{"id":"3","name":"Eve"}]}}`
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	b.Cleanup(source.Close)
	g := benchGraph(b, source.URL)
	besideLibrary(b, g, `query($n: Int) { users(first: $n) { id name } }`, answer, libraryPlan(b, g, source.URL))
}

// besideLibrary measures an operation with the variable n through the gateway's code, its plan
// from the cache, and a plan of the library alone for the same operation.
func besideLibrary(b *testing.B, g *Graph, operation, answer string, p *resolve.GraphQLResponse) {
	text, variables := []byte(operation), []byte(`{"n":3}`)
	b.Run("gateway", func(b *testing.B) {
		ex := &pipeline.Exchange{Call: new(wire.Call)}
		b.ReportAllocs()
		for b.Loop() {
			if out := g.answer(b.Context(), ex, text, nil, variables); string(out) != answer {
				b.Fatal(string(out))
			}
		}
	})
	b.Run("plan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := g.planFor(text, nil, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			rc := resolve.NewContext(context.Background())
			var err error
			if rc.Variables, err = astjson.ParseBytes([]byte(`{"v0":3}`)); err != nil {
				b.Fatal(err)
			}
			rc.ExecutionOptions.DisableInboundRequestDeduplication = true
			rc.ExecutionOptions.DisableSubgraphRequestDeduplication = true
			var out bytes.Buffer
			if _, err = g.engine.resolver.ArenaResolveGraphQLResponse(rc, p, &out); err != nil || out.String() != answer {
				b.Fatal(err, out.String())
			}
		}
	})
}

// libraryPlan plans the operation for the library's own way to call a source.
func libraryPlan(b *testing.B, g *Graph, url string) *resolve.GraphQLResponse {
	sc, err := gds.NewSchemaConfiguration(schemaText(g.data, nil), nil)
	if err != nil {
		b.Fatal(err)
	}
	s := g.sources["users"]
	md := &plan.DataSourceMetadata{
		RootNodes:  s.nodes(func(do func(schema.FieldID)) { each(s.Fields, do) }),
		ChildNodes: s.nodes(func(do func(schema.FieldID)) { g.data.Below(s.Source, do) }),
	}
	alone := &Graph{engine: g.engine, data: g.data, schema: g.schema, conf: plan.Configuration{Fields: g.fieldConfigurations()}}
	alone.conf.DataSources = []plan.DataSource{librarySource(b, libraryClient(b), "users", url, sc, md)}
	return libraryPlanOf(b, alone, "query O($v0:Int){users(first:$v0){id name}}")
}

func libraryPlanOf(b *testing.B, g *Graph, operation string) *resolve.GraphQLResponse {
	p, _, err := g.plan(operation)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func libraryClient(b *testing.B) *http.Client {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.Cleanup(client.CloseIdleConnections)
	return client
}

// librarySource returns a source that the library itself calls at an address.
func librarySource(b *testing.B, client *http.Client, name, url string, sc *gds.SchemaConfiguration, md *plan.DataSourceMetadata) plan.DataSource {
	factory, err := gds.NewFactory(context.Background(), client, noSubscriptions{})
	if err != nil {
		b.Fatal(err)
	}
	conf, err := gds.NewConfiguration(gds.ConfigurationInput{SchemaConfiguration: sc, Fetch: &gds.FetchConfiguration{URL: url}})
	if err != nil {
		b.Fatal(err)
	}
	source, err := plan.NewDataSourceConfigurationWithName(name, name, plan.PlannerFactory[gds.Configuration](factory), md, conf)
	if err != nil {
		b.Fatal(err)
	}
	return source
}
