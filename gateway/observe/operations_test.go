package observe

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/usage"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// shop is an API whose schema has the fields Query.me and User.name.
func shop(t testing.TB) *pipeline.API {
	t.Helper()
	s, err := schema.Load(`type Query { me: User } type User { name: String }`)
	if err != nil {
		t.Fatal(err)
	}
	return &pipeline.API{Definition: &definition.API{ID: "shop"}, Schema: s}
}

// me is an operation that reads both.
func me(api *pipeline.API, kind syntax.OperationKind, name string, depth uint16) *validate.Facts {
	fields := make([]schema.FieldID, 0, 2)
	for id, f := range api.Schema.Fields {
		if f.Name == "me" || f.Name == "name" && api.Schema.Types[f.Owner].Name == "User" {
			fields = append(fields, schema.FieldID(id))
		}
	}
	return &validate.Facts{Kind: kind, Name: name, Depth: depth, Fields: fields}
}

// asked is an exchange that asked for operations.
func asked(api *pipeline.API, ex *pipeline.Exchange, operations ...*validate.Facts) *pipeline.Exchange {
	ex.API, ex.KeyName, ex.Operations = api, "0123456789ab", operations
	return ex
}

// observing returns an observer that counts operations and shows their metrics.
func observing(u *usage.Operations) *Observer {
	o := New(Options{Log: quiet(), Operations: u})
	o.Registry().MustRegister(u.Metrics())
	return o
}

func TestOperationsAreCountedByTypeNameAndResult(t *testing.T) {
	u := usage.NewOperations()
	o, api := observing(u), shop(t)
	m := o.NewMeter("shop")
	query := me(api, syntax.Query, "Me", 2)
	m.Done(asked(api, exchange("POST", "/", 200), query, me(api, syntax.Mutation, "", 2)))
	m.Done(asked(api, exchange("POST", "/", 200), query))
	m.Done(asked(api, exchange("POST", "/", 502), query))
	m.Done(asked(api, rejected(pipeline.ReasonUpstreamTimeout, 504, ""), query))
	m.Done(asked(api, rejected(pipeline.ReasonClientGone, 499, ""), query))
	m.Done(asked(api, rejected(pipeline.ReasonDepthLimit, 403, ""), query, me(api, syntax.Subscription, "Unseen", 25)))
	m.Done(asked(api, rejected(pipeline.ReasonGraphQLInvalid, 400, "")))
	text := scrape(t, o)
	expect(t, text,
		`sluice_graphql_operations_total{api="shop",operation="Me",result="ok",type="query"} 2`,
		`sluice_graphql_operations_total{api="shop",operation="Me",result="failed",type="query"} 3`,
		`sluice_graphql_operations_total{api="shop",operation="Me",result="refused",type="query"} 1`,
		`sluice_graphql_operations_total{api="shop",operation="",result="ok",type="mutation"} 1`,
		`sluice_graphql_operations_total{api="shop",operation="other",result="refused",type="subscription"} 1`,
		`sluice_graphql_depth_bucket{api="shop",le="1"} 0`,
		`sluice_graphql_depth_bucket{api="shop",le="2"} 7`,
		`sluice_graphql_depth_bucket{api="shop",le="20"} 7`,
		`sluice_graphql_depth_bucket{api="shop",le="+Inf"} 8`,
		`sluice_graphql_depth_sum{api="shop"} 39`,
		`sluice_graphql_usage_dropped_total{api="shop"} 0`,
	)
	if strings.Contains(text, "Unseen") {
		t.Error("a name that was never accepted is shown")
	}
	got := u.Fields("shop", usage.FieldFilter{Max: 9, Keys: 9})
	if len(got.Fields) != 2 || got.Fields[0].Count != 6 || got.Fields[0].Keys[0].Key != "0123456789ab" {
		t.Errorf("field usage %+v", got)
	}
	o.KeepOperations([]*pipeline.API{api})
	if got := u.Fields("shop", usage.FieldFilter{}); got.Total != 2 {
		t.Errorf("%d fields after a reload", got.Total)
	}
	o.KeepOperations(nil)
	o.Drop([]string{"shop"})
	if got := u.Fields("shop", usage.FieldFilter{}); got.Total != 0 || strings.Contains(scrape(t, o), `"shop"`) {
		t.Error("the removed API is still there")
	}
}

