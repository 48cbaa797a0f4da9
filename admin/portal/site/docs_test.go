package site_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// document stores a document for an API and returns its id.
func (b *bench) document(api, kind, text string) string {
	b.t.Helper()
	return b.Call("POST", "/api/portal/documentation", b.admin, fmt.Sprintf(
		`{"api_id":%q,"name":"Doc","doc_type":%q,"documentation":%q}`, api, kind, base64.StdEncoding.EncodeToString([]byte(text)))).Want(200).Text("Message")
}

const ordersDocument = `{"openapi":"3.0.3","info":{"title":"Orders","version":"1","description":"All **orders**."},
 "paths":{"/list":{"get":{"operationId":"listOrders","responses":{"200":{"description":"ok","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Order"}}}}}}},
  "/item/{id}":{"get":{"operationId":"getItem","parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"integer"}}],"responses":{"200":{"description":"ok"}}},
   "delete":{"operationId":"deleteItem","responses":{"204":{"description":"gone"}}}},
  "/internal":{"post":{"operationId":"secretOperation","responses":{"200":{"description":"ok","content":{"application/json":{"schema":{"$ref":"#/components/schemas/SecretThing"}}}}}}}},
 "components":{"schemas":{"Order":{"type":"object","properties":{"part":{"$ref":"#/components/schemas/Part"},"next":{"$ref":"#/components/schemas/Order"}}},"Part":{"type":"object","properties":{"weight":{"type":"number"}}},
  "SecretThing":{"type":"object","properties":{"hiddenMember":{"type":"string"}}}}}}`

// The reference has what the plan of the entry admits, and nothing else of the document.
func TestTheReferenceIsCutToThePlan(t *testing.T) {
	b := start(t)
	b.Call("POST", "/api/portal/policies", b.admin, `{"id":"narrow","name":"Narrow","state":"active","rate":10,"per":1,"access_rights":{"orders":{"api_id":"orders","versions":["Default"],
		"allowed_urls":[{"url":"^/list$","methods":["GET"]},{"url":"^/item/[0-9]+$","methods":["GET"]}]}}}`).Want(200)
	doc := b.document("orders", "openapi", ordersDocument)
	b.entry("narrow", "Narrow", fmt.Sprintf(`,"documentation":%q`, doc))
	b.Call("PUT", "/api/portal/catalogue/entries/gold", b.admin, fmt.Sprintf(`{"name":"Gold","show":true,"api_id":"orders","policy_id":"gold","documentation":%q}`, doc)).Want(200)

	w := b.browser()
	w.open("/portal/apis/gold/docs").want(200, "/portal/apis/gold/docs").says("/internal", "/item/{id}", "SecretThing", "All orders.")
	w.open("/portal/apis/narrow/docs").want(200, "/portal/apis/narrow/docs").says("/list", "/item/{id}", "Order", "Part").hides("/internal", "secretOperation", "SecretThing", "hiddenMember", "deleteItem")
	w.open("/portal/apis/narrow/docs/listOrders").want(200, "/portal/apis/narrow/docs/listOrders").says("weight", "curl 'https://api.example.com/orders/list'", "Authorization: YOUR_KEY")
	for _, hidden := range []string{"secretOperation", "deleteItem", "type.SecretThing"} {
		w.open("/portal/apis/narrow/docs/"+hidden).want(404, "/portal/apis/narrow/docs/"+hidden)
		w.open("/portal/apis/gold/docs/"+hidden).want(200, "/portal/apis/gold/docs/"+hidden)
	}
	w.open("/portal/apis/free/docs").want(404, "/portal/apis/free/docs").says("There is no documentation")
}

func TestTheReferenceOfASchemaLacksWhatThePlanHides(t *testing.T) {
	b := start(t)
	const sdl = `type Query { country: Country secret: Secret } type Country { name: String population: Int } type Secret { x: Int }`
	b.Call("POST", "/api/apis", b.admin, fmt.Sprintf(`{"api_id":"graph","name":"Graph","use_keyless":false,"proxy":{"listen_path":"/graph/","target_url":"http://up.example"},"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":%q}}`, sdl)).Want(200)
	b.Call("POST", "/api/portal/policies", b.admin, `{"id":"reader","name":"Reader","state":"active","rate":1,"per":1,"access_rights":{"graph":{"api_id":"graph","restricted_types":[{"name":"Country","fields":["population"]},{"name":"Query","fields":["secret"]}]}}}`).Want(200)
	doc := b.document("graph", "graphql", sdl)
	b.Call("POST", "/api/portal/catalogue/entries", b.admin, fmt.Sprintf(`{"id":"graph","name":"Graph","show":true,"api_id":"graph","policy_id":"reader","documentation":%q}`, doc)).Want(201)
	w := b.browser()
	w.open("/portal/apis/graph/docs").want(200, "/portal/apis/graph/docs").says("country").hides("population", "secret", "Secret")
	w.open("/portal/apis/graph/docs/type.Country").says("name").hides("population", "secret", "Secret")
	w.open("/portal/apis/graph/docs/type.Secret").want(404, "/portal/apis/graph/docs/type.Secret")
	w.open("/portal/apis/graph/docs/query.country").says("query {", "curl")
}

