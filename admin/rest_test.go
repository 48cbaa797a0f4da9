package admin

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
)

func TestAPIsLiveTheirLife(t *testing.T) {
	b := start(t)
	r := b.Call("POST", "/api/apis", b.editor, `{"name":"one","use_keyless":true,"x-own":{"n":1.50},"proxy":{"listen_path":"/one/","target_url":"http://up.example"}}`).Want(200)
	id := r.Text("Meta")
	if len(id) != 32 || r.Text("ID") != id || r.Text("Message") != "API created" || r.Header.Get("ETag") != `"1"` {
		t.Errorf("created %s with ETag %s", r.Body, r.Header.Get("ETag"))
	}
	r = b.Call("GET", "/api/apis/"+id, b.viewer, "").Want(200).Says(`"x-own":{"n":1.50}`, `"api_id":"`+id+`"`, `"listen_path":"/one/"`)
	if r.Header.Get("ETag") != `"1"` {
		t.Errorf("ETag %s", r.Header.Get("ETag"))
	}
	changed := strings.Replace(string(r.Body), "/one/", "/uno/", 1)
	b.Call("PUT", "/api/apis/"+id+"/", b.editor, `{"api_definition":`+changed+`}`, "If-Match", `"1"`).Want(200).Says(`"Message":"API updated"`, `"Meta":null`)
	stale := b.Call("PUT", "/api/apis/"+id, b.editor, changed, "If-Match", `"1"`).Want(409)
	if stale.Header.Get("ETag") != `"2"` {
		t.Errorf("a stale write learns ETag %q", stale.Header.Get("ETag"))
	}
	b.Call("GET", "/api/apis/"+id, "Bearer "+b.viewer, "").Want(200).Says("/uno/")
	b.Call("DELETE", "/api/apis/"+id, b.editor, "", "If-Match", `"1"`).Want(409)
	b.Call("DELETE", "/api/apis/"+id, b.editor, "").Want(200).Says("API deleted")
	b.Call("DELETE", "/api/apis/"+id, b.editor, "").Want(404).Says("Could not retrieve API detail")
	b.Call("GET", "/api/apis/"+id, b.editor, "").Want(404)
	b.Call("PUT", "/api/apis/"+id, b.editor, changed).Want(404).Says("API definition does not exist")
}

func TestAllProblemsOfADefinitionComeAtOnce(t *testing.T) {
	b := start(t)
	bad := `{"name":"","use_keyless":true,"graphql":{"enabled":true},"version_data":{"not_versioned":true,"versions":{"v":{"expires":"soon"}}},"proxy":{"listen_path":"nope","target_url":"ftp://x"}}`
	for _, path := range []string{"/api/apis", "/api/apis/validate"} {
		errors, _ := b.Call("POST", path, b.editor, bad).Want(400).Object()["Errors"].([]any)
		if all := fmt.Sprint(errors); len(errors) < 3 || !strings.Contains(all, "proxy.listen_path") ||
			!strings.Contains(all, "proxy.target_url") || !strings.Contains(all, "GraphQL") || !strings.Contains(all, ".expires: is not a time") {
			t.Errorf("%s: problems %v", path, errors)
		}
	}
	b.Call("POST", "/api/apis/validate", b.viewer, anAPI("a", "/a")).Want(200).Says(`"warnings":[]`)
	b.Call("GET", "/api/apis", b.viewer, "").Want(200).Says(`"apis":[]`, `"pages":0`)
}

func TestConflictsOfAPIs(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	b.Call("POST", "/api/apis", b.editor, anAPI("a", "/b")).Want(409).Says("same ID")
	b.Call("POST", "/api/apis", b.editor, anAPI("b", "/a/")).Want(409).Says("listen path: a")
	b.Call("POST", "/api/apis", b.other, anAPI("b", "/a/")).Want(409).Says(`listen path"`)
	b.Call("PUT", "/api/apis/a", b.editor, anAPI("c", "/a")).Want(400).Says("api_id")
	b.Call("POST", "/api/portal/policies/", b.editor, `{"id":"p","name":"gold","access_rights":{"a":{"api_id":"a"}}}`).Want(200)
	b.Call("DELETE", "/api/apis/a", b.editor, "").Want(409).Says(`"Errors":["p"]`)
	b.Call("DELETE", "/api/apis/a?force=true", b.editor, "").Want(200)
}

