package system

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/sample"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/valyala/fasthttp"
)

// countries is a GraphQL server whose schema can change, and which can fail.
type countries struct {
	url string

	mu    sync.Mutex
	fails bool
	swap  *strings.Replacer // of names in its answers
	auth  map[string]bool   // values of X-Introspect, by what came with them: "__schema" or ""
}

func newCountries(t *testing.T) *countries {
	t.Helper()
	server, err := sample.New()
	if err != nil {
		t.Fatal(err)
	}
	u := &countries{swap: strings.NewReplacer(), auth: make(map[string]bool)}
	u.url = "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.auth[fmt.Sprint(strings.Contains(string(ctx.PostBody()), "__schema"), " ", string(ctx.Request.Header.Peek("X-Introspect")))] = true
		ctx.SetContentType("application/json")
		if u.fails {
			ctx.SetStatusCode(503)
			return
		}
		status, body := server.Answer(ctx.PostBody())
		ctx.SetStatusCode(status)
		ctx.SetBodyString(u.swap.Replace(string(body)))
	})
	return u
}

// become exchanges names in what the server answers, or makes it fail.
func (u *countries) become(fails bool, names ...string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fails, u.swap = fails, strings.NewReplacer(names...)
}

// An admin and gateways: what is wrong with a schema is told when it is saved,
// schemas come from upstreams, and rules reach live keys.
func TestGraphQLThroughAnAdmin(t *testing.T) {
	t.Parallel()
	s, u := newSplit(t, 2, testenv.Postgres(t)), newCountries(t)
	t.Run("a broken schema is refused", s.refusesBrokenSchemas)
	t.Run("a schema comes from the upstream", func(t *testing.T) { s.in(t).syncsSchemas(u) })
	t.Run("a rule reaches a live key", func(t *testing.T) { s.in(t).sendsRules(u) })
	t.Run("a supergraph joins two subgraphs", s.joinsSubgraphs)
	t.Run("real schemas", s.servesRealSchemas)
}

// saveMended saves a GraphQL API. Where the schema has names twice, which is
// refused, they are changed at the places that the refusal names.
func (s *split) saveMended(def object) {
	s.t.Helper()
	got, err := s.rest.Try("POST", "/api/apis", def)
	if err == nil && got.Status == 200 {
		return
	}
	var said struct{ Errors []string }
	got.Into(s.t, &said)
	graph := def["graphql"].(object)
	lines := strings.Split(graph["schema"].(string), "\n")
	for _, problem := range said.Errors {
		var line, column int
		if _, err := fmt.Sscanf(problem, "%d:%d: ", &line, &column); err != nil || !strings.HasSuffix(problem, "can only be defined once") {
			s.t.Fatalf("%s: %v", problem, err)
		}
		at := &lines[line-1]
		*at = (*at)[:column-1] + "again_" + (*at)[column-1:]
	}
	s.t.Logf("%d names of the schema are there twice", len(said.Errors))
	graph["schema"] = strings.Join(lines, "\n")
	s.rest.Do("POST", "/api/apis", def)
}

