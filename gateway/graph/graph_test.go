package graph_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/testenv/gatewaytest"
)

// schemaText is the graph that most tests ask: users are of a GraphQL source, todos and
// weather of REST sources.
const schemaText = `
type Query {
  me: User
  users(first: Int = 2): [User!]!
  weather(city: String!, unit: Unit = C): Weather
  search(filter: Filter): [Found!]
  strict: Weather!
}
type Mutation { note(text: String!): Note  touch(id: ID!): Note }
enum Unit { C F }
input Filter { text: String tags: [String!] }
type User { id: ID! name: String todos(open: Boolean): [Todo!] score: Int home: Weather address: Address }
type Address { city: String }
type Todo { id: ID! title: String done: Boolean! }
type Weather { city: String degrees: Float windy: Boolean }
type Note { id: ID! text: String }
interface Named { name: String }
type Cat implements Named { name: String lives: Int }
type Dog implements Named { name: String barks: Boolean }
union Found = Cat | Dog
`

// A call is a request that a source got.
type call struct {
	line, body string
	header     http.Header
}

// sources are services that answer by path, and remember what they were asked.
type sources struct {
	*httptest.Server
	mu      sync.Mutex
	calls   []call
	answers map[string]http.HandlerFunc // by path
}

func newSources(t testing.TB) *sources {
	s := &sources{answers: make(map[string]http.HandlerFunc)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.calls = append(s.calls, call{r.Method + " " + r.RequestURI, string(body), r.Header})
		answer := s.answers[r.URL.Path]
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.mu.Unlock()
		if answer == nil {
			w.WriteHeader(404)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// says has a path answer with a text.
func (s *sources) says(path, text string) {
	s.does(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}

func (s *sources) does(path string, do http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = do
}

// asked returns the requests since the last call of asked, sorted.
func (s *sources) asked() (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		lines = append(lines, strings.TrimSpace(c.line+" "+c.body))
	}
	s.calls = nil
	slices.Sort(lines)
	return lines
}

// definitionOf returns the definition of the graph over sources.
func definitionOf(s *sources) *definition.API {
	text := strings.ReplaceAll(`{
	  "api_id": "graph", "name": "graph", "use_keyless": true, "enable_context_vars": true,
	  "proxy": {"listen_path": "/graph/", "target_url": ""},
	  "graphql": {"enabled": true, "execution_mode": "executionEngine", "batch_max": 5, "engine": {
	    "field_configs": [
	      {"type_name": "User", "field_name": "todos", "path": ["list", "items"]},
	      {"type_name": "Todo", "field_name": "title", "path": ["text", "0"]},
	      {"type_name": "Query", "field_name": "weather", "disable_default_mapping": true},
	      {"type_name": "Query", "field_name": "strict", "disable_default_mapping": true},
	      {"type_name": "User", "field_name": "home", "disable_default_mapping": true},
	      {"type_name": "Mutation", "field_name": "note", "disable_default_mapping": true},
	      {"type_name": "Mutation", "field_name": "touch", "disable_default_mapping": true}
	    ],
	    "global_headers": [{"key": "X-Path", "value": "at $svc_context.path"}, {"key": "X-Own", "value": "global"}],
	    "data_sources": [
	      {"kind": "GraphQL", "name": "users", "root_fields": [{"type": "Query", "fields": ["me", "users"]}],
	       "config": {"url": "URL/users", "headers": {"X-Own": "users", "X-Tenant": "{{.request.headers.X-Tenant}}"}}},
	      {"kind": "REST", "name": "todos", "root_fields": [{"type": "User", "fields": ["todos"]}],
	       "config": {"url": "URL/todos/{{.object.id}}", "query": [{"name": "open", "value": "{{.arguments.open}}"}], "headers": {"X-User": "u-{{.object.name}}"}}},
	      {"kind": "REST", "name": "scores", "root_fields": [{"type": "User", "fields": ["score"]}], "config": {"url": "URL/score?of={{.object.id}}"}},
	      {"kind": "REST", "name": "homes", "root_fields": [{"type": "User", "fields": ["home"]}], "config": {"url": "URL/weather/{{.object.address.city}}"}},
	      {"kind": "REST", "name": "weather", "root_fields": [{"type": "Query", "fields": ["weather"]}],
	       "config": {"url": "URL/weather/{{.arguments.city}}", "query": [{"name": "unit", "value": "{{.arguments.unit}}"}]}},
	      {"kind": "REST", "name": "strict", "root_fields": [{"type": "Query", "fields": ["strict"]}], "config": {"url": "URL/strict"}},
	      {"kind": "REST", "name": "search", "root_fields": [{"type": "Query", "fields": ["search"]}],
	       "config": {"url": "URL/search", "method": "POST", "body": "{\"f\": {{.arguments.filter}}, \"say\": \"<{{.arguments.filter.text}}>\"}"}},
	      {"kind": "REST", "name": "notes", "root_fields": [{"type": "Mutation", "fields": ["note"]}],
	       "config": {"url": "URL/notes", "method": "POST", "body": "{\"text\": {{.arguments.text}}}"}},
	      {"kind": "REST", "name": "touch", "root_fields": [{"type": "Mutation", "fields": ["touch"]}], "config": {"url": "URL/touch/{{.arguments.id}}", "method": "PUT"}}
	    ]}}}`, "URL", s.URL)
	api, err := definition.ParseAPI([]byte(strings.Replace(text, `"engine"`, `"schema": `+quoted(schemaText)+`, "engine"`, 1)))
	if err != nil {
		panic(err)
	}
	return api
}

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

func user(id, name, city string) any {
	return map[string]any{"__typename": "User", "id": id, "name": name, "address": map[string]any{"__typename": "Address", "city": city}}
}

// graphQL answers operations with what they select of data.
func graphQL(data any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Query string }
		body, _ := io.ReadAll(r.Body)
		var doc syntax.Document
		if json.Unmarshal(body, &request) != nil || syntax.Parse(&doc, []byte(request.Query), syntax.Limits{}) != nil {
			w.WriteHeader(400)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": selected(&doc, doc.Operations[0].Selections, data)})
	}
}

func selected(doc *syntax.Document, set syntax.Range, of any) any {
	switch of := of.(type) {
	case []any:
		list := make([]any, len(of))
		for i := range of {
			list[i] = selected(doc, set, of[i])
		}
		return list
	case map[string]any:
		if set.Len() == 0 {
			return of
		}
		out := make(map[string]any)
		for _, sel := range doc.Selections[set.Lo:set.Hi] {
			if sel.Kind == syntax.Field {
				out[doc.Text(sel.ResponseKey())] = selected(doc, sel.Selections, of[doc.Text(sel.Name)])
			}
		}
		return out
	}
	return of
}

// world is a gateway that serves the graph.
type world struct {
	*gatewaytest.Gateway
	*sources
	t     testing.TB
	pools *upstream.Pools

	done chan finished // takes requests that are traced; nil: none are
}

// A finished is what is observed of a request.
type finished struct {
	steps []pipeline.Step
	pipeline.Upstream
	rejection *pipeline.Rejection
}

// Begins implements gateway.Tracer.
func (w *world) Begins(*[32]byte) bool { return w.done != nil }

// Done implements gateway.Tracer.
func (w *world) Done(ex *pipeline.Exchange) {
	w.done <- finished{slices.Clone(ex.Trace.Steps.List), ex.Upstream, ex.Rejection}
}

func newWorld(t testing.TB, change ...func(*definition.API)) *world {
	t.Helper()
	w := newEmptyWorld(t)
	s := w.sources
	s.does("/users", graphQL(map[string]any{"me": user("1", "Ada", "Ulm"), "users": []any{user("1", "Ada", "Ulm"), user("2", "Bob", "Rom")}}))
	for _, id := range []string{"1", "2"} {
		s.says("/todos/"+id, `{"list":{"items":[{"id":`+id+`0,"text":["todo of `+id+`"],"done":true,"extra":5}]}}`)
	}
	s.does("/score", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, `{"score":%s0}`, r.URL.Query().Get("of")) })
	s.says("/weather/Ulm", `{"city":"Ulm","degrees":7.5,"windy":false}`)
	w.apply("1", change...)
	return w
}