// attack is a text that runs a script wherever it is not escaped.
const attack = `"><script>alert(1)</script><img src=x onerror=alert(1)>' onload='alert(1)`

// Scripts in any text of any object come out as text.
func TestScriptsInTextsAreShownAsText(t *testing.T) {
	b := start(t)
	b.configure(fmt.Sprintf(`"require_key_approval":true,"key_request_fields":[%q],"signup_fields":["Company"]`, "Why <script>alert(1)</script>"))
	openapi := fmt.Sprintf(`{"openapi":"3.0.3","info":{"title":%q,"version":%q,"description":%q},"tags":[{"name":%q}],
	 "paths":{"/a":{"get":{"operationId":"op","tags":[%q],"summary":%q,"description":%q,"parameters":[{"name":%q,"in":"query","description":%q,"schema":{"type":"string","enum":[%q],"default":%q,"pattern":%q},"example":%q}],
	 "responses":{"200":{"description":%q,"content":{%q:{"schema":{"$ref":"#/components/schemas/S"},"example":%q}}}}}}},"components":{"schemas":{"S":{"type":"object","title":%q,"properties":{%q:{"type":"string","description":%q}}}}}}`,
		attack, attack, attack, attack, attack, attack, attack, attack, attack, attack, attack, attack, attack, attack, attack, attack, attack, attack, attack)
	quoted := strings.ReplaceAll(strings.ReplaceAll(attack, `\`, `\\`), `"`, `\"`)
	sdl := fmt.Sprintf("\"%s\" type Query { \"%s\" a(\"%s\" b: String = \"%s\"): E @deprecated(reason: \"%s\") } \"%s\" enum E { \"%s\" X }", quoted, quoted, quoted, quoted, quoted, quoted, quoted)
	for id, doc := range map[string]string{"gold": b.document("orders", "openapi", openapi), "free": b.document("orders", "graphql", sdl)} {
		b.Call("PUT", "/api/portal/catalogue/entries/"+id, b.admin, fmt.Sprintf(
			`{"name":%q,"short_description":%q,"long_description":%q,"version":%q,"fields":{%q:%q},"show":true,"api_id":"orders","policy_id":%q,"documentation":%q}`, attack, attack, attack, attack, attack, attack, id, doc)).Want(200)
	}
	markdown := b.document("orders", "markdown", "# Hi\n"+attack+"\n[x](javascript:alert(1)) ![y](https://evil.example/p.png)")
	b.Call("POST", "/api/portal/catalogue/entries", b.admin, fmt.Sprintf(`{"id":"text","name":"Text","show":true,"api_id":"orders","policy_id":"gold","documentation":%q}`, markdown)).Want(201)

	w := b.browser()
	w.open("/portal/signup").submit("/portal/signup", "email", "ada@example.com", "password", "correct horse", "field.Company", attack).want(200, "/portal/signup")
	link := regexp.MustCompile(`/portal/verify\?token=\w+`).FindString(b.letter("ada@example.com", "/verify?token="))
	w.open(link).submit("/portal/verify", "password", "correct horse").want(200, "/portal/")
	for _, page := range []string{
		"/portal/", "/portal/?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", "/portal/apis/gold", "/portal/apis/gold/docs", "/portal/apis/gold/docs/op", "/portal/apis/gold/docs/type.S",
		"/portal/apis/free/docs", "/portal/apis/free/docs/query.a", "/portal/apis/free/docs/type.E", "/portal/apis/text/docs", "/portal/account", "/portal/request/gold",
	} {
		w.open(page)
		if w.status != 200 {
			t.Errorf("%s: %d", page, w.status)
		}
	}
	w.open("/portal/apis/text/docs").hides("evil.example").says("y")
	w.open("/portal/apis/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
	w.open("/portal/login?next=javascript:alert(1)")
	w.open("/portal/request/gold").submit("/portal/request/gold", "field.Why <script>alert(1)</script>", attack).want(200, "/portal/requests")
	id := b.Call("GET", "/api/portal/requests?state=pending", b.admin, "").Want(200).Object()["Data"].([]any)[0].(map[string]any)["id"].(string)
	b.Call("PUT", "/api/portal/requests/reject/"+id, b.admin, fmt.Sprintf(`{"reason":%q}`, attack)).Want(200)
	w.open("/portal/requests").says("rejected")
	w.open("/portal/webhooks").submit("/portal/webhooks", "name", attack, "url", "https://example.com/"+attack)
	w.open("/portal/webhooks").submit("/portal/webhooks", "name", attack, "url", "https://example.com/x").want(200, "/portal/webhooks")
	w.follow("I have stored it").want(200, w.at.Path)
}

// Gateways compare allowed_urls with the path below the listen path, whether or not upstreams
// get that.
func TestTheReferenceIsCutByThePathBelowTheListenPath(t *testing.T) {
	b := start(t)
	b.Call("POST", "/api/apis", b.admin, `{"api_id":"whole","name":"Whole","use_keyless":false,"proxy":{"listen_path":"/whole/","target_url":"http://up.example","strip_listen_path":false}}`).Want(200)
	b.Call("POST", "/api/portal/policies", b.admin, `{"id":"whole","name":"Whole","state":"active","access_rights":{"whole":{"api_id":"whole","allowed_urls":[{"url":"^/(list)?$","methods":["GET"]}]}}}`).Want(200)
	doc := b.document("whole", "openapi", `{"openapi":"3.0.3","info":{"title":"Whole","version":"1"},"paths":{"/whole":{"get":{"responses":{}}},"/whole/list":{"get":{"responses":{}}},"/whole/item":{"get":{"responses":{}}},"/wholesale/list":{"get":{"responses":{}}}}}`)
	b.Call("POST", "/api/portal/catalogue/entries", b.admin, fmt.Sprintf(`{"id":"whole","name":"Whole","show":true,"api_id":"whole","policy_id":"whole","documentation":%q}`, doc)).Want(201)
	const page = "/portal/apis/whole/docs"
	b.browser().open(page).want(200, page).says("GET /whole/list").hides("/whole/item", "/wholesale")
}

// A page is at most 40 KiB on the wire with all that it loads, but for the script of the
// playground on its own page.
func TestPagesAreSmall(t *testing.T) {
	b, _ := startTrying(t)
	b.Call("POST", "/api/apis", b.admin, `{"api_id":"graph","name":"Graph","use_keyless":true,"proxy":{"listen_path":"/graph/","target_url":"http://up.example"},"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":"type Query { a: Int }"}}`).Want(200)
	b.Call("POST", "/api/portal/catalogue/entries", b.admin, `{"id":"graph","name":"Graph","show":true,"api_id":"graph","is_keyless":true}`).Want(201)
	measure := func(w *browser, page string) {
		t.Helper()
		size := b.loaded(w, page)
		if w.at.Path != strings.Split(page, "?")[0] {
			t.Errorf("%s leads to %s", page, w.at)
		}
		for _, asset := range regexp.MustCompile(`(?:href|src)="(/portal/(?:assets|brand)[^"]*)"`).FindAllStringSubmatch(string(w.body), -1) {
			if !strings.Contains(asset[1], "/playground-") {
				size += b.loaded(b.browser(), asset[1])
			}
		}
		if size > 40<<10 {
			t.Errorf("%s: %d bytes", page, size)
		}
	}
	for _, page := range []string{"/portal/", "/portal/signup", "/portal/login", "/portal/forgot", "/portal/verify?token=x", "/portal/reset?token=x"} {
		measure(b.browser(), page)
	}
	w := b.signUp("ada@example.com")
	key := hashOf(w.open("/portal/request/gold").submit("/portal/request/gold").byID("secret"))
	for _, page := range []string{
		"/portal/", "/portal/apis/gold", "/portal/apis/gold/docs", "/portal/apis/gold/docs/listOrders", "/portal/apis/gold/docs/type.Order", "/portal/apis/graph/play",
		"/portal/request/free", "/portal/requests", "/portal/keys", "/portal/keys/" + key, "/portal/clients", "/portal/webhooks", "/portal/account",
	} {
		measure(w, page)
	}
}

// loaded opens an address and returns how many bytes it is on the wire, compressed.
func (b *bench) loaded(w *browser, path string) int {
	b.t.Helper()
	w.open(path)
	to, err := w.at.Parse(path)
	if err != nil {
		b.t.Fatal(err)
	}
	req, err := http.NewRequest("GET", to.String(), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := w.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Encoding") != "gzip" && len(body) > 1000 {
		b.t.Fatalf("%s: %d %q %v", path, resp.StatusCode, resp.Header.Get("Content-Encoding"), err)
	}
	if zip, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
		if _, err := io.ReadAll(zip); err != nil {
			b.t.Fatal(err)
		}
	}
	return len(body)
}