// servesRealSchemas saves schemas as they are in production, and asks what their
// clients ask.
func (s *split) servesRealSchemas(t *testing.T) {
	s = s.in(t)
	operations := map[string][]string{
		"github": {"{ viewer { login } }", "query($n: Int!) { viewer { repositories(first: $n) { nodes { name issues(last: 3, states: OPEN) { totalCount } } } } }"},
		"swapi":  nil,
	}
	for _, name := range []string{"02_nested_fields", "04_all_starships", "05_argument", "06_fragments", "07_fragments"} {
		if text, ok := testenv.Data(t, "schemas/swapi-"+name+".graphql"); ok {
			operations["swapi"] = append(operations["swapi"], string(text))
		}
	}
	for api, asked := range operations {
		text, ok := testenv.Data(t, "schemas/"+api+".graphql")
		if !ok {
			continue
		}
		s.saveMended(rig.GraphDef(api, s.origin, true, object{"schema": string(text)}))
		took := s.everywhere("the API "+api, "/"+api+"/"+rig.QueryString("{ __typename }"), "", status(200))
		t.Logf("%s, %d bytes, is served %s after it was saved", api, len(text), took.Round(time.Millisecond))
		for _, g := range s.gateways {
			for _, query := range asked {
				body := object{"query": query, "variables": object{"n": 5}}
				if got := rig.Call(t, "POST", g.Traffic+"/"+api+"/", body, "Content-Type", rig.JSONMedia); got.Body != "origin /" {
					t.Errorf("%s, %s: %s", api, query, got)
				}
			}
			if got := rig.Call(t, "POST", g.Traffic+"/"+api+"/", rig.QueryBody("{ nope }"), "Content-Type", rig.JSONMedia); got.Reason() != "graphql_invalid" {
				t.Errorf("%s: %s", api, got)
			}
		}
	}
}

func (s *split) refusesBrokenSchemas(t *testing.T) {
	s = s.in(t)
	const broken = "type Query {\n  a: Int\n  a: Int\n  b: Missing\n}\nenum E { V V }"
	for _, method := range []string{"POST /api/apis", "POST /api/apis/validate"} {
		verb, path, _ := strings.Cut(method, " ")
		got, err := s.rest.Try(verb, path, rig.GraphDef("broken", s.origin, true, object{"schema": broken}))
		if err != nil {
			t.Fatal(err)
		}
		var said struct {
			Status, Message string
			Meta            any
			Errors          []string
		}
		got.Into(t, &said)
		if got.Status != 400 || said.Status != "Error" || said.Message != "Invalid GraphQL schema" || said.Meta != nil || len(said.Errors) != 3 {
			t.Errorf("%s: %s", method, got)
		}
		for _, problem := range []string{"field 'Query.a' can only be defined once", `Unknown type "Missing".`, "enum value 'E.V' can only be defined once"} {
			if !strings.Contains(strings.Join(said.Errors, "\n"), problem) {
				t.Errorf("%s: %q is not among %q", method, problem, said.Errors)
			}
		}
	}
	if got, err := s.rest.Try("GET", "/api/apis/broken", nil); err != nil || got.Status != 404 {
		t.Errorf("it was stored: %v %s", err, got)
	}
	s.rest.Do("POST", "/api/apis", rig.GraphDef("mended", s.origin, true, nil))
	s.everywhere("a good one", "/mended/"+rig.QueryString("{ secret }"), "", status(200))
	if got, err := s.rest.Try("PUT", "/api/apis/mended", rig.GraphDef("mended", s.origin, true, object{"schema": broken})); err != nil || got.Status != 400 {
		t.Errorf("a good one made broken: %v %s", err, got)
	}
	s.everywhere("the good one", "/mended/"+rig.QueryString("{ a { b } }"), "", status(200))
}

