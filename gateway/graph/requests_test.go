package graph_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

func TestRequestsAreMadeOfArgumentsAndHeaders(t *testing.T) {
	w := newWorld(t)
	w.says("/search", `{"search":[{"__typename":"Cat","name":"Tom","lives":9},{"__typename":"Dog","name":"Rex","barks":true}]}`)
	const search = `query($f: Filter) { search(filter: $f) { __typename ... on Named { name } ... on Cat { lives } ... on Dog { b: barks } } }`
	for _, c := range []struct{ query, variables, asked, want string }{
		{`{ weather(city: "a/../b?c#d é") { city } }`, `{}`, "GET /weather/a%2F..%2Fb%3Fc%23d%20%C3%A9?unit=C", `status 404`},
		{`query($u: Unit, $c: String!) { weather(city: $c, unit: $u) { city } }`, `{"c": "Ulm", "u": null}`, "GET /weather/Ulm", `"city":"Ulm"`},
		{`query($u: Unit, $c: String! = "Ulm") { weather(city: $c, unit: $u) { city } }`, `{}`, "GET /weather/Ulm?unit=C", `"city":"Ulm"`},
		{`{ weather(city: "..") { city } }`, `{}`, "", `a value makes a segment`},
		{`{ weather(city: "") { city } }`, `{}`, "", `there is no value of {{.arguments.city}}`},
		{search, `{"f": {"text": "\"}, \"x\": \"", "tags": ["a"]}}`, `POST /search {"f": {"text":"\"}, \"x\": \"","tags":["a"]}, "say": "<\"}, \"x\": \">"}`, `{"data":{"search":[{"__typename":"Cat","name":"Tom","lives":9},{"__typename":"Dog","name":"Rex","b":true}]}}`},
		{`query($t: String, $g: String! = "z") { search(filter: {text: $t, tags: ["b", $g]}) { ... on Cat { name } } }`, `{}`, `POST /search {"f": {"tags":["b","z"]}, "say": "<>"}`, `{"data":{"search":[{"name":"Tom"},{}]}}`},
		{`query($t: Filter) { search(filter: $t) { ... on Cat { name } } }`, `{"t": null}`, `POST /search {"f": null, "say": "<>"}`, `"Tom"`},
	} {
		w.asked()
		_, got := w.ask(c.query, c.variables)
		asked := w.asked()
		if !strings.Contains(got, c.want) || !slices.Equal(asked, slices.DeleteFunc([]string{c.asked}, func(s string) bool { return s == "" })) {
			t.Errorf("%s %s\n got %s\nasked %q\n want %q", c.query, c.variables, got, asked, c.asked)
		}
	}
}

func TestHeadersOfSources(t *testing.T) {
	w := newWorld(t, func(api *definition.API) { api.UseKeyless = true })
	w.asked()
	w.post(`{"query":"{ me { name todos { id } } }"}`, http.Header{"X-Tenant": {"acme"}, "Authorization": {"Bearer secret"}, "X-Other": {"no"}})
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.calls) != 2 {
		t.Fatalf("%d requests", len(w.calls))
	}
	for _, c := range w.calls {
		want := map[string]string{"X-Path": "at /graph/", "X-Own": "users", "X-Tenant": "acme", "X-User": "", "Authorization": "", "X-Other": ""}
		if strings.HasPrefix(c.line, "GET /todos/") {
			want["X-Own"], want["X-Tenant"], want["X-User"] = "global", "", "u-Ada"
		}
		for name, value := range want {
			if got := strings.Join(c.header[name], ","); got != value {
				t.Errorf("%s: %s is %q, want %q", c.line, name, got, value)
			}
		}
	}
}

func TestMutationsRunInOrder(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var order []string
	for _, path := range []string{"/notes", "/touch/1", "/touch/2"} {
		w.does(path, func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, path)
			_, _ = io.WriteString(w, `{"id":7,"text":"t"}`)
		})
	}
	const want = `{"data":{"b":{"id":"7"},"note":{"text":"t"},"a":{"id":"7"}}}`
	if _, got := w.ask(`mutation { b: touch(id: 2) { id } note(text: "x") { text } a: touch(id: 1) { id } }`); got != want {
		t.Errorf("got %s", got)
	}
	if !slices.Equal(order, []string{"/touch/2", "/notes", "/touch/1"}) {
		t.Errorf("order %q", order)
	}
}

