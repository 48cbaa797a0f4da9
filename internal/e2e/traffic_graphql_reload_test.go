package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// define writes a definition of a gateway on files anew.
func (g *graphs) define(def object) {
	g.t.Helper()
	saveJSON(g.t, filepath.Join(g.settings["gateway.apps_dir"], fmt.Sprint(def["api_id"], ".json")), def)
}

// reload makes the gateway read its files, and returns what it says of them.
func (g *graphs) reload() answer {
	g.t.Helper()
	return call(g.t, "GET", g.control+"/svc/reload?block=true", nil, "X-Svc-Authorization", testSecret)
}

// withField is graphSchema with one more field.
var withField = strings.Replace(graphSchema, "type Query {", "type Query { added: Int", 1)

var noField = expectation{400, invalidReason, graphErrorAt("field: added not defined on type: Query", 1, 3)}

// A schema changes for the requests that come afterwards; none fails meanwhile.
func TestSchemasChangeUnderLoad(t *testing.T) {
	t.Parallel()
	g := oneGraph(t, false, nil)
	key := g.newKey(object{"access_rights": accessTo("g")})
	poor := g.newKey(object{"access_rights": mayDo("g", object{"restricted_types": []object{restrict("Query", "secret")}})})
	bodies := []string{secretBody, queryBody("{ a { b } }"), queryBody("{ added }"), queryBody("{ nope }")}
	load := startLoad(t, 4, func(client *http.Client, n int) error {
		body := bodies[n%len(bodies)]
		got, err := sendBy(client, "POST", g.traffic.traffic+"/g/", body, "Content-Type", jsonMedia, "Authorization", key)
		if err != nil || got.status == 400 && strings.Contains(body, "nope") || got.status == 400 && got.body == noField.body && strings.Contains(body, "added") {
			return err
		}
		if strings.Contains(body, "nope") || got.body != plainAnswerBody {
			return fmt.Errorf("%s: %s", body, got)
		}
		return nil
	})
	for i := range 4 {
		load.awaitMore(50)
		schema, status := withField, 200
		if i%2 == 1 {
			schema, status = graphSchema, 400
		}
		g.define(graphDef("g", g.target, false, object{"schema": schema}))
		if got := g.reload(); got.status != 200 {
			t.Fatalf("reload: %s", got)
		}
		for range 2 {
			if got := g.ask("g", key, "{ added }"); got.status != status {
				t.Errorf("reload %d: %s, want %d", i+1, got, status)
			}
			if hidden, open := g.ask("g", poor, "{ secret }"), g.ask("g", poor, "{ a { b } }"); hidden.reason() != "field_restricted" || open.status != 200 {
				t.Errorf("reload %d: a key with rules gets %s and %s", i+1, hidden, open)
			}
		}
	}
	t.Logf("%d requests during 4 reloads", load.stop())
}

// The operations that were seen under one schema are not taken for seen under
// another, be it another API's or what the API had before.
func TestVerdictsBelongToOneSchema(t *testing.T) {
	t.Parallel()
	const one, two = "type Query { same: Int mine: Same } type Same { mine: Int }", "type Query { same: Same } type Same { mine: Int }"
	g := newGraphs(t, nil, nil, func(target string) []object {
		return []object{
			graphDef("one", target, true, object{"schema": one}), graphDef("two", target, true, object{"schema": two}),
			graphDef("lax", target, true, object{"schema": one, "legacy_json_200": true}), graphDef("twin", target, true, object{"schema": one}),
		}
	})
	bodies := []string{queryBody("{ same }"), queryBody("{ same { mine } }"), queryBody("{ mine { mine } }")}
	right := map[string][3]int{"one": {200, 400, 200}, "two": {400, 200, 400}, "twin": {200, 400, 200}}
	// all asks everything of every API at once, in another order each.
	all := func() {
		t.Helper()
		var asking sync.WaitGroup
		for worker := range 8 {
			asking.Go(func() {
				client := &http.Client{Transport: &http.Transport{}}
				defer client.CloseIdleConnections()
				for i := range 36 {
					api, n := []string{"one", "two", "twin", "lax"}[(i+worker)%4], (i/4+worker)%3
					got, err := sendBy(client, "POST", g.traffic.traffic+"/"+api+"/", bodies[n], "Content-Type", jsonMedia)
					passed := got.body == plainAnswerBody
					switch {
					case err != nil:
						t.Error(err)
					case api == "lax" && (got.status != 200 || passed != (right["one"][n] == 200)), api != "lax" && got.status != right[api][n], api != "lax" && passed != (got.status == 200):
						t.Errorf("%s, %s: %s", api, bodies[n], got)
					}
				}
			})
		}
		asking.Wait()
	}
	all()
	for range 3 { // the schemas change places
		right["one"], right["two"] = right["two"], right["one"]
		schemas := map[int]string{200: one, 400: two}
		g.define(graphDef("one", g.target, true, object{"schema": schemas[right["one"][0]]}))
		g.define(graphDef("two", g.target, true, object{"schema": schemas[right["two"][0]]}))
		g.define(graphDef("lax", g.target, true, object{"schema": schemas[right["one"][0]], "legacy_json_200": true}))
		g.reload()
		all()
	}
}

