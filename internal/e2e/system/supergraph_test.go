package system

import (
	"fmt"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// joinsSubgraphs saves two subgraphs and what they compose to, and asks for fields of both:
// they are called within the gateway.
func (s *split) joinsSubgraphs(t *testing.T) {
	s = s.in(t)
	answering := func(answer string) string {
		return "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) {
			ctx.SetContentType("application/json")
			ctx.SetBodyString(answer)
		})
	}
	subgraph := func(id, sdl, answer string) object {
		def := rig.GraphDef(id, answering(answer), true, object{"execution_mode": "subgraph", "subgraph": object{"sdl": sdl}})
		delete(def["graphql"].(object), "schema")
		s.rest.Do("POST", "/api/apis", def)
		return object{"name": id, "api_id": id}
	}
	members := []object{
		subgraph("people", `type Query { me: Person } type Person @key(fields: "id") { id: ID! name: String }`, `{"data":{"me":{"name":"Ada","__typename":"Person","id":"1"}}}`),
		subgraph("orders", `extend type Person @key(fields: "id") { id: ID! @external orders: [String!] }`, `{"data":{"_entities":[{"__typename":"Person","orders":["a book"]}]}}`),
	}
	def := rig.GraphDef("joined", "", false, object{"execution_mode": "supergraph", "supergraph": object{"subgraphs": members}})
	delete(def["graphql"].(object), "schema")
	s.rest.Do("POST", "/api/apis", def)
	if got := s.rest.Do("GET", "/api/apis/joined", nil); !strings.Contains(got.Body, "orders: [String!]") {
		t.Errorf("the schema of clients is not stored: %s", got)
	}
	key := s.rest.NewKey(object{"access_rights": rig.AccessTo("joined")})
	for i, g := range s.gateways {
		g.Await("the supergraph", func() error {
			got, err := rig.Send("POST", g.Traffic+"/joined/", rig.QueryBody("{ me { name orders } }"), "Content-Type", rig.JSONMedia, "Authorization", key)
			if want := `{"data":{"me":{"name":"Ada","orders":["a book"]}}}`; err == nil && got.Body != want {
				err = fmt.Errorf("gateway %d: %s, want %s", i+1, got, want)
			}
			return err
		})
		if got := rig.Call(t, "POST", g.Traffic+"/joined/", rig.QueryBody("{ me { name } }"), "Content-Type", rig.JSONMedia); got.Status != 401 {
			t.Errorf("without a key: %s", got)
		}
		if got := rig.Call(t, "POST", g.Traffic+"/people/", rig.QueryBody("{ me { name } }"), "Content-Type", rig.JSONMedia); got.Status != 404 {
			t.Errorf("a subgraph, which is internal: %s", got)
		}
	}
}