// newEmptyWorld returns a gateway without APIs, and sources that answer nothing yet.
func newEmptyWorld(t testing.TB) *world {
	t.Helper()
	w := &world{sources: newSources(t), t: t}
	w.Gateway = gatewaytest.Start(t, gatewaytest.Options{
		GraphQL: func(o *graphql.Options) { o.BatchMax, o.WebSockets = 5, true },
		Deps:    func(d *gateway.Deps) { w.pools, d.Tracer = d.Stages.Pools, w },
	})
	return w
}

// observed is newWorld whose requests are traced.
func observed(t testing.TB) *world {
	w := newWorld(t)
	w.done = make(chan finished, 1)
	return w
}

func (w *world) apply(revision string, change ...func(*definition.API)) {
	w.applyBeside(revision, nil, change...)
}

// applyBeside is apply with further APIs.
func (w *world) applyBeside(revision string, beside []*definition.API, change ...func(*definition.API)) {
	api := definitionOf(w.sources)
	for _, c := range change {
		c(api)
	}
	w.Gateway.Apply(&definition.Bundle{Revision: revision, APIs: append(beside, api)})
}

// ask sends an operation and returns the response.
func (w *world) ask(query string, variables ...string) (int, string) {
	w.t.Helper()
	body := `{"query":` + quoted(query)
	if len(variables) > 0 {
		body += `,"variables":` + variables[0]
	}
	return w.post(body+"}", nil)
}

