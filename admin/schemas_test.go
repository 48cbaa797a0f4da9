package admin

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin/schemas"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/sample"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// here lets the admin call upstreams of the test.
func here(d *Deps) {
	d.Schemas = schemas.Options{Addresses: dialguard.Policy{Private: true}, Every: 20 * time.Millisecond}
}

// graphUpstream answers introspection until it is told to answer something else.
type graphUpstream struct {
	url string

	mu     sync.Mutex
	status int
	body   string // "": the sample answers
	swap   *strings.Replacer
	seen   []string // values of the header X-Admin
}

func newGraphUpstream(t testing.TB) *graphUpstream {
	t.Helper()
	server, err := sample.New()
	if err != nil {
		t.Fatal(err)
	}
	u := &graphUpstream{swap: strings.NewReplacer()}
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.seen = append(u.seen, r.Header.Get("X-Admin"))
		status, body := u.status, u.body
		if body == "" {
			answered, answer := server.Answer(sent)
			status, body = answered, u.swap.Replace(string(answer))
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(served.Close)
	u.url = served.URL
	return u
}

// answer makes the upstream answer this, or with "" its schema, with names of it
// exchanged in pairs.
func (u *graphUpstream) answer(status int, body string, exchange ...string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.status, u.body, u.swap = status, body, strings.NewReplacer(exchange...)
}

// graphAPI is a definition with more members of graphql.
func graphAPI(id, target, more string) string {
	return fmt.Sprintf(`{"api_id":%q,"name":%q,"use_keyless":true,"proxy":{"listen_path":"/%s/","target_url":%q},
		"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default","use_extended_paths":true,"extended_paths":{"persist_graphql":[
			{"method":"GET","path":"/capital","operation":"{ country(code: \"CH\") { capital } }"}]}}}},
		"graphql":{"enabled":true,"execution_mode":"proxyOnly","proxy":{"auth_headers":{"X-Admin":"s3cret"}}%s}}`, id, id, id, target, more)
}

func TestABrokenSchemaIsRefusedWithEveryProblem(t *testing.T) {
	b := start(t)
	broken := graphAPI("g", "http://up.example", `,"schema":"type Query {\n  a: Int\n  a: Int\n  b: Missing\n}"`)
	for _, path := range []string{"/api/apis", "/api/apis/validate"} {
		r := b.Call("POST", path, b.editor, broken).Want(400).Says(`"Status":"Error"`, `"Message":"Invalid GraphQL schema"`, `"Meta":null`, `field 'Query.a' can only be defined once`, `3:3: `, `4:6: `)
		if all, _ := r.Object()["Errors"].([]any); len(all) != 2 {
			t.Errorf("%s: %v", path, all)
		}
	}
	good := graphAPI("g", "http://up.example", `,"schema":"type Query { country(code: ID!): Country } type Country { capital: String }"`)
	b.Call("POST", "/api/apis", b.editor, good).Want(200)
	b.Call("PUT", "/api/apis/g", b.editor, broken).Want(400).Says("Invalid GraphQL schema")
	b.Call("PUT", "/api/apis/g", b.editor, strings.Replace(good, "{ capital: String", "{ city: String", 1)).Want(400).Says("Validation failed", "GET /capital", "capital", "persist_graphql")
	b.Call("PUT", "/api/apis/g", b.editor, graphAPI("g", "http://up.example", "")).Want(200)
	b.Call("GET", "/api/apis/g", b.viewer, "").Want(200).Says("type Country { capital: String }")
	b.Call("GET", "/api/apis/g/schema", b.viewer, "").Want(200).Says("type Query { country(code: ID!): Country }")
	b.Call("POST", "/api/apis/validate", b.viewer, graphAPI("h", "http://up.example", "")).Want(200).Says("graphql.schema: is not there")
}

func TestSchemasCanBeCheckedWithoutSaving(t *testing.T) {
	b := start(t)
	b.Call("POST", "/api/graphql/check", b.viewer, `{"schema":"type Query { a: Int }"}`).Want(200).Says(`"valid":true`, `"problems":[]`)
	b.Call("POST", "/api/graphql/check", b.viewer, `{"schema":"type Query { a: X }"}`).Want(200).Says(`"valid":false`, `"line":1`, `"column":17`, `X`)
	b.Call("POST", "/api/graphql/check", b.viewer, `{"sdl":""}`).Want(400)
	b.Call("POST", "/api/graphql/check", "", `{"schema":""}`).Want(401)
}

func TestAnAPIWithoutASchemaGetsThatOfItsUpstream(t *testing.T) {
	b, u := start(t, here), newGraphUpstream(t)
	u.answer(200, `{"errors":[{"message":"introspection is disabled"}]}`)
	b.Call("POST", "/api/apis", b.editor, graphAPI("g", u.url, "")).Want(400).Says("graphql.schema", "switched off", "auth_headers")
	b.Call("GET", "/api/apis/g", b.viewer, "").Want(404)
	u.answer(0, "")
	b.Call("POST", "/api/apis", b.editor, graphAPI("g", u.url, "")).Want(200)
	b.Call("GET", "/api/apis/g", b.viewer, "").Want(200).Says("type Country", `"last_schema_update":"2`)
	for _, header := range u.seen {
		if header != "s3cret" {
			t.Errorf("introspection with X-Admin %q", header)
		}
	}
	r := b.Call("GET", "/api/apis/g/schema", b.viewer, "").Want(200).Says("type Language {")
	if kind := r.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/plain") || r.Header.Get("ETag") != `"1"` {
		t.Errorf("schema as %s with ETag %s", kind, r.Header.Get("ETag"))
	}
	b.Call("GET", "/api/apis/g/schema/history", b.viewer, "").Want(200).Says(`"source":"introspection"`, `"author":"editor@example.com"`)
	b.Call("GET", "/api/apis/g/schema", b.other, "").Want(404)
	if log := b.log.String(); strings.Contains(log, "s3cret") {
		t.Errorf("the log has the header: %s", log)
	}
}