// A broken schema leaves an API as it was; one that never had a good schema is
// not served without.
func TestABrokenSchemaAtTheGateway(t *testing.T) {
	t.Parallel()
	const broken = "type Query { secret: Missing }"
	up, target := newRecorder(t)
	never := graphDef("never", target, true, object{"schema": broken})
	none := graphDef("none", target, true, nil)
	delete(none["graphql"].(object), "schema")
	unread := graphDef("unread", target, true, object{"schema": "type Query {"})
	all := apiDef("all", target, true)
	all["proxy"].(object)["listen_path"] = "/"
	g := &graphs{newTraffic(t, nil, nil, graphDef("g", target, true, nil), never, none, unread, all), up, target}
	refused := expectation{500, "schema_broken", errorBody("there was a problem proxying the request")}
	for _, api := range []string{"never", "none", "unread"} {
		for name, got := range map[string]answer{
			"good": g.ask(api, "", "{ secret }"), "bad": g.ask(api, "", "{ nope }"), "empty": g.post(api, ""), "GET": call(t, "GET", g.traffic.traffic+"/"+api+"/?query={secret}", nil),
			"introspection": g.ask(api, "", introspections[0]), "__typename": g.ask(api, "", "{ __typename }"), "PUT": call(t, "PUT", g.traffic.traffic+"/"+api+"/x", nil),
		} {
			g.check(api+", "+name, got, refused)
		}
		g.awaitLog(api)
	}
	g.awaitLog("Missing")

	g.define(graphDef("g", target, true, object{"schema": broken}))
	if got := g.reload(); got.status != 200 || !strings.Contains(got.body, "Missing") {
		t.Errorf("the reload does not tell of it: %s", got)
	}
	g.check("the old schema", g.ask("g", "", "{ a { b } }"), passes)
	g.check("the old schema", g.ask("g", "", "{ nope }"), expectation{400, invalidReason, ""})
	if got := call(t, "GET", g.control+"/hello", nil); got.status != 200 || !strings.Contains(got.body, "4 definitions are not served as written") {
		t.Errorf("health: %s", got)
	}

	g.define(graphDef("never", target, true, nil))
	g.define(graphDef("g", target, true, object{"schema": withField}))
	g.reload()
	g.check("a mended schema", g.ask("never", "", "{ secret }"), passes)
	g.check("a new schema", g.ask("g", "", "{ added }"), passes)
}

// A field that is there twice, and the same, does not keep a gateway from serving
// a schema, which the admin would refuse to save; two that differ do.
func TestASchemaWithHarmlessFaultsIsServed(t *testing.T) {
	t.Parallel()
	g := newGraphs(t, nil, nil, func(target string) []object {
		return []object{
			graphDef("same", target, true, object{"schema": "type Query { a: Int b: Int a: Int }"}),
			graphDef("other", target, true, object{"schema": "type Query { a: Int b: Int a: String }"}),
		}
	})
	g.awaitLog("field 'Query.a' can only be defined once")
	g.check("the same", g.ask("same", "", "{ a b }"), passes)
	g.check("the same", g.ask("same", "", "{ a { b } }"), expectation{400, invalidReason, ""})
	g.check("another", g.ask("other", "", "{ a b }"), expectation{500, "schema_broken", ""})
}