func (s *split) syncsSchemas(u *countries) {
	t := s.t
	const authorization = "secret-of-the-synchronisation"
	rig.Plant(authorization)
	def := rig.GraphDef("sync", u.url, true, object{"proxy": object{"auth_headers": object{"X-Introspect": authorization}}})
	delete(def["graphql"].(object), "schema")
	s.rest.Do("POST", "/api/apis", def)
	// The sample answers POST only, and takes no part in this: what matters is what the gateway lets pass.
	may := func(query string, status int) {
		t.Helper()
		for i, g := range s.gateways {
			g.Await(fmt.Sprintf("%s to be answered %d", query, status), func() error {
				got, err := rig.Send("POST", g.Traffic+"/sync/", rig.QueryBody(query), "Content-Type", rig.JSONMedia)
				if err == nil && (got.Status != status || status == 400 && got.Reason() != "graphql_invalid") {
					err = fmt.Errorf("gateway %d: %s", i+1, got)
				}
				return err
			})
		}
	}
	may("{ country(code: \"CH\") { capital } }", 200)
	may("{ country(code: \"CH\") { seat } }", 400)

	u.become(false, `"name":"capital"`, `"name":"seat"`)
	preview := s.rest.Do("POST", "/api/apis/sync/schema/sync?apply=false", nil)
	if !strings.Contains(preview.Body, "Country.capital was removed.") || !strings.Contains(preview.Body, `"applied":false`) {
		t.Errorf("preview: %s", preview)
	}
	may("{ country(code: \"CH\") { capital } }", 200)
	if got := s.rest.Do("POST", "/api/apis/sync/schema/sync", nil); !strings.Contains(got.Body, `"applied":true`) {
		t.Errorf("sync: %s", got)
	}
	u.become(false)
	may("{ country(code: \"CH\") { capital } }", 400)

	u.become(true)
	if got, err := s.rest.Try("POST", "/api/apis/sync/schema/sync", nil); err != nil || got.Status != 502 || !strings.Contains(got.Body, "503") {
		t.Errorf("of an upstream that fails: %v %s", err, got)
	}
	if got := s.rest.Do("GET", "/api/apis/sync/schema", nil); !strings.Contains(got.Body, "seat: String") || strings.Contains(got.Body, "capital") {
		t.Errorf("the schema is %s", got.Body)
	}
	u.become(false)
	may("{ country(code: \"CH\") { name } }", 200)
	u.mu.Lock()
	defer u.mu.Unlock()
	for seen := range u.auth {
		if seen != "true "+authorization && seen != "false " {
			t.Errorf("the upstream saw introspection and header: %s", seen)
		}
	}
	if !u.auth["true "+authorization] || !u.auth["false "] {
		t.Errorf("the upstream saw introspection and header: %v", u.auth)
	}
}

func (s *split) sendsRules(u *countries) {
	s.rest.Do("POST", "/api/apis", rig.GraphDef("ruled", u.url, false, object{"schema": sample.Schema}))
	policy := func(method, path string, rules object) {
		s.t.Helper()
		s.rest.Do(method, path, object{"id": "ruled", "name": "ruled", "access_rights": rig.AccessWith("ruled", rules)})
	}
	policy("POST", "/api/portal/policies", nil)
	key := s.rest.NewKey(object{"apply_policies": []string{"ruled"}})
	restricted, introspection, deep := &measured{t: s.t, what: "a restricted field"}, &measured{t: s.t, what: "introspection off"}, &measured{t: s.t, what: "a depth limit"}
	query := "{ country(code: \"CH\") { population continent { name } } }"
	reaches := func(what, query string, status int, reason string) {
		s.t.Helper()
		for i, g := range s.gateways {
			g.Await(what, func() error {
				got, err := rig.Send("POST", g.Traffic+"/ruled/", rig.QueryBody(query), "Content-Type", rig.JSONMedia, "Authorization", key)
				if err == nil && (got.Status != status || got.Reason() != reason) {
					err = fmt.Errorf("gateway %d: %s", i+1, got)
				}
				return err
			})
		}
	}
	for range 3 {
		reaches("all", query, 200, "")
		policy("PUT", "/api/portal/policies/ruled", object{"restricted_types": []object{rig.Restrict("Country", "population")}})
		restricted.add(timed(func() { reaches("the field", query, 400, "field_restricted") }))
		policy("PUT", "/api/portal/policies/ruled", object{"disable_introspection": true})
		introspection.add(timed(func() { reaches("the switch", "{ __schema { types { name } } }", 403, "introspection_disabled") }))
		policy("PUT", "/api/portal/policies/ruled", object{"limit": object{"max_query_depth": 3}})
		deep.add(timed(func() { reaches("the depth", query, 403, "depth_limit") }))
		policy("PUT", "/api/portal/policies/ruled", nil)
	}
	restricted.report()
	introspection.report()
	deep.report()
}

// timed returns how long something takes.
func timed(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}
