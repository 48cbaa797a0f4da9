package graph_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

// parsed returns the definition of an API beside the graph.
func parsed(t *testing.T, id, target, more string) *definition.API {
	t.Helper()
	api, err := definition.ParseAPI(fmt.Appendf(nil, `{"api_id": %q, "name": %q, "proxy": {"listen_path": "/%s/", "target_url": %q, "strip_listen_path": true}%s}`, id, "The "+id, id, target, more))
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// through has the sources of a graph called through another API.
func through(w *world, name string) func(*definition.API) {
	return func(api *definition.API) {
		for i := range api.GraphQL.Engine.DataSources {
			s := &api.GraphQL.Engine.DataSources[i]
			s.Config.URL = strings.Replace(s.Config.URL, w.URL, "svc://"+name, 1)
		}
	}
}

func TestSourcesMayBeOtherAPIs(t *testing.T) {
	w := newWorld(t)
	w.applyBeside("2", []*definition.API{parsed(t, "up", w.URL, `, "use_keyless": true, "internal": true`)}, through(w, "the-up"))
	testJoins(t, w)
	w.says("/score", `{"score": 1, "more": "`+strings.Repeat("x", 200<<10)+`"}`) // passed on as it arrives
	if _, got := w.ask(`{ users { score } }`); got != `{"data":{"users":[{"score":1},{"score":1}]}}` {
		t.Errorf("large: %s", got)
	}
	w.does("/score", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"score": `)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	if _, got := w.ask(`{ me { score } }`); got != `{"errors":[{"message":"data source \"scores\": it cannot be reached","path":["me","score"]}],"data":{"me":{"score":null}}}` {
		t.Errorf("cut off: %s", got)
	}
}

func TestOtherAPIsAsSourcesRequireWhatTheyRequireOfClients(t *testing.T) {
	w := newWorld(t)
	const query = `{ weather(city: "Ulm") { city } }`
	for _, c := range []struct {
		name, target, more string // of the other API
		asks               string // name of the other API in the sources
		want               string
	}{
		{"a key", "URL", ``, "up", `status 401`},
		{"path rules", "URL", `, "use_keyless": true, "version_data": {"not_versioned": true, "versions": {"Default": {"use_extended_paths": true, "extended_paths": {"black_list": [{"path": "/weather/Ulm", "method_actions": {"GET": {"action": "no_action", "code": 403, "data": "", "headers": {}}}}]}}}}`, "up", `status 403`},
		{"there is none", "URL", ``, "none", `The API that the request goes on to is not served`},
		{"silence", "http://127.0.0.1:1", `, "use_keyless": true`, "up", `status 502`},
	} {
		w.applyBeside(c.name, []*definition.API{parsed(t, "up", strings.Replace(c.target, "URL", w.URL, 1), c.more)}, through(w, c.asks))
		if _, got := w.ask(query); !strings.Contains(got, c.want) || !strings.HasSuffix(got, `"data":{"weather":null}}`) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	w.apply("a loop", through(w, "graph"))
	if _, got := w.ask(`{ me { name } }`); got != `{"errors":[{"message":"data source \"users\": The request was handed over between APIs too many times","path":["me"]}],"data":{"me":null}}` {
		t.Errorf("a loop: %s", got)
	}
}

func TestSubgraphsMayBeOtherAPIs(t *testing.T) {
	w := newShop(t)
	api := supergraphOf(w.sources, shop)
	for i := range api.GraphQL.Supergraph.Subgraphs {
		m := &api.GraphQL.Supergraph.Subgraphs[i]
		m.URL = strings.Replace(m.URL, w.URL, "svc://up", 1)
	}
	w.Gateway.Apply(&definition.Bundle{Revision: "2", APIs: []*definition.API{parsed(t, "up", w.URL, `, "use_keyless": true, "internal": true`), api}})
	if status, got := w.ask(`{ me { parcels } }`); status != 200 || got != `{"data":{"me":{"parcels":0}}}` {
		t.Errorf("%d %s", status, got)
	}
}
