package bench

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/bench/answer"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// joining returns a round with one operation on a supergraph, which joins entities of two
// subgraphs.
func joining(tb testing.TB) func() {
	w := newWorld(tb, settings{})
	url := "http://" + testenv.Origin(tb, func(ctx *fasthttp.RequestCtx) {
		body := answer.Products
		if string(ctx.Path()) == "/reviews" {
			body = answer.Reviews
		}
		ctx.Response.Header.SetContentType("application/json")
		ctx.Response.SetBodyString(body)
	})
	w.add(&definition.API{
		ID: "join", Name: "join", OrgID: "bench", UseKeyless: true, Proxy: definition.Proxy{ListenPath: "/join/"},
		GraphQL: &definition.GraphQL{Enabled: true, ExecutionMode: definition.ModeSupergraph, Supergraph: &definition.GraphQLSupergraph{Subgraphs: []definition.GraphQLMember{
			{Name: "products", URL: url + "/products", SDL: `type Query { top: [Product!]! } type Product @key(fields: "upc") { upc: ID! name: String! }`},
			{Name: "reviews", URL: url + "/reviews", SDL: `extend type Product @key(fields: "upc") { upc: ID! @external stars: Int }`},
		}}},
	})
	w.apply()
	body, _ := json.Marshal(map[string]string{"query": "{ top { upc name stars } }"})
	request := fmt.Appendf(nil, "POST /join/ HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	c, want := w.client(), &answer.Want{Status: 200, Body: []byte(answer.Joined)}
	for range 200 {
		c.round(request, want)
	}
	return func() { c.round(request, want) }
}

// joinBudget is what an operation with two requests to subgraphs may allocate. Half of it is
// the library's, which puts the response together.
const joinBudget = 95

func TestAJoinAllocatesWithinItsBudget(t *testing.T) {
	if race.Enabled {
		t.Log("the race detector drops pooled objects at random: nothing to measure")
		return
	}
	if n := allocations(joining(t)); n > joinBudget {
		t.Errorf("%.1f allocations per operation, want at most %d", n, joinBudget)
	}
}

// BenchmarkJoin measures a repeated operation on a supergraph.
func BenchmarkJoin(b *testing.B) { perRequest(b, joining(b)) }