func TestPrivateUpstreamsAreRefusedUnlessAllowed(t *testing.T) {
	b, u := start(t), newGraphUpstream(t)
	b.Call("POST", "/api/apis", b.editor, graphAPI("g", u.url, "")).Want(400).Says("graphql.schema", "private_upstreams")
	if len(u.seen) > 0 {
		t.Error("the upstream was called")
	}
}

func TestSyncSaysWhatChangesAndWhatThatBreaks(t *testing.T) {
	b, u := start(t, here), newGraphUpstream(t)
	b.Call("POST", "/api/apis", b.editor, graphAPI("g", u.url, "")).Want(200)
	b.Call("POST", "/api/apis/g/schema/sync", b.editor, "").Want(200).Says("up to date", `"applied":false`, `"changes":[]`, `"broken":[]`)
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"p","access_rights":{"g":{"api_id":"g","restricted_types":[{"name":"Country","fields":["capital"]}]}}}`).Want(200)
	b.Call("POST", "/api/keys", b.editor, `{"access_rights":{"g":{"api_id":"g","field_access_rights":[{"type_name":"Country","field_name":"capital","limits":{"max_query_depth":2}}]}}}`).Want(200)
	u.answer(0, "", "capital", "seat")
	preview := b.Call("POST", "/api/apis/g/schema/sync?apply=false", b.editor, "").Want(200)
	preview.Says(`"applied":false`, `"breaking":1`, `Country.capital was removed.`, `"place":"Country.seat"`, `"policy":"p"`, `restricted_types[0].fields[0]`, `"kind":"persisted_query"`, "GET /capital", `"broken_total":3`, `field_access_rights[0]`)
	b.Call("GET", "/api/apis/g", b.viewer, "").Want(200).Says("capital")
	b.Call("POST", "/api/apis/g/schema/sync", b.viewer, "").Want(403)
	b.Call("POST", "/api/apis/g/schema/sync", b.editor, "", "If-Match", `"7"`).Want(409)
	b.Call("POST", "/api/apis/g/schema/sync", b.editor, "").Want(409).Says("GET /capital", "?force=true")
	b.Call("GET", "/api/apis/g/schema", b.viewer, "").Want(200).Says("capital: String")
	r := b.Call("POST", "/api/apis/g/schema/sync?force=true", b.editor, "", "If-Match", `"1"`).Want(200).Says(`"applied":true`, "Schema updated", `"schema_hash":"`)
	if r.Header.Get("ETag") != `"2"` {
		t.Errorf("ETag %s", r.Header.Get("ETag"))
	}
	b.Call("GET", "/api/apis/g/schema", b.viewer, "").Want(200).Says("seat: String")
	b.Call("GET", "/api/apis/g/schema/status", b.viewer, "").Want(200).Says(`"last_sync_error":""`, `"fetched_at":"2`, `"interval":0`)
	b.Call("GET", "/api/audit?object_id=g", b.admin, "").Want(200).Says("updated", "editor@example.com")
	b.Call("GET", "/api/config/revisions", b.viewer, "").Want(200).Says(`"source":"sync"`)
	u.answer(503, "down")
	b.Call("POST", "/api/apis/g/schema/sync", b.editor, "").Want(502).Says("the stored one stays", "503")
	b.Call("GET", "/api/apis/g/schema", b.viewer, "").Want(200).Says("seat: String")
	b.Call("GET", "/api/apis/g/schema/status", b.viewer, "").Want(200).Says("503", `"failing_since":"2`)
	u.answer(200, `{"data":{"__schema":{"queryType":{"name":"Query"},"directives":[],"types":[{"kind":"OBJECT","name":"Query","interfaces":[],"fields":[]}]}}}`)
	b.Call("POST", "/api/apis/g/schema/sync", b.editor, "").Want(502).Says("invalid", "Errors")
	var past string
	for _, one := range b.Call("GET", "/api/apis/g/schema/history", b.viewer, "").Want(200).Object()["schemas"].([]any) {
		past = one.(map[string]any)["hash"].(string)
	}
	b.Call("GET", "/api/apis/g/schema?hash="+past, b.viewer, "").Want(200).Says("capital: String")
	b.Call("GET", "/api/apis/g/schema?hash=00", b.viewer, "").Want(404)
}