func TestTheGraphQLStageIsTheGate(t *testing.T) {
	w := newWorld(t)
	w.apply("2", func(api *definition.API) {
		api.GraphQL.Limits = &definition.GraphQLLimits{MaxAliases: 2}
		api.VersionData = &definition.VersionData{NotVersioned: true, Versions: map[string]*definition.Version{"Default": {Name: "Default", UseExtendedPaths: true, ExtendedPaths: &definition.ExtendedPaths{
			PersistedOperations: []definition.PersistedOperation{{
				Method: "GET", Path: "/w/{city}", Operation: "query($c: String!) { weather(city: $c) { city } }",
				Variables: map[string]json.RawMessage{"c": []byte(`"$path.city"`)},
			}},
		}}}}
	})
	w.asked()
	for _, c := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"query":"{ nope }"}`, 400, "nope"},
		{`{"query":"{ a: __typename b: __typename c: __typename }"}`, 403, ""},
		{`[{"query":"{ __typename }"},{"query":"{ weather(city: \"Ulm\") { city } }"}]`, 200, `[{"data":{"__typename":"Query"}},{"data":{"weather":{"city":"Ulm"}}}]`},
	} {
		if status, got := w.post(c.body, nil); status != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%s: %d %s", c.body, status, got)
		}
	}
	for path, want := range map[string]string{
		"?query={weather(city:%22Ulm%22){city}}": `{"data":{"weather":{"city":"Ulm"}}}`,
		"w/Ulm":                                  `{"data":{"weather":{"city":"Ulm"}}}`,
	} {
		resp, err := http.Get("http://" + w.Addr + "/graph/" + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(b) != want || resp.StatusCode != 200 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, b)
		}
	}
	if asked := w.asked(); len(asked) != 3 {
		t.Errorf("asked %q", asked)
	}
}

func TestAReloadTakesTheNewSources(t *testing.T) {
	w := newWorld(t)
	const query = `{ weather(city: "Ulm") { city } }`
	w.says("/other/Ulm", `{"city":"Other"}`)
	if _, got := w.ask(query); !strings.Contains(got, "Ulm") {
		t.Fatal(got)
	}
	w.apply("2", func(api *definition.API) {
		for i := range api.GraphQL.Engine.DataSources {
			if s := &api.GraphQL.Engine.DataSources[i]; s.Name == "weather" {
				s.Config.URL = w.URL + "/other/{{.arguments.city}}"
			}
		}
	})
	if _, got := w.ask(query); !strings.Contains(got, "Other") {
		t.Errorf("after the reload: %s", got)
	}
}

func TestConnectionsLastAsLongAsTheirSources(t *testing.T) {
	w := newWorld(t)
	const query = `{ strict { city } }`
	w.ask(query)
	w.apply("2")
	if got := w.pools.Stats(); got.Idle != 1 {
		t.Errorf("after a reload: %+v", got)
	}
	w.Gateway.Apply(&definition.Bundle{Revision: "3", ConfirmedEmpty: true})
	wait.Until(t, "the connections are closed", func() bool { return w.pools.Stats() == upstream.Stats{} })
}

func TestAnOperationIsPlannedOnceHoweverManyAsk(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			if _, got := w.ask(`{ weather(city: "Ulm") { city } me { name todos { title } } }`); !strings.Contains(got, `"title":"todo of 1"`) {
				t.Error(got)
			}
		})
	}
	all.Wait()
	if n := w.Graphs.Planned(); n != 1 {
		t.Errorf("planned %d times", n)
	}
}

func TestQueriesOfConnectionsAndEventStreamsAreAnswered(t *testing.T) {
	w := newWorld(t)
	const data = `{"data":{"weather":{"city":"Ulm"}}}`
	req, err := http.NewRequest("GET", "http://"+w.Addr+"/graph/?query={weather(city:%22Ulm%22){city}}", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if !strings.Contains(string(b), "event: next\ndata: "+data+"\n\nevent: complete") {
		t.Errorf("event stream: %d %s", resp.StatusCode, b)
	}

	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}}
	conn, _, err := dialer.Dial("ws://"+w.Addr+"/graph/", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	send := func(text string) {
		if err := conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	next := func(want string) {
		t.Helper()
		if _, got, err := conn.ReadMessage(); err != nil || !strings.Contains(string(got), want) {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
	send(`{"type":"connection_init"}`)
	next("connection_ack")
	send(`{"type":"subscribe","id":"1","payload":{"query":"{ weather(city: \"Ulm\") { city } }"}}`)
	next(data)
	next("complete")
}

func TestExplanationsNameTheSources(t *testing.T) {
	w := newWorld(t)
	w.asked()
	q, err := explain.Parse([]byte(`{"method":"POST","url":"/graph/","headers":{"Content-Type":"application/json"},"body":` +
		quoted(`{"query":"query($b: Boolean!) { me { name todos @include(if: $b) { id } } }","variables":{"b":true}}`) + `}`))
	if err != nil {
		t.Fatal(err)
	}
	report := w.Explain(q)
	last := report.Steps[len(report.Steps)-1]
	text, _ := json.Marshal(last)
	if !report.Outcome.Allowed || !strings.Contains(string(text), `"data source users"`) || !strings.Contains(string(text), `"me.todos"`) {
		t.Errorf("%v %s", report.Outcome, text)
	}
	if asked := w.asked(); len(asked) != 0 {
		t.Errorf("asked %q", asked)
	}
}
