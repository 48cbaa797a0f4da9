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
	"github.com/sluicegate/sluice/internal/guard"
	"github.com/sluicegate/sluice/internal/sample"
)

// here lets the admin call upstreams of the test.
func here(d *Deps) {
	d.Schemas = schemas.Options{Addresses: guard.Policy{Private: true}, Every: 20 * time.Millisecond}
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
		r := b.call("POST", path, b.editor, broken).want(400).says(`"Status":"Error"`, `"Message":"Invalid GraphQL schema"`, `"Meta":null`, `field 'Query.a' can only be defined once`, `3:3: `, `4:6: `)
		if all, _ := r.object()["Errors"].([]any); len(all) != 2 {
			t.Errorf("%s: %v", path, all)
		}
	}
	good := graphAPI("g", "http://up.example", `,"schema":"type Query { country(code: ID!): Country } type Country { capital: String }"`)
	b.call("POST", "/api/apis", b.editor, good).want(200)
	b.call("PUT", "/api/apis/g", b.editor, broken).want(400).says("Invalid GraphQL schema")
	b.call("PUT", "/api/apis/g", b.editor, strings.Replace(good, "{ capital: String", "{ city: String", 1)).want(400).says("Validation failed", "GET /capital", "capital", "persist_graphql")
	b.call("PUT", "/api/apis/g", b.editor, graphAPI("g", "http://up.example", "")).want(200)
	b.call("GET", "/api/apis/g", b.viewer, "").want(200).says("type Country { capital: String }")
	b.call("GET", "/api/apis/g/schema", b.viewer, "").want(200).says("type Query { country(code: ID!): Country }")
	b.call("POST", "/api/apis/validate", b.viewer, graphAPI("h", "http://up.example", "")).want(200).says("graphql.schema: is not there")
}

func TestSchemasCanBeCheckedWithoutSaving(t *testing.T) {
	b := start(t)
	b.call("POST", "/api/graphql/check", b.viewer, `{"schema":"type Query { a: Int }"}`).want(200).says(`"valid":true`, `"problems":[]`)
	b.call("POST", "/api/graphql/check", b.viewer, `{"schema":"type Query { a: X }"}`).want(200).says(`"valid":false`, `"line":1`, `"column":17`, `X`)
	b.call("POST", "/api/graphql/check", b.viewer, `{"sdl":""}`).want(400)
	b.call("POST", "/api/graphql/check", "", `{"schema":""}`).want(401)
}

func TestAnAPIWithoutASchemaGetsThatOfItsUpstream(t *testing.T) {
	b, u := start(t, here), newGraphUpstream(t)
	u.answer(200, `{"errors":[{"message":"introspection is disabled"}]}`)
	b.call("POST", "/api/apis", b.editor, graphAPI("g", u.url, "")).want(400).says("graphql.schema", "switched off", "auth_headers")
	b.call("GET", "/api/apis/g", b.viewer, "").want(404)
	u.answer(0, "")
	b.call("POST", "/api/apis", b.editor, graphAPI("g", u.url, "")).want(200)
	b.call("GET", "/api/apis/g", b.viewer, "").want(200).says("type Country", `"last_schema_update":"2`)
	for _, header := range u.seen {
		if header != "s3cret" {
			t.Errorf("introspection with X-Admin %q", header)
		}
	}
	r := b.call("GET", "/api/apis/g/schema", b.viewer, "").want(200).says("type Language {")
	if kind := r.header.Get("Content-Type"); !strings.HasPrefix(kind, "text/plain") || r.header.Get("ETag") != `"1"` {
		t.Errorf("schema as %s with ETag %s", kind, r.header.Get("ETag"))
	}
	b.call("GET", "/api/apis/g/schema/history", b.viewer, "").want(200).says(`"source":"introspection"`, `"author":"editor@example.com"`)
	b.call("GET", "/api/apis/g/schema", b.other, "").want(404)
	if log := b.log.String(); strings.Contains(log, "s3cret") {
		t.Errorf("the log has the header: %s", log)
	}
}

func TestPrivateUpstreamsAreRefusedUnlessAllowed(t *testing.T) {
	b, u := start(t), newGraphUpstream(t)
	b.call("POST", "/api/apis", b.editor, graphAPI("g", u.url, "")).want(400).says("graphql.schema", "private_upstreams")
	if len(u.seen) > 0 {
		t.Error("the upstream was called")
	}
}

