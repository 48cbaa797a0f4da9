package traffic

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// define writes a definition of a gateway on files anew.
func (g *graphs) define(def object) {
	g.T.Helper()
	rig.SaveJSON(g.T, filepath.Join(g.Settings["gateway.apps_dir"], fmt.Sprint(def["api_id"], ".json")), def)
}

// reload makes the gateway read its files, and returns what it says of them.
func (g *graphs) reload() rig.Answer {
	g.T.Helper()
	return rig.Call(g.T, "GET", g.Control+"/svc/reload?block=true", nil, "X-Svc-Authorization", testSecret)
}

// withField is graphSchema with one more field.
var withField = strings.Replace(rig.GraphSchema, "type Query {", "type Query { added: Int", 1)

var noField = expectation{400, invalidReason, graphErrorAt("field: added not defined on type: Query", 1, 3)}

// A schema changes for the requests that come afterwards; none fails meanwhile.
func TestSchemasChangeUnderLoad(t *testing.T) {
	t.Parallel()
	g := oneGraph(t, false, nil)
	key := g.newKey(object{"access_rights": rig.AccessTo("g")})
	poor := g.newKey(object{"access_rights": rig.AccessWith("g", object{"restricted_types": []object{rig.Restrict("Query", "secret")}})})
	bodies := []string{secretBody, rig.QueryBody("{ a { b } }"), rig.QueryBody("{ added }"), rig.QueryBody("{ nope }")}
	load := rig.StartLoad(t, 4, func(client *http.Client, n int) error {
		body := bodies[n%len(bodies)]
		got, err := rig.SendBy(client, "POST", g.traffic.Traffic+"/g/", body, "Content-Type", rig.JSONMedia, "Authorization", key)
		if err != nil || got.Status == 400 && strings.Contains(body, "nope") || got.Status == 400 && got.Body == noField.body && strings.Contains(body, "added") {
			return err
		}
		if strings.Contains(body, "nope") || got.Body != plainAnswerBody {
			return fmt.Errorf("%s: %s", body, got)
		}
		return nil
	})
	for i := range 4 {
		load.AwaitMore(50)
		schema, status := withField, 200
		if i%2 == 1 {
			schema, status = rig.GraphSchema, 400
		}
		g.define(rig.GraphDef("g", g.target, false, object{"schema": schema}))
		if got := g.reload(); got.Status != 200 {
			t.Fatalf("reload: %s", got)
		}
		for range 2 {
			if got := g.ask("g", key, "{ added }"); got.Status != status {
				t.Errorf("reload %d: %s, want %d", i+1, got, status)
			}
			if hidden, open := g.ask("g", poor, "{ secret }"), g.ask("g", poor, "{ a { b } }"); hidden.Reason() != "field_restricted" || open.Status != 200 {
				t.Errorf("reload %d: a key with rules gets %s and %s", i+1, hidden, open)
			}
		}
	}
	t.Logf("%d requests during 4 reloads", load.Stop())
}

// The operations that were seen under one schema are not taken for seen under
// another, be it another API's or what the API had before.
func TestVerdictsBelongToOneSchema(t *testing.T) {
	t.Parallel()
	const one, two = "type Query { same: Int mine: Same } type Same { mine: Int }", "type Query { same: Same } type Same { mine: Int }"
	g := newGraphs(t, nil, nil, func(target string) []object {
		return []object{
			rig.GraphDef("one", target, true, object{"schema": one}), rig.GraphDef("two", target, true, object{"schema": two}),
			rig.GraphDef("lax", target, true, object{"schema": one, "legacy_json_200": true}), rig.GraphDef("twin", target, true, object{"schema": one}),
		}
	})
	bodies := []string{rig.QueryBody("{ same }"), rig.QueryBody("{ same { mine } }"), rig.QueryBody("{ mine { mine } }")}
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
					got, err := rig.SendBy(client, "POST", g.traffic.Traffic+"/"+api+"/", bodies[n], "Content-Type", rig.JSONMedia)
					passed := got.Body == plainAnswerBody
					switch {
					case err != nil:
						t.Error(err)
					case api == "lax" && (got.Status != 200 || passed != (right["one"][n] == 200)), api != "lax" && got.Status != right[api][n], api != "lax" && passed != (got.Status == 200):
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
		g.define(rig.GraphDef("one", g.target, true, object{"schema": schemas[right["one"][0]]}))
		g.define(rig.GraphDef("two", g.target, true, object{"schema": schemas[right["two"][0]]}))
		g.define(rig.GraphDef("lax", g.target, true, object{"schema": schemas[right["one"][0]], "legacy_json_200": true}))
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
	never := rig.GraphDef("never", target, true, object{"schema": broken})
	none := rig.GraphDef("none", target, true, nil)
	delete(none["graphql"].(object), "schema")
	unread := rig.GraphDef("unread", target, true, object{"schema": "type Query {"})
	all := rig.APIDef("all", target, true)
	all["proxy"].(object)["listen_path"] = "/"
	g := &graphs{newTraffic(t, nil, nil, rig.GraphDef("g", target, true, nil), never, none, unread, all), up, target}
	refused := expectation{500, "schema_broken", errorBody("there was a problem proxying the request")}
	for _, api := range []string{"never", "none", "unread"} {
		for name, got := range map[string]rig.Answer{
			"good": g.ask(api, "", "{ secret }"), "bad": g.ask(api, "", "{ nope }"), "empty": g.post(api, ""), "GET": rig.Call(t, "GET", g.traffic.Traffic+"/"+api+"/?query={secret}", nil),
			"introspection": g.ask(api, "", introspections[0]), "__typename": g.ask(api, "", "{ __typename }"), "PUT": rig.Call(t, "PUT", g.traffic.Traffic+"/"+api+"/x", nil),
		} {
			g.check(api+", "+name, got, refused)
		}
		g.AwaitLog(api)
	}
	g.AwaitLog("Missing")

	g.define(rig.GraphDef("g", target, true, object{"schema": broken}))
	if got := g.reload(); got.Status != 200 || !strings.Contains(got.Body, "Missing") {
		t.Errorf("the reload does not tell of it: %s", got)
	}
	g.check("the old schema", g.ask("g", "", "{ a { b } }"), passes)
	g.check("the old schema", g.ask("g", "", "{ nope }"), expectation{400, invalidReason, ""})
	if got := rig.Call(t, "GET", g.Control+"/hello", nil); got.Status != 200 || !strings.Contains(got.Body, "4 definitions are not served as written") {
		t.Errorf("health: %s", got)
	}

	g.define(rig.GraphDef("never", target, true, nil))
	g.define(rig.GraphDef("g", target, true, object{"schema": withField}))
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
			rig.GraphDef("same", target, true, object{"schema": "type Query { a: Int b: Int a: Int }"}),
			rig.GraphDef("other", target, true, object{"schema": "type Query { a: Int b: Int a: String }"}),
		}
	})
	g.AwaitLog("field 'Query.a' can only be defined once")
	g.check("the same", g.ask("same", "", "{ a b }"), passes)
	g.check("the same", g.ask("same", "", "{ a { b } }"), expectation{400, invalidReason, ""})
	g.check("another", g.ask("other", "", "{ a b }"), expectation{500, "schema_broken", ""})
}
