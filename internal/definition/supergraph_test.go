package definition

import (
	"encoding/json"
	"strings"
	"testing"
)

// supergraph is an API that is composed of subgraphs, with more members of the supergraph.
func supergraph(subgraphs, more string) string {
	return `{"api_id": "s", "use_keyless": true, "proxy": {"listen_path": "/s/"},
		"graphql": {"enabled": true, "execution_mode": "supergraph", "supergraph": {"subgraphs": ` + subgraphs + more + `}}}`
}

func TestSupergraphProblemsSayWhatWouldBeRight(t *testing.T) {
	const at = "graphql.supergraph.subgraphs"
	for _, c := range []struct{ subgraphs, more, want string }{
		{`[]`, ``, at + `: must have at least one subgraph, such as {"name": "orders", "url": "http://orders.example/graphql", "sdl": "type Query { orders: [ID] }"}`},
		{`[{"name": "a", "url": "http://a", "sdl": "x"}, {"name": "a", "api_id": "a"}]`, ``, at + "[1].name: is the name of another subgraph; names are unique in a supergraph"},
		{`[{"url": "http://a", "sdl": "x"}]`, ``, at + "[0].name: must be a name of at most 256 bytes, such as orders"},
		{`[{"name": "a", "sdl": "x"}]`, ``, at + "[0].url: is required: an address such as https://upstream.example:8443/base"},
		{`[{"name": "a", "url": "ftp://a", "sdl": "x"}]`, ``, at + "[0].url: must begin with http:// or https://"},
		{`[{"name": "a", "url": "svc://", "sdl": "x"}]`, ``, at + "[0].url: must name an API behind svc://, as in svc://orders/v2: "},
		{`[{"name": "a", "url": "http://a", "sdl": " "}]`, ``, at + "[0].sdl: is required where api_id is not set: the schema of the subgraph in SDL"},
		{`[{"name": "a", "api_id": "a", "subscription_type": "ws"}]`, ``, at + `[0].subscription_type: must be "graphql-ws", "graphql-transport-ws" or "sse"`},
		{`[{"name": "a", "api_id": "a", "headers": {"Host": "x"}}]`, ``, at + `[0].headers["Host"]: must be left out: the gateway writes this header itself`},
		{`[{"name": "a", "api_id": "a"}]`, `, "global_headers": {"a b": "x"}`, `graphql.supergraph.global_headers["a b"]: must be named as a header, such as X-Api-Key`},
		{`[{"name": "a", "api_id": "a"}]`, `, "global_headers": [{"key": "a", "value": "b"}]`, `graphql.supergraph.global_headers: must be an object, not an array`},
		{"[" + strings.Repeat(`{"name": "a", "api_id": "a"},`, 1000) + `{"name": "a", "api_id": "a"}]`, ``, at + ": has 1001 entries; at most 1000 are allowed"},
	} {
		got := problemsOf(t, "api", supergraph(c.subgraphs, c.more))
		if len(got) == 0 || len(got) > 1 && len(c.subgraphs) < 1000 || !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%.80s\n got %.300q\nwant %q", c.subgraphs, got, c.want)
		}
	}
	// What is not in use need not be complete.
	if got := problemsOf(t, "api", graphAPI(`, "supergraph": {"subgraphs": [{"name": "a"}]}`)); got != nil {
		t.Errorf("%q", got)
	}
}

func TestSupergraphsHaveNoUpstream(t *testing.T) {
	const members = `[{"name": "a", "url": "http://a", "sdl": "x"}]`
	for _, c := range []struct{ from, to, want string }{
		{`"supergraph":`, `"schema_sync": {"interval": 60}, "supergraph":`, "graphql.schema_sync.interval: must be 0: a supergraph has no upstream that has its schema"},
		{`"supergraph":`, `"proxy": {"request_headers": {"A": "b"}}, "supergraph":`, "graphql.proxy.request_headers: must be empty in a supergraph; write graphql.supergraph.global_headers, or headers of a subgraph"},
		{`"listen_path"`, `"enable_load_balancing": true, "listen_path"`, "proxy.enable_load_balancing: must be left out of a supergraph, whose subgraphs have addresses"},
	} {
		got := problemsOf(t, "api", strings.Replace(supergraph(members, ``), c.from, c.to, 1))
		if !strings.Contains(strings.Join(got, "\n"), c.want) {
			t.Errorf("%s: %q", c.to, got)
		}
	}
	if got := problemsOf(t, "api", supergraph(members, ``)); got != nil {
		t.Errorf("%q", got)
	}
}

func TestSubgraphsAreReachedWithinTheGatewayByDefault(t *testing.T) {
	a, _ := ParseAPI([]byte(supergraph(`[{"name": "a", "api_id": "x", "sdl": "x"}, {"name": "b", "api_id": "x", "url": "http://b", "sdl": "x"}]`, ``)))
	if m := a.GraphQL.Supergraph.Subgraphs; m[0].URL != "svc://x" || m[1].URL != "http://b" || a.Internal {
		t.Errorf("%+v, internal %t", m, a.Internal)
	}
}

func TestSubgraphsAreInternalUnlessTheySayOtherwise(t *testing.T) {
	for _, c := range []struct {
		more string
		want bool
	}{{``, true}, {`, "internal": true`, true}, {`, "internal": false`, false}} {
		a, err := ParseAPI([]byte(strings.Replace(graphAPI(""), "proxyOnly", "subgraph", 1)[:1] + `"later": 1` + c.more + "," + strings.Replace(graphAPI(""), "proxyOnly", "subgraph", 1)[1:]))
		if err != nil {
			t.Fatal(err)
		}
		written, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseAPI(written)
		if err != nil || a.Internal != c.want || again.Internal != c.want {
			t.Errorf("%s: internal %t, then %t, %v", c.more, a.Internal, again.Internal, err)
		}
	}
	if a, _ := ParseAPI([]byte(graphAPI(""))); a.Internal {
		t.Error("an API in the mode proxyOnly is internal")
	}
}