func TestListsOfAPIsHavePagesOrderAndSearch(t *testing.T) {
	b := start(t)
	for i := range 23 {
		b.createAPI(b.editor, fmt.Sprintf("a%02d", i), fmt.Sprintf("/a%02d", i))
	}
	b.createAPI(b.other, "foreign", "/foreign")
	for _, c := range []struct {
		query       string
		first, last string
		n, pages    int
	}{
		{"", "a00", "a09", 10, 3},
		{"?p=0", "a00", "a09", 10, 3},
		{"?p=3", "a20", "a22", 3, 3},
		{"?p=4", "", "", 0, 3},
		{"?p=-1", "a00", "a22", 23, 1},
		{"?page_size=5&p=2&sort=-name", "a17", "a13", 5, 5},
		{"?sort=-created_at&page_size=1", "a22", "a22", 1, 23},
		{"?sort=updated&page_size=500", "a00", "a22", 23, 1},
		{"?q=API+A1", "a10", "a19", 10, 1},
		{"?q=a07", "a07", "a07", 1, 1},
		{"?q=%25", "", "", 0, 0},
	} {
		for _, path := range []string{"/api/apis", "/api/apis/search/"} {
			var list apiList
			r := b.Call("GET", path+c.query, b.viewer, "").Want(200)
			if err := json.Unmarshal(r.Body, &list); err != nil {
				t.Fatal(err)
			}
			if len(list.APIs) != c.n || list.Pages != int64(c.pages) {
				t.Errorf("%s: %d APIs, %d pages; want %d, %d", c.query, len(list.APIs), list.Pages, c.n, c.pages)
			} else if c.n > 0 && (list.APIs[0].ID != c.first || list.APIs[c.n-1].ID != c.last) {
				t.Errorf("%s: %s…%s, want %s…%s", c.query, list.APIs[0].ID, list.APIs[c.n-1].ID, c.first, c.last)
			}
		}
	}
	for _, query := range []string{"?p=x", "?p=1.5", "?p=99999999999", "?page_size=0", "?page_size=501", "?page_size=-1", "?sort=owner", "?q=" + strings.Repeat("x", 3000), "?q=%ff"} {
		b.Call("GET", "/api/apis"+query, b.viewer, "").Want(400)
	}
}

