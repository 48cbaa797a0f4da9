package catalogue

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/testenv/admintest"
)

const description = `openapi: 3.0.3
info: {title: Orders, description: "See http://10.0.0.1:8080/v1/health and **this**.", x-internal: yes}
x-amazon-apigateway-integration: {uri: "http://10.0.0.1:8080"}
servers: [{url: "http://up.internal:9000/v1"}]
paths:
  /orders:
    servers: [{url: "http://10.0.0.2"}]
    get:
      summary: Lists
      x-backend: {address: "http://10.0.0.3"}
      responses:
        "200":
          description: "curl http://up.internal:9000/v1/orders"
          headers: {X-Total: {schema: {type: integer}}}
          content:
            application/json:
              example: {x-note: kept, link: "http://up.internal:9000/v1/orders/1"}
`

func TestADocumentLivesItsLife(t *testing.T) {
	b := start(t)
	id := b.document("swagger", description, "orders")
	got := b.Call("GET", docPath+"/"+id, "viewer", "").Want(200).Says(`"doc_type":"openapi"`, `"api_id":"orders"`, base64.StdEncoding.EncodeToString([]byte(description)))
	if got.ETag != `"1"` {
		t.Errorf("ETag %s", got.ETag)
	}
	b.Call("PUT", docPath+"/"+id, "editor", string(got.Body), "If-Match", `"1"`).Want(200)
	if stale := b.Call("PUT", docPath+"/"+id, "editor", string(got.Body), "If-Match", `"1"`).Want(409); stale.ETag != `"2"` {
		t.Errorf("a stale write learns ETag %s", stale.ETag)
	}
	b.Call("GET", docPath, "viewer", "").Want(200).Says(`"Pages":1`, id).Hides("documentation")
	b.Call("PUT", docPath+"/"+id, "editor", `{"id":"other","doc_type":"md","documentation":"YQ=="}`).Want(400).Says("id: must be " + id)
	b.Call("PUT", docPath+"/nothing", "editor", `{"doc_type":"md","documentation":"YQ=="}`).Want(404)
	entry := b.Call("POST", entryPath, "editor", `{"name":"Gold","show":true,"policy_id":"gold","documentation":"`+id+`"}`).Want(201).Text("Message")
	b.Call("DELETE", docPath+"/"+id, "editor", "").Want(409).Says("?force=true", entry+": Gold")
	b.Call("DELETE", docPath+"/"+id, "editor", "", "If-Match", `"1"`).Want(409).Says("version 2")
	b.Call("DELETE", docPath+"/"+id+"?force=true", "editor", "").Want(200).Says("Data deleted")
	b.Call("GET", publicPath+"/"+entry, "", "").Want(200)
	b.Call("GET", publicPath+"/"+entry+"/documentation", "", "").Want(404).Says("The entry has no documentation")
	b.Call("DELETE", docPath+"/"+id, "editor", "").Want(404)
	if n := b.Count("select count(*) from audit_log where object_kind = 'document' and octet_length(coalesce(after::text, '')) < 200"); n != 3 {
		t.Errorf("%d entries in the audit log", n)
	}
}

func TestDocumentsAreListed(t *testing.T) {
	b := start(t)
	for i := range 12 {
		b.Call("POST", docPath, "editor", fmt.Sprintf(`{"name":"Guide %02d","doc_type":"markdown","documentation":"YQ"}`, i)).Want(200)
	}
	b.Call("POST", docPath, "editor", `{"name":"Schema","doc_type":"graphql","api_id":"stock","documentation":"`+base64.URLEncoding.EncodeToString([]byte("type Query { a: Int }"))+`"}`).Want(200)
	for query, want := range map[string]int{"": 10, "?p=2": 3, "?q=guide%201": 2, "?q=%25": 0, "?doc_type=graphql": 1, "?doc_type=swagger": 0, "?api_id=stock": 1, "?page_size=500": 13} {
		var list struct{ Data []any }
		if err := json.Unmarshal(b.Call("GET", docPath+query, "viewer", "").Want(200).Body, &list); err != nil || len(list.Data) != want {
			t.Errorf("%s: %d documents, want %d", query, len(list.Data), want)
		}
	}
	for _, query := range []string{"?doc_type=docx", "?p=x", "?p=-1", "?page_size=0"} {
		b.Call("GET", docPath+query, "viewer", "").Want(400)
	}
}

func TestWhatIsWrongWithADocumentIsNamed(t *testing.T) {
	b := start(t)
	big := base64.StdEncoding.EncodeToString(make([]byte, 2<<20+1))
	for body, says := range map[string]string{
		`{}`: "doc_type: must be openapi (or swagger), graphql or markdown", `{"doc_type":"markdown"}`: "documentation: must be the text",
		`{"doc_type":"markdown","documentation":"*"}`: "documentation: must be base64", `{"doc_type":"markdown","documentation":"/w=="}`: "must be text in UTF-8",
		`{"doc_type":"markdown","documentation":"AA=="}`: "U+0000", `{"doc_type":"markdown","documentation":"` + big + `"}`: "at most 2097152",
		`{"doc_type":"markdown","documentation":"YQ==","api_id":"theirs"}`: "api_id: names an API that does not exist", `{"doc_type":"markdown","documentation":"YQ==","name":"a\nb"}`: "name: must be one line",
		`{"doc_type":"openapi","documentation":"e30="}`: "documentation: openapi: must be a version", `{"doc_type":"graphql","documentation":"YQ=="}`: "documentation: is no valid schema: 1:1",
		`{"doc_type":"graphql","documentation":5}`: "documentation must not be a JSON number", `{"kind":"x"}`: `unknown member \"kind\"`, `[]`: "must not be a JSON array", `{`: "ends early", ``: "it is empty",
	} {
		b.Call("POST", docPath, "editor", body).Want(400).Says(says)
	}
	if n := b.Count("select count(*) from documents"); n != 0 {
		t.Errorf("%d documents came of it", n)
	}
}