func TestOnlySchemasOfUpstreamsAreSynchronised(t *testing.T) {
	b := start(t, here)
	b.createAPI(b.editor, "rest", "/rest")
	for _, path := range []string{"/api/apis/rest/schema", "/api/apis/rest/schema/history", "/api/apis/rest/schema/status"} {
		b.Call("GET", path, b.viewer, "").Want(400).Says("no GraphQL schema")
	}
	b.Call("POST", "/api/apis/rest/schema/sync", b.editor, "").Want(400).Says("graphql.enabled")
	b.Call("POST", "/api/apis/none/schema/sync", b.editor, "").Want(404)
}

func TestSchemasAreFetchedOnScheduleByOneAdmin(t *testing.T) {
	b, u := start(t, here), newGraphUpstream(t)
	b.serve(b.Open(store.Options{MaxConns: 10}), here)
	b.Call("POST", "/api/apis", b.editor, graphAPI("g", u.url, `,"schema_sync":{"interval":3600}`)).Want(200)
	b.Call("GET", "/api/apis/g/schema/status", b.viewer, "").Want(200).Says(`"interval":3600`, `"next_at":"2`)
	due := func() {
		b.Exec("update apis set created_at = now() - interval '1 day'")
		b.Exec("update api_schema_syncs set checked_at = 'epoch'")
	}
	status := func() string { return string(b.Call("GET", "/api/apis/g/schema/status", b.viewer, "").Body) }
	u.answer(0, "", "population", "people")
	due()
	wait.Until(t, "the schema is stored", func() bool {
		return strings.Contains(string(b.Call("GET", "/api/apis/g/schema", b.viewer, "").Body), "people: Float!")
	})
	wait.Until(t, "the lease has ended", func() bool { return strings.Contains(status(), `"checked_at":"2`) })
	b.Call("GET", "/api/config/revisions", b.viewer, "").Want(200).Says(`"author":"schema sync"`)
	if n := len(b.Call("GET", "/api/apis/g/schema/history", b.viewer, "").Object()["schemas"].([]any)); n != 2 {
		t.Errorf("%d schemas; both admins stored one", n)
	}
	u.answer(500, "down")
	for range 3 {
		due()
		wait.Until(t, "the failure is noted", func() bool { return strings.Contains(status(), `500`) && strings.Contains(status(), `"checked_at":"2`) })
	}
	if n := strings.Count(b.log.String(), "could not be brought up to date"); n != 1 {
		t.Errorf("the failure is logged %d times", n)
	}
	u.answer(0, "", "capital", "seat")
	due()
	wait.Until(t, "what would break is noted", func() bool { return strings.Contains(status(), "GET /capital") })
	b.Call("GET", "/api/apis/g/schema", b.viewer, "").Want(200).Says("capital: String")
}