func TestSyncSaysWhatChangesAndWhatThatBreaks(t *testing.T) {
	b, u := start(t, here), newGraphUpstream(t)
	b.call("POST", "/api/apis", b.editor, graphAPI("g", u.url, "")).want(200)
	b.call("POST", "/api/apis/g/schema/sync", b.editor, "").want(200).says("up to date", `"applied":false`, `"changes":[]`, `"broken":[]`)
	b.call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"p","access_rights":{"g":{"api_id":"g","restricted_types":[{"name":"Country","fields":["capital"]}]}}}`).want(200)
	b.call("POST", "/api/keys", b.editor, `{"access_rights":{"g":{"api_id":"g","field_access_rights":[{"type_name":"Country","field_name":"capital","limits":{"max_query_depth":2}}]}}}`).want(200)
	u.answer(0, "", "capital", "seat")
	preview := b.call("POST", "/api/apis/g/schema/sync?apply=false", b.editor, "").want(200)
	preview.says(`"applied":false`, `"breaking":1`, `Country.capital was removed.`, `"place":"Country.seat"`, `"policy":"p"`, `restricted_types[0].fields[0]`, `"kind":"persisted_query"`, "GET /capital", `"broken_total":3`, `field_access_rights[0]`)
	b.call("GET", "/api/apis/g", b.viewer, "").want(200).says("capital")
	b.call("POST", "/api/apis/g/schema/sync", b.viewer, "").want(403)
	b.call("POST", "/api/apis/g/schema/sync", b.editor, "", "If-Match", `"7"`).want(409)
	b.call("POST", "/api/apis/g/schema/sync", b.editor, "").want(409).says("GET /capital", "?force=true")
	b.call("GET", "/api/apis/g/schema", b.viewer, "").want(200).says("capital: String")
	r := b.call("POST", "/api/apis/g/schema/sync?force=true", b.editor, "", "If-Match", `"1"`).want(200).says(`"applied":true`, "Schema updated", `"schema_hash":"`)
	if r.header.Get("ETag") != `"2"` {
		t.Errorf("ETag %s", r.header.Get("ETag"))
	}
	b.call("GET", "/api/apis/g/schema", b.viewer, "").want(200).says("seat: String")
	b.call("GET", "/api/apis/g/schema/status", b.viewer, "").want(200).says(`"last_sync_error":""`, `"fetched_at":"2`, `"interval":0`)
	b.call("GET", "/api/audit?object_id=g", b.admin, "").want(200).says("updated", "editor@example.com")
	b.call("GET", "/api/config/revisions", b.viewer, "").want(200).says(`"source":"sync"`)
	u.answer(503, "down")
	b.call("POST", "/api/apis/g/schema/sync", b.editor, "").want(502).says("the stored one stays", "503")
	b.call("GET", "/api/apis/g/schema", b.viewer, "").want(200).says("seat: String")
	b.call("GET", "/api/apis/g/schema/status", b.viewer, "").want(200).says("503", `"failing_since":"2`)
	u.answer(200, `{"data":{"__schema":{"queryType":{"name":"Query"},"directives":[],"types":[{"kind":"OBJECT","name":"Query","interfaces":[],"fields":[]}]}}}`)
	b.call("POST", "/api/apis/g/schema/sync", b.editor, "").want(502).says("invalid", "Errors")
	var past string
	for _, one := range b.call("GET", "/api/apis/g/schema/history", b.viewer, "").want(200).object()["schemas"].([]any) {
		past = one.(map[string]any)["hash"].(string)
	}
	b.call("GET", "/api/apis/g/schema?hash="+past, b.viewer, "").want(200).says("capital: String")
	b.call("GET", "/api/apis/g/schema?hash=00", b.viewer, "").want(404)
}

func TestOnlySchemasOfUpstreamsAreSynchronised(t *testing.T) {
	b := start(t, here)
	b.createAPI(b.editor, "rest", "/rest")
	for _, path := range []string{"/api/apis/rest/schema", "/api/apis/rest/schema/history", "/api/apis/rest/schema/status"} {
		b.call("GET", path, b.viewer, "").want(400).says("no GraphQL schema")
	}
	b.call("POST", "/api/apis/rest/schema/sync", b.editor, "").want(400).says("graphql.enabled")
	b.call("POST", "/api/apis/none/schema/sync", b.editor, "").want(404)
}

func TestSchemasAreFetchedOnScheduleByOneAdmin(t *testing.T) {
	b, u := start(t, here), newGraphUpstream(t)
	b.serve(openStore(t, b.dsn), here)
	b.call("POST", "/api/apis", b.editor, graphAPI("g", u.url, `,"schema_sync":{"interval":3600}`)).want(200)
	b.call("GET", "/api/apis/g/schema/status", b.viewer, "").want(200).says(`"interval":3600`, `"next_at":"2`)
	due := func() {
		sqlExec(t, b.dsn, "update apis set created_at = now() - interval '1 day'")
		sqlExec(t, b.dsn, "update api_schema_syncs set checked_at = 'epoch'")
	}
	status := func() string { return string(b.call("GET", "/api/apis/g/schema/status", b.viewer, "").body) }
	u.answer(0, "", "population", "people")
	due()
	eventually(t, "the schema is stored", func() bool {
		return strings.Contains(string(b.call("GET", "/api/apis/g/schema", b.viewer, "").body), "people: Float!")
	})
	b.call("GET", "/api/config/revisions", b.viewer, "").want(200).says(`"author":"schema sync"`)
	if n := len(b.call("GET", "/api/apis/g/schema/history", b.viewer, "").object()["schemas"].([]any)); n != 2 {
		t.Errorf("%d schemas; both admins stored one", n)
	}
	u.answer(500, "down")
	for range 3 {
		due()
		eventually(t, "the failure is noted", func() bool { return strings.Contains(status(), `500`) && strings.Contains(status(), `"checked_at":"2`) })
	}
	if n := strings.Count(b.log.String(), "could not be brought up to date"); n != 1 {
		t.Errorf("the failure is logged %d times", n)
	}
	u.answer(0, "", "capital", "seat")
	due()
	eventually(t, "what would break is noted", func() bool { return strings.Contains(status(), "GET /capital") })
	b.call("GET", "/api/apis/g/schema", b.viewer, "").want(200).says("capital: String")
}