// An API that stops speaking GraphQL and takes it up again keeps its meter, and
// begins anew to count operations.
func TestOperationsAreCountedAgainAfterGraphQLWasOffForAWhile(t *testing.T) {
	u := usage.NewOperations()
	o, api := observing(u), shop(t)
	m := o.NewMeter("shop")
	for _, during := range [][]*pipeline.API{{api}, nil, {api}} {
		o.KeepOperations(during)
		if len(during) == 0 {
			continue
		}
		m.Done(asked(api, exchange("POST", "/", 200), me(api, syntax.Query, "Me", 2)))
		if got := u.Fields("shop", usage.FieldFilter{}); got.Total != 2 {
			t.Errorf("%d fields, want 2", got.Total)
		}
		expect(t, scrape(t, o), `sluice_graphql_operations_total{api="shop",operation="Me",result="ok",type="query"} 1`)
	}
}

func TestNamesOfOperationsAreBounded(t *testing.T) {
	o, api := observing(usage.NewOperations()), shop(t)
	m := o.NewMeter("shop")
	m.Done(asked(api, exchange("POST", "/", 200), me(api, syntax.Query, "other", 2)))
	long := strings.Repeat("x", 1000)
	for i := range 10_000 {
		m.Done(asked(api, rejected(pipeline.ReasonFieldRestricted, 403, ""), me(api, syntax.Query, fmt.Sprint("Refused", i), 2)))
		m.Done(asked(api, exchange("POST", "/", 200), me(api, syntax.Query, fmt.Sprintf("q%d%s", i, long), 2)))
	}
	var series int
	for line := range strings.Lines(scrape(t, o)) {
		if !strings.HasPrefix(line, "sluice_graphql_operations_total{") {
			continue
		}
		series++
		if _, name, _ := strings.Cut(line, `operation="`); strings.IndexByte(name, '"') > 64 {
			t.Errorf("a name of more than 64 bytes: %s", line)
		}
	}
	if series != 202 {
		t.Errorf("%d series, want 200 and the others by result", series)
	}
	expect(t, scrape(t, o),
		`sluice_graphql_operations_total{api="shop",operation="other",result="ok",type="query"} 9801`,
		`sluice_graphql_operations_total{api="shop",operation="other",result="refused",type="query"} 10000`,
	)
}

func TestALineNamesTheOperation(t *testing.T) {
	api := shop(t)
	got := lineOf(t, asked(api, exchange("POST", "/", 200), me(api, syntax.Mutation, "Me", 2)), 200)
	if got["operation"] != "Me" || got["operation_type"] != "mutation" || got["operations"] != nil {
		t.Errorf("got %v", got)
	}
	got = lineOf(t, asked(api, exchange("POST", "/", 200), me(api, syntax.Query, "", 2), me(api, syntax.Query, "B", 2)), 200)
	if got["operation"] != nil || got["operation_type"] != "query" || got["operations"] != 2. {
		t.Errorf("got %v", got)
	}
	hostile := strings.Repeat("\"\n\xff\u2028", 100)
	got = lineOf(t, asked(api, exchange("POST", "/", 200), me(api, syntax.Query, hostile, 2)), 200)
	if name, _ := got["operation"].(string); !strings.HasPrefix(name, "\"\n\uFFFD\u2028\"") || len(name) > 200 {
		t.Errorf("got %q", name)
	}
	if got = lineOf(t, exchange("GET", "/", 200), 200); got["operation_type"] != nil {
		t.Errorf("an operation of no GraphQL API: %v", got)
	}
}

func TestCountingOperationsDoesNotAllocate(t *testing.T) {
	access := newAccessLog(keepOpen{&strings.Builder{}}, AccessOptions{SampleOK: 1}, quiet())
	o, api := New(Options{Log: quiet(), Access: access, Operations: usage.NewOperations()}), shop(t)
	m := o.NewMeter("shop")
	good := asked(api, exchange("POST", "/shop/", 200), me(api, syntax.Query, "Me", 2), me(api, syntax.Mutation, "", 30))
	bad := asked(api, rejected(pipeline.ReasonDepthLimit, 403, ""), me(api, syntax.Query, "New", 2))
	m.Done(good)
	m.Done(bad)
	n := testing.AllocsPerRun(1000, func() {
		access.block = access.block[:0] // nobody writes here
		m.Done(good)
		m.Done(bad)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkOperations(b *testing.B) {
	o, api := New(Options{Log: quiet(), Operations: usage.NewOperations()}), shop(b)
	m := o.meter("shop")
	ex := asked(api, exchange("POST", "/shop/", 200), me(api, syntax.Query, "Me", 2))
	one := observed{ex: ex, status: 200}
	b.ReportAllocs()
	for b.Loop() {
		m.countOperations(&one)
	}
}
