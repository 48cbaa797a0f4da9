package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/compose"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/gatewaytest"
)

// A subgraph takes what supergraphs ask of it, through other APIs unless it says that it is
// not internal.
func TestSubgraphsAnswerSupergraphs(t *testing.T) {
	schema, problems := compose.Served(compose.Subgraph{Name: "users", SDL: `extend type User @key(fields: "id") { id: ID! @external age: Int }`})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	g := gatewaytest.Start(t, gatewaytest.Options{})
	origin := testenv.Origin(t, func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString(`{"data":{"asked":1}}`) })
	subgraph := `{"api_id":%[1]q,"use_keyless":true%[3]s,"proxy":{"listen_path":"/%[1]s/","target_url":"http://%[2]s"},
		"graphql":{"enabled":true,"execution_mode":"subgraph","schema":%[4]q}}`
	bundle := &definition.Bundle{Revision: "1"}
	for _, text := range []string{
		fmt.Sprintf(subgraph, "inner", origin, "", schema),
		fmt.Sprintf(subgraph, "open", origin, `,"internal":false`, schema),
		`{"api_id":"outer","use_keyless":true,"proxy":{"listen_path":"/outer/","target_url":"svc://inner"}}`,
	} {
		api, err := definition.ParseAPI([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		bundle.APIs = append(bundle.APIs, api)
	}
	if failed := g.Apply(bundle); len(failed) > 0 {
		t.Fatal(failed)
	}
	const entities = `{"query":"query($r: [_Any!]!) { _entities(representations: $r) { ... on User { age } } _service { sdl } }","variables":{"r":[{"__typename":"User","id":"1"}]}}`
	for _, c := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/open/", entities, 200, `{"data":{"asked":1}}`},
		{"/outer/", entities, 200, `{"data":{"asked":1}}`},
		{"/inner/", entities, 404, ""},
		{"/open/", `{"query":"{ nope }"}`, 400, "nope"},
	} {
		r, err := http.Post("http://"+g.Addr+c.path, "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil || r.StatusCode != c.status || !strings.Contains(string(body), c.says) {
			t.Errorf("%s %s: %d %s, %v", c.path, c.body, r.StatusCode, body, err)
		}
	}
}
