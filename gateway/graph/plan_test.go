package graph

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/datasource/httpclient"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/plan"

	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

func newGraph(t *testing.T, plans int) *Graph {
	t.Helper()
	e := New(Options{Plans: plans, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	t.Cleanup(e.Close)
	g, err := e.Compile(&definition.API{ID: "a", UseKeyless: true, GraphQL: &definition.GraphQL{
		Enabled: true, ExecutionMode: definition.ModeDataGraph,
		Schema: `type Query { user(id: ID!, n: Int! = 7, in: In): User } type User { id: ID! friend(of: [Int]): User name: String } input In { a: String = "d" b: [E] } enum E { X Y }`,
		Engine: &definition.GraphQLEngine{DataSources: []definition.GraphQLDataSource{{
			Kind: "GraphQL", Name: "users", RootFields: []definition.GraphQLRootFields{{Type: "Query", Fields: []string{"user"}}},
			Config: definition.GraphQLSourceConfig{URL: "http://x"},
		}}},
	}}, newCalls(t))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func newCalls(t testing.TB) *Calls {
	pools := upstream.NewPools()
	t.Cleanup(pools.Close)
	return &Calls{Pools: pools, Config: upstream.Config{DialTimeout: time.Minute, ResponseTimeout: time.Minute, MaxConns: 100, IdleTimeout: time.Minute}}
}

func TestTextsOfOperations(t *testing.T) {
	g := newGraph(t, 0)
	for _, c := range []struct{ query, given, want, variables string }{
		{`{ user(id: 5) { id } }`, `{}`, `query O($v0:ID!,$v1:Int!){user(id:$v0,n:$v1){id}}`, `{"v0":5,"v1":7}`},
		{
			`query A($i: ID!, $n: Int, $x: String) { a: user(id: $i, n: $n) { ...F } b: user(id: $i, in: {a: $x, b: [X]}) { ...F } } fragment F on User { friend(of: 3) { name } }`, `{"i": "u"}`,
			`query O($v0:ID!,$v1:Int!,$v2:[Int],$v3:Int!,$v4:In){a:user(id:$v0,n:$v1){...on User{friend(of:$v2){name}}} b:user(id:$v0,n:$v3,in:$v4){...on User{friend(of:$v2){name}}}}`,
			`{"v0":"u","v1":7,"v2":3,"v3":7,"v4":{"b":["X"]}}`,
		},
		{`query($x: String = "q\"") { user(id: "1", n: 1, in: {a: $x}) { id } }`, `{}`, `query O($v0:ID!,$v1:Int!,$v2:In){user(id:$v0,n:$v1,in:$v2){id}}`, `{"v0":"1","v1":1,"v2":{"a":"q\""}}`},
		{`query($s: Boolean!) { user(id: 1, n: 1) { id @skip(if: $s) ... @include(if: $s) { name } ... on User @skip(if: true) { name } } }`, `{}`, `query O($v0:ID!,$v1:Int!){user(id:$v0,n:$v1){id}}`, `{"v0":1,"v1":1}`},
	} {
		var doc syntax.Document
		if err := syntax.Parse(&doc, []byte(c.query), syntax.Limits{}); err != nil {
			t.Fatal(err)
		}
		given := map[string]rawValue{}
		if c.given != `{}` {
			given["i"] = rawValue(`"u"`)
		}
		got := g.printText(&doc, &doc.Operations[0], map[string]bool{})
		if string(got.operation) != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.query, got.operation, c.want)
		}
		if variables := appendObject(nil, got.arguments, given); string(variables) != c.variables {
			t.Errorf("%s\n got %s\nwant %s", c.query, variables, c.variables)
		}
		if _, _, err := g.plan(string(got.operation)); err != nil {
			t.Errorf("%s: %v", c.query, err)
		}
	}
}

func TestAPanicOfThePlannerIsAnError(t *testing.T) {
	g := newGraph(t, 1<<20)
	g.conf.DataSources = []plan.DataSource{nil}
	for range 2 { // planned, and from the cache
		if got := string(g.answer(t.Context(), nil, []byte(`{ user(id: 1) { id } }`), nil, nil)); got != `{"errors":[{"message":"the operation cannot be planned"}],"data":null}` {
			t.Errorf("got %s", got)
		}
	}
}

type panicking struct{}

func (panicking) Load(context.Context, http.Header, []byte) ([]byte, error) { panic("x") }

func (panicking) LoadWithFiles(context.Context, http.Header, []byte, []*httpclient.FileUpload) ([]byte, error) {
	panic("x")
}

func TestAPanicOfARequestIsAnError(t *testing.T) {
	r := &run{graph: newGraph(t, 0)}
	ctx := context.WithValue(t.Context(), runKey{}, r)
	if _, err := (guarded{DataSource: panicking{}}).Load(ctx, nil, nil); err == nil || err.Error() != "an internal error" {
		t.Errorf("got %v", err)
	}
}

func TestTheCacheOfPlansIsBounded(t *testing.T) {
	g := newGraph(t, 1<<20)
	const n = 400
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range n {
		query := fmt.Sprintf(`{ a%d: user(id: %d) { id %s } }`, i, i, strings.Repeat("friend { name id ", 6)+strings.Repeat("}", 6))
		if _, err := g.planFor([]byte(query), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	entries, size := g.engine.plans.Size()
	heap := int(after.HeapAlloc) - int(before.HeapAlloc)
	t.Logf("%d entries, %d bytes said, %d bytes of heap", entries, size, heap)
	if entries == n || size > 1<<20 || heap > 3<<20 {
		t.Errorf("%d entries of %d bytes take %d bytes", entries, size, heap)
	}
	runtime.KeepAlive(g)
}

func TestPlansOfGraphsThatAreGoneAreDropped(t *testing.T) {
	g := newGraph(t, 1<<20)
	if _, err := g.planFor([]byte(`{ user(id: 1) { id } }`), nil, nil); err != nil {
		t.Fatal(err)
	}
	g.engine.Keep(nil)
	if entries, _ := g.engine.plans.Size(); entries != 0 {
		t.Errorf("%d plans are left", entries)
	}
}