func TestSchemasAreShownAsKeysAndPoliciesMayUseThem(t *testing.T) {
	b := start(t)
	api := graphAPI("g", "http://up.example", `,"schema":"type Query { me: User } \"People.\" type User { name: String email: Email } scalar Email","limits":{"max_depth":9,"max_cost":50}`)
	b.Call("POST", "/api/apis", b.editor, strings.NewReplacer(`"use_keyless":true,`, "", `country(code: \"CH\") { capital }`, `me { name }`).Replace(api)).Want(200)
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"p","max_query_depth":4,"access_rights":{"g":{"api_id":"g","disable_introspection":true,
		"restricted_types":[{"name":"User","fields":["email"]}],"field_access_rights":[{"type_name":"Query","field_name":"me","limits":{"max_query_depth":2}}]}}}`).Want(200)
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"none","name":"none","access_rights":{"g":{"api_id":"g","restricted_types":[{"name":"Query","fields":["*"]}]}}}`).Want(200)
	key := b.Call("POST", "/api/keys", b.editor, `{"apply_policies":["p"]}`).Want(200).Text("key_hash")
	for _, who := range []string{"policy=p", "key_hash=" + key} {
		r := b.Call("GET", "/api/apis/g/schema/visible?"+who, b.viewer, "").Want(200)
		r.Says(`"allowed":true`, "People.", `"introspection":false`, `"max_depth":4`, `"depth_base":1`, `"max_cost":50`, `"type_name":"Query","field_name":"me","max_query_depth":2`)
		if text := r.Text("schema"); strings.Contains(text, "mail") || !strings.Contains(text, "name: String") {
			t.Errorf("%s: %s", who, text)
		}
	}
	b.Call("GET", "/api/apis/g/schema/visible", b.viewer, "").Want(200).Says("email: Email", `"introspection":true`, `"max_depth":9`)
	b.Call("GET", "/api/apis/g/schema/visible?policy=none", b.viewer, "").Want(200).Says(`"allowed":true`, `"schema":""`)
	b.createAPI(b.editor, "rest", "/rest/")
	b.Call("GET", "/api/apis/rest/schema/visible?policy=p", b.viewer, "").Want(400).Says("no GraphQL schema")
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"q","name":"q","access_rights":{"rest":{"api_id":"rest"}}}`).Want(200)
	b.Call("GET", "/api/apis/g/schema/visible?policy=q", b.viewer, "").Want(200).Says(`"allowed":false`, `"schema":""`)
	for path, status := range map[string]int{"?policy=absent": 404, "?key_hash=absent": 404, "?policy=p&key_hash=x": 400} {
		b.Call("GET", "/api/apis/g/schema/visible"+path, b.viewer, "").Want(status)
	}
	b.Call("GET", "/api/apis/g/schema/visible?policy=p", b.other, "").Want(404)
}