func TestPoliciesLiveTheirLife(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	r := b.Call("POST", "/api/portal/policies", b.editor, `{"name":"gold","rate":5,"per":1,"own":{"x":[1]},"access_rights_array":[{"api_id":"a","versions":["v1"]}]}`).Want(200)
	id := r.Text("Message")
	if id == "" || !strings.Contains(string(r.Body), `"Meta":null`) {
		t.Fatalf("created: %s", r.Body)
	}
	path := "/api/portal/policies/" + id
	r = b.Call("GET", path, b.viewer, "").Want(200).Says(`"_id":"`+id+`"`, `"id":"`+id+`"`, `"own":{"x":[1]}`, `"access_rights":{"a":{`, `"access_rights_array":[{`)
	b.Call("PUT", path+"/", b.editor, strings.Replace(string(r.Body), `"rate":5`, `"rate":6`, 1), "If-Match", r.Header.Get("ETag")).Want(200).Says("Data updated")
	b.Call("PUT", path, b.editor, `{"name":"gold"}`, "If-Match", `"1"`).Want(409)
	b.Call("PUT", path, b.editor, `{"id":"else","name":"gold"}`).Want(400)
	b.Call("POST", "/api/portal/policies", b.editor, `{"name":"gold"}`).Want(400).Says("This policy name has already been used. Enter a unique policy name.")
	b.Call("POST", "/api/portal/policies", b.other, `{"name":"gold"}`).Want(200)
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"`+id+`","name":"else"}`).Want(409)
	b.Call("POST", "/api/portal/policies", b.editor, `{"name":"x","access_rights":{"zz":{"api_id":"zz"}}}`).Want(400).Says(`access_rights[\"zz\"]`)
	b.Call("POST", "/api/portal/policies", b.editor, `{"name":"x","access_rights_array":[{"api_name":"zz"},{"api_id":"a"},{"api_id":"a"}]}`).Want(400).Says("access_rights_array[0].api_id", "access_rights_array[2].api_id")
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"draft","name":"d","state":"draft"}`).Want(200)
	for query, want := range map[string]string{
		"": `"Pages":1`, "?active=true": id, "/search?q=GOL": id, "/search?state=draft": `"id":"draft"`,
		"/search?policy_ids=draft,none": `"id":"draft"`, "/search?api_id=a": id, "/search?q=none": `"Data":[],"Pages":0`,
	} {
		b.Call("GET", "/api/portal/policies"+query, b.viewer, "").Want(200).Says(want)
	}
	b.Call("GET", "/api/portal/policies?active=perhaps", b.viewer, "").Want(400)
	b.Call("DELETE", path, b.editor, "").Want(200).Says("Data deleted")
	b.Call("DELETE", path, b.editor, "").Want(404).Says("Could not retrieve object for deletion")
	b.Call("GET", path, b.editor, "").Want(404).Says("Could not retrieve portal object.")
}

func TestUsersLiveTheirLife(t *testing.T) {
	b := start(t)
	r := b.Call("POST", "/api/users", b.admin, `{"email_address":"eve@example.com","first_name":"Eve"}`).Want(200).Says("User and session have been created")
	id, key := r.Text("Meta"), r.Text("access_key")
	if !strings.HasPrefix(key, "sla_") || len(key) != 47 {
		t.Errorf("access key %q", key)
	}
	b.Call("GET", "/api/users/me", key, "").Want(200).Says(`"role":"viewer"`, `"first_name":"Eve"`)
	shown := b.Call("GET", "/api/users/"+id, b.admin, "").Want(200)
	if strings.Contains(string(shown.Body), key) || strings.Contains(string(shown.Body), "hash") {
		t.Errorf("a user shows secrets: %s", shown.Body)
	}
	b.Call("PUT", "/api/users/"+id, b.admin, strings.Replace(string(shown.Body), `"viewer"`, `"editor"`, 1), "If-Match", `"1"`).Want(200)
	b.createAPI(key, "made-by-eve", "/eve")
	b.Call("PUT", "/api/users/"+id, b.admin, `{"email_address":"eve@example.com","role":"editor"}`, "If-Match", `"1"`).Want(409)
	b.Call("POST", "/api/users", b.admin, `{"email_address":"EVE@example.com"}`).Want(403)
	next := b.Call("PUT", "/api/users/"+id+"/actions/key/reset", b.admin, "").Want(200).Text("access_key")
	b.Call("GET", "/api/users/me", key, "").Want(401)
	b.Call("GET", "/api/users/me", next, "").Want(200)
	b.Call("PUT", "/api/users/"+id, b.admin, `{"email_address":"eve@example.com","role":"editor","active":false}`).Want(200)
	b.Call("GET", "/api/users/me", next, "").Want(401)
	b.Call("DELETE", "/api/users/"+id, b.admin, "").Want(200)
	b.Call("GET", "/api/users/"+id, b.admin, "").Want(404)
	b.Call("GET", "/api/users?q=admin@", b.admin, "").Want(200).Says(`"pages":1`, `"IsAdmin":"admin"`)
	me := b.Call("GET", "/api/users/me", b.admin, "").Want(200).Text("id")
	b.Call("DELETE", "/api/users/"+me, b.admin, "").Want(409).Says("last active admin")
	b.Call("PUT", "/api/users/"+me, b.admin, `{"email_address":"admin@localhost","role":"viewer"}`).Want(409)
	for body, part := range map[string]string{
		`{"email_address":"x"}`:                                   "email_address",
		`{"email_address":"X <x@example.com>"}`:                   "email_address",
		`{"email_address":"x@example.com","role":"god"}`:          "role",
		`{"email_address":"x@example.com","rolle":"admin"}`:       "rolle",
		`{"email_address":"x@example.com","active":"yes"}`:        "active",
		`{"email_address":"x@example.com","last_name":"\n"}`:      "last_name",
		`{"email_address":"x@example.com"}{}`:                     "follows",
		`{"email_address":"x@example.com"`:                        "malformed",
		`[]`:                                                      "malformed",
		`{"email_address":"x@example.com","last_name":"a\u0000"}`: "last_name",
	} {
		b.Call("POST", "/api/users", b.admin, body).Want(400).Says(part)
	}
}

func TestOtherOrganisationsActAsUnknown(t *testing.T) {
	b := start(t)
	b.createAPI(b.other, "theirs", "/theirs")
	b.Call("POST", "/api/portal/policies", b.other, `{"id":"tp","name":"theirs"}`).Want(200)
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/api/apis/theirs", ""},
		{"PUT", "/api/apis/theirs", anAPI("theirs", "/mine")},
		{"DELETE", "/api/apis/theirs?force=true", ""},
		{"GET", "/api/portal/policies/tp", ""},
		{"PUT", "/api/portal/policies/tp", `{"name":"mine"}`},
		{"DELETE", "/api/portal/policies/tp", ""},
		{"GET", "/api/users/u2", ""},
		{"PUT", "/api/users/u2", `{"email_address":"mine@example.com","role":"viewer"}`},
		{"DELETE", "/api/users/u2", ""},
		{"PUT", "/api/users/u2/actions/key/reset", ""},
		{"GET", "/api/config/revisions/1", ""},
		{"GET", "/api/config/revisions/1/diff", ""},
		{"GET", "/api/config/revisions/1/concerned", ""},
		{"POST", "/api/config/revisions/1/rollback", ""},
	} {
		b.Call(c.method, c.path, b.admin, c.body).Want(404)
	}
	b.Call("GET", "/api/apis", b.admin, "").Want(200).Says(`"apis":[]`)
	b.Call("GET", "/api/portal/policies", b.admin, "").Want(200).Says(`"Data":[]`)
	b.Call("GET", "/api/audit?object_kind=api", b.admin, "").Want(200).Says(`"audit":[]`)
	b.Call("POST", "/api/portal/policies", b.admin, `{"name":"x","access_rights":{"theirs":{"api_id":"theirs"}}}`).Want(400)
	b.Call("POST", "/api/users", b.other, `{"email_address":"spy@example.com","role":"gateway"}`).Want(403)
	b.Call("PUT", "/api/users/u2", b.other, `{"email_address":"two@example.com","role":"gateway"}`).Want(403)
	b.Call("GET", "/api/apis/theirs", b.other, "").Want(200).Says(`"org_id":"second"`)
}

func TestBrokenRequestsGetAnAnswerThatSaysWhatIsWrong(t *testing.T) {
	b := start(t)
	for _, c := range []struct {
		method, path, body string
		headers            []string
		status             int
		says               string
	}{
		{"POST", "/api/apis", `{"name":`, nil, 400, "not JSON"},
		{"POST", "/api/apis", "\xff", nil, 400, "UTF-8"},
		{"POST", "/api/apis", `[]`, nil, 400, "object"},
		{"POST", "/api/apis", `{"name":7}`, nil, 400, "name"},
		{"POST", "/api/apis", ``, nil, 400, "empty"},
		{"POST", "/api/apis", strings.Repeat("[", 100_000), nil, 400, ""},
		{"POST", "/api/apis", `{"api_id":"../../x","name":"x","use_keyless":true,"proxy":{"listen_path":"/x","target_url":"http://x"}}`, nil, 400, "api_id"},
		{"POST", "/api/apis", anAPI("a", "/a"), []string{"Content-Type", "text/xml"}, 415, "application/json"},
		{"POST", "/api/apis", `{"x":"` + strings.Repeat("x", rest.MaxBody) + `"}`, nil, 413, "4194304"},
		{"POST", "/api/portal/policies", `{"rate":"x"}`, nil, 400, "rate"},
		{"PUT", "/api/apis/a", anAPI("a", "/a"), []string{"If-Match", "abc"}, 400, "If-Match"},
		{"GET", "/api/nothing", "", nil, 404, ""},
		{"HEAD", "/api/nothing", "", nil, 404, ""},
		{"GET", "/", "", nil, 404, ""},
		{"GET", "/api/apis/" + strings.Repeat("x", 600), "", nil, 404, ""},
		{"PATCH", "/api/apis", "{}", nil, 405, "Allow"},
		{"OPTIONS", "/api/apis", "", nil, 405, "Allow"},
		{"DELETE", "/api/apis/", "", nil, 405, ""},
		{"GET", "/api/apis", "", []string{"X-Long", strings.Repeat("x", 20_000)}, 431, "16 KiB"},
		{"GET", "/api/config/revisions/x", "", nil, 404, ""},
		{"GET", "/api/config/revisions/99", "", nil, 404, ""},
		{"GET", "/api/config/revisions/-1/diff", "", nil, 404, ""},
		{"GET", "/api/audit?p=-1", "", nil, 400, "p must"},
	} {
		r, err := b.Try(c.method, c.path, b.admin, c.body, c.headers...)
		if err != nil && c.status == 413 {
			continue // the answer may come before the body is sent, which ends the connection
		}
		if err != nil {
			t.Errorf("%s %.60s: %v", c.method, c.path, err)
			continue
		}
		r.What = c.method + " " + c.path[:min(len(c.path), 60)]
		r.Want(c.status).Says(c.says)
		if c.status == 405 && r.Header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", c.method, c.path)
		}
	}
	if n := b.Count("select count(*) from config_revisions"); n != 0 {
		t.Errorf("%d revisions from refused calls", n)
	}
}

func TestIDsThatBeginLikeAWordOfThePathAreFound(t *testing.T) {
	b := start(t)
	for _, id := range []string{"search2", "keystone", "validated", "key", "s"} {
		b.createAPI(b.editor, id, "/"+id)
		b.Call("GET", "/api/apis/"+id, b.viewer, "").Want(200)
		r := b.Call("HEAD", "/api/apis/"+id+"/", b.viewer, "")
		if r.Status != 200 || len(r.Body) != 0 {
			t.Errorf("HEAD: %d %s", r.Status, r.Body)
		}
	}
}

func TestAmbiguousLengthIsRefused(t *testing.T) {
	b := start(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	fmt.Fprintf(conn, "POST /api/apis HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b.admin)
	all, err := io.ReadAll(conn)
	if err != nil || strings.Count(string(all), "HTTP/1.1 ") != 1 || !strings.HasPrefix(string(all), "HTTP/1.1 400") {
		t.Errorf("answered %s: %v", all, err)
	}
}

func TestFailedAuthenticationsAreLimitedByAddress(t *testing.T) {
	b := start(t, func(d *Deps) { d.LoginRate = 3 })
	statuses := make([]int, 6)
	for i := range statuses {
		r := b.Call("GET", "/api/apis", "wrong", "")
		if statuses[i] = r.Status; r.Status == 429 && r.Header.Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
	}
	if !slices.Equal(statuses, []int{401, 401, 401, 429, 429, 429}) {
		t.Errorf("statuses %v", statuses)
	}
	b.Call("GET", "/api/apis", b.viewer, "").Want(200)
}

func TestRevisionsCanBeListedComparedAndRolledBack(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	b.Call("PUT", "/api/apis/a?reason=because", b.editor, anAPI("a", "/changed")).Want(200)
	b.Call("DELETE", "/api/apis/a", b.editor, "").Want(200)
	b.Call("GET", "/api/config", b.viewer, "").Want(200).Says(`"revision":3`)
	b.Call("GET", "/api/config/revisions?page_size=2", b.viewer, "").Want(200).Says(`"revision":3`, `"pages":2`, `"reason":"because"`, `"author":"editor@example.com"`)
	b.Call("GET", "/api/config/revisions/2", b.viewer, "").Want(200).Says(`"/changed"`, `"action":"updated"`)
	b.Call("GET", "/api/config/revisions/2/diff", b.viewer, "").Want(200).Says(`{"path":"proxy.listen_path","before":"/a","after":"/changed"}`, `"from":1`)
	b.Call("GET", "/api/config/revisions/1/diff", b.viewer, "").Want(200).Says(`"action":"created"`, `"from":0`)
	b.Call("GET", "/api/config/revisions/3/diff?against=1", b.viewer, "").Want(200).Says(`"action":"deleted"`)
	b.Call("GET", "/api/config/revisions/1/diff?against=3", b.viewer, "").Want(200).Says(`"action":"created"`)
	b.Call("GET", "/api/config/revisions/1/diff?against=x", b.viewer, "").Want(400)
	b.Call("POST", "/api/config/revisions/2/rollback", b.editor, "").Want(403)
	b.Call("POST", "/api/config/revisions/2/rollback", b.admin, `{"reason":"it broke"}`).Want(200).Says(`"Meta":4`)
	b.Call("GET", "/api/apis/a", b.viewer, "").Want(200).Says("/changed", `"later":{"kept":1.50}`)
	b.Call("GET", "/api/config/revisions/4", b.viewer, "").Want(200).Says(`"source":"rollback"`, `"reason":"it broke"`)
	b.Call("GET", "/api/audit?object_kind=api&object_id=a&actor=editor@example.com", b.admin, "").Want(200).Says(`"action":"deleted"`, `"ip":"127.0.0.1"`, `"pages":1`)
}

func TestDescriptionIsOpenAPIAndListsEveryRoute(t *testing.T) {
	b := start(t)
	r := b.Call("GET", "/api/openapi.json", "", "").Want(200)
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Responses   map[string]any
		}
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(r.Body, &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1.") || doc.Components.Schemas["API"] == nil {
		t.Errorf("version %q, schemas %d", doc.OpenAPI, len(doc.Components.Schemas))
	}
	var listed []string
	ids := map[string]bool{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			listed = append(listed, strings.ToUpper(method)+" "+path)
			if ids[op.OperationID] || op.OperationID == "" || op.Responses["200"] == nil && op.Responses["201"] == nil && op.Responses["202"] == nil {
				t.Errorf("%s %s: id %q, responses %v", method, path, op.OperationID, op.Responses)
			}
			ids[op.OperationID] = true
		}
	}
	slices.Sort(listed)
	for _, ref := range strings.Split(string(r.Body), `"$ref":"`)[1:] {
		name := strings.TrimPrefix(ref[:strings.IndexByte(ref, '"')], "#/components/schemas/")
		if doc.Components.Schemas[name] == nil {
			t.Errorf("schema %s is named but not there", name)
		}
	}
	golden(t, "routes.txt", strings.Join(listed, "\n")+"\n")
}

// golden compares with a file in testdata; SLUICE_UPDATE=1 writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("SLUICE_UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s differs (SLUICE_UPDATE=1 rewrites it): %v\n%s", path, err, got)
	}
}

func TestPanicIsAnsweredAndLogged(t *testing.T) {
	b := start(t, func(d *Deps) { d.Scrape = func(*fasthttp.RequestCtx) { panic("at the disco") } })
	b.Call("GET", "/metrics", "", "").Want(500)
	if log := b.log.String(); !strings.Contains(log, "a handler panicked") || !strings.Contains(log, "stack=") {
		t.Errorf("log: %s", log)
	}
	b.Call("GET", "/healthz", "", "").Want(200)
}

func TestAnswersAreNotKeptByCaches(t *testing.T) {
	b := start(t)
	r := b.Call("GET", "/api/apis", b.viewer, "").Want(200)
	if r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers %v", r.Header)
	}
	if _, found := r.Header[http.CanonicalHeaderKey("Server")]; found {
		t.Errorf("server %q", r.Header.Get("Server"))
	}
}