func (w *world) post(body string, header http.Header) (int, string) {
	w.t.Helper()
	req, err := http.NewRequest("POST", "http://"+w.Addr+"/graph/", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestSourcesAreJoined(t *testing.T) { testJoins(t, newWorld(t)) }

func testJoins(t *testing.T, w *world) {
	for _, c := range []struct {
		query, variables, want string
		asked                  []string
	}{
		{
			`{ me { name todos(open: true) { title done id } } weather(city: "Ulm") { degrees w: windy } }`, "",
			`{"data":{"me":{"name":"Ada","todos":[{"title":"todo of 1","done":true,"id":"10"}]},"weather":{"degrees":7.5,"w":false}}}`,
			[]string{"GET /todos/1?open=true", "GET /weather/Ulm?unit=C", `POST /users {"query":"{me {name id}}"}`},
		},
		{
			`query($n: Int) { users(first: $n) { n: name score todos { t: title } } }`, `{"n": 5}`,
			`{"data":{"users":[{"n":"Ada","score":10,"todos":[{"t":"todo of 1"}]},{"n":"Bob","score":20,"todos":[{"t":"todo of 2"}]}]}}`, nil,
		},
		{`{ me { id: name home { city } } }`, "", `{"data":{"me":{"id":"Ada","home":{"city":"Ulm"}}}}`, nil},
		{`{ a: weather(city: "Ulm") { city } b: weather(city: "Ulm", unit: F) { degrees } }`, "", `{"data":{"a":{"city":"Ulm"},"b":{"degrees":7.5}}}`, []string{"GET /weather/Ulm?unit=C", "GET /weather/Ulm?unit=F"}},
		{`query Q($b: Boolean!) { me { name @skip(if: $b) ...F @include(if: $b) } } fragment F on User { id }`, `{"b": true}`, `{"data":{"me":{"id":"1"}}}`, nil},
		{`query Q($b: Boolean!) { me { name @skip(if: $b) ...F @include(if: $b) } } fragment F on User { id }`, `{"b": false}`, `{"data":{"me":{"name":"Ada"}}}`, nil},
		{`{ me { name @skip(if: true) } }`, "", `{"data":{"me":{}}}`, nil},
		{`{ me @skip(if: true) { name } }`, "", `{"data":{}}`, []string{}},
		{`{ __typename me { __typename name } }`, "", `{"data":{"__typename":"Query","me":{"__typename":"User","name":"Ada"}}}`, nil},
		{`{ __type(name: "Todo") { name fields { name } } me { name } }`, "", `{"data":{"__type":{"name":"Todo","fields":[{"name":"id"},{"name":"title"},{"name":"done"}]},"me":{"name":"Ada"}}}`, nil},
	} {
		w.asked()
		variables := []string{}
		if c.variables != "" {
			variables = append(variables, c.variables)
		}
		if status, got := w.ask(c.query, variables...); status != 200 || got != c.want {
			t.Errorf("%s\n got %d %s\nwant %s", c.query, status, got, c.want)
		}
		if asked := w.asked(); c.asked != nil && !slices.Equal(asked, c.asked) {
			t.Errorf("%s\nasked %q\nwant  %q", c.query, asked, c.asked)
		}
	}
}