// shown returns a document as developers see it at an entry that offers an API.
func (b *bench) shown(kind, text, api string) *admintest.Answer {
	b.t.Helper()
	doc := b.document(kind, text, "")
	policy := map[string]string{"stock": "depot"}[api] // one that includes the API
	entry := b.Call("POST", entryPath, "editor", fmt.Sprintf(`{"name":"A","show":true,"policy_id":%q,"api_id":%q,"documentation":%q}`, cmp.Or(policy, "gold"), api, doc)).Want(201).Text("Message")
	preview := b.Call("GET", docPath+"/"+doc+"/preview?api_id="+api, "viewer", "").Want(200)
	public := b.Call("GET", publicPath+"/"+entry+"/documentation", "", "").Want(200)
	if string(preview.Body) != string(public.Body) {
		b.t.Errorf("operators see %s, developers %s", preview.Body, public.Body)
	}
	return public
}

func TestDevelopersSeeDescriptionsWithTheGatewaysAddress(t *testing.T) {
	b := start(t)
	doc := b.shown("openapi", description, "orders").
		Says(`"servers":[{"url":"/orders"}]`, `X-Total`, `"x-note":"kept"`, `\u003cstrong\u003ethis\u003c/strong\u003e`, `{gateway}/v1/orders/1`, "curl {gateway}/v1/orders", "{gateway}/v1/health").
		Hides("10.0.0.", "up.internal", "x-internal", "x-backend", "x-amazon", "<")
	openapi, _ := doc.Object()["openapi"].(map[string]any)
	if openapi["openapi"] != "3.0.3" || doc.Text("doc_type") != "openapi" {
		t.Errorf("description %v", doc.Object())
	}
	b.shown("openapi", description, "stock").Says(`"servers":[{"url":"//stock.example.com/"}]`)
	b.shown("openapi", description, "").Hides("servers")
	second := `{"swagger":"2.0","host":"10.0.0.1:8080","basePath":"/v1","schemes":["http"],"info":{"title":"a","description":"at https://10.0.0.1:8080/x"},"paths":{"/a":{"get":{"schemes":["http"],"responses":{}}}},"definitions":{"host":{"properties":{"host":{"type":"string"},"x-a":{"type":"string"}}}}}`
	b.shown("swagger", second, "orders").Says(`"basePath":"/orders"`, `"definitions":{"host":{"properties":{"host":`, `"x-a"`, "{gateway}/x").Hides("10.0.0.1", "schemes", "/v1")
	b.shown("swagger", second, "stock").Says(`"host":"stock.example.com"`)
}

func TestDevelopersSeeSchemasAndMarkdownWithoutUpstreams(t *testing.T) {
	b := start(t)
	b.shown("graphql", "# at http://10.0.0.1:8080\n\"from http://10.0.0.1:8080/graphql, not http://10.0.0.1:80801\" type Query { a(b: Int = 3): Int }", "orders").
		Says(`a(b: Int = 3): Int`, "from {gateway}/graphql, not http://10.0.0.1:80801", `"doc_type":"graphql"`).Hides("# at")
	b.shown("markdown", "# Orders\n\ncurl http://up.internal/x <script>alert(1)</script>", "stock").
		Says(`\u003ch1\u003eOrders\u003c/h1\u003e`, "{gateway}/x").Hides("up.internal", "script", "<")
}

func TestDocumentsOfOlderRulesAreCleanedAnew(t *testing.T) {
	b := start(t)
	doc := b.document("markdown", "*new*", "")
	entry := b.Call("POST", entryPath, "editor", `{"name":"A","show":true,"policy_id":"gold","documentation":"`+doc+`"}`).Want(201).Text("Message")
	b.Exec("update documents set clean = '<script>old</script>', edition = 0")
	for range 2 {
		b.Call("GET", publicPath+"/"+entry+"/documentation", "", "").Want(200).Says("new").Hides("old", "script")
	}
	if n := b.Count("select count(*) from documents where edition > 0 and version = 1 and clean like '%new%'"); n != 1 {
		t.Error("what was cleaned is not kept")
	}
}

func TestALargeDescriptionIsTaken(t *testing.T) {
	b := start(t)
	var paths strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&paths, `,"/path/%d":{"get":{"summary":"Gets number %d","description":"Gets the *one* with the number %d of all of them.","responses":{"200":{"description":"The one."},"404":{"description":"There is none."}}}}`, i, i, i)
	}
	doc := `{"openapi":"3.1.0","info":{"title":"Large"},"paths":{` + paths.String()[1:] + `}}`
	b.shown("openapi", doc, "orders").Says("/path/4999")
}

func TestDocumentsAreBounded(t *testing.T) {
	b := start(t)
	b.Exec("insert into documents (id, org_id, kind, source, clean, edition) select 'd' || n, 'one', 'markdown', 'a', 'a', 1 from generate_series(1, 5000) n")
	b.Call("POST", docPath, "editor", `{"doc_type":"markdown","documentation":"YQ=="}`).Want(409).Says("5000 documents")
	b.Call("DELETE", docPath+"/d1", "editor", "").Want(200)
	b.document("markdown", "a", "")
}
