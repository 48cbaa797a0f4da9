package site_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin"
)

// A player answers calls with what it is asked.
type player struct {
	mu     sync.Mutex
	answer admin.PlayedAnswer
	err    error
	calls  []map[string]any
}

func (p *player) Play(_ context.Context, call *admin.PlayedCall) (*admin.PlayedAnswer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var described map[string]any
	if err := json.Unmarshal(call.Description, &described); err != nil {
		return nil, err
	}
	p.calls = append(p.calls, described)
	answer := p.answer
	return &answer, p.err
}

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// startTrying starts a portal where calls can be made; entry gold has a reference.
func startTrying(t *testing.T) (*bench, *player) {
	t.Helper()
	p := &player{answer: admin.PlayedAnswer{Sent: true, Status: 200, Headers: []admin.PlayedHeader{{Name: "X-A", Value: attack}}, Body: []byte(`{"a":"` + `<script>alert(1)</script>` + `"}`), RequestID: "4bf9", Took: 84 * time.Millisecond, Report: json.RawMessage(`{"outcome":{"allowed":true}}`)}}
	b := start(t, func(d *admin.Deps) { d.Try, d.Portal.Playground = p, packed(t, "script") })
	b.configure(`"require_key_approval":false`)
	doc := b.document("orders", "openapi", ordersDocument)
	b.Call("PUT", "/api/portal/catalogue/entries/gold", b.admin, fmt.Sprintf(`{"name":"Gold","show":true,"api_id":"orders","policy_id":"gold","documentation":%q}`, doc)).Want(200)
	return b, p
}

func TestAnOperationIsTriedWithoutScripts(t *testing.T) {
	b, p := startTrying(t)
	const page = "/portal/apis/gold/docs/getItem"
	b.browser().open(page).want(200, page).says("Sign in to call the API").hides(`action="/portal/try`)
	w := b.signUp("ada@example.com")
	w.open(page).says("You have no key for this API yet").hides(`action="/portal/try`)
	key := hashOf(w.open("/portal/request/gold").submit("/portal/request/gold").byID("secret"))

	w.open(page).submit("/portal/try", "key", key).want(400, "/portal/try").says("Please fill in what is marked")
	w.submit("/portal/try", "key", key, "path.id", "7/../8?x").want(200, "/portal/try").says("200 OK", "84 ms", "4bf9", `"a": "<script>alert(1)</script>"`, attack)
	if call := p.calls[0]; call["url"] != "/orders/item/7%2F..%2F8%3Fx" || call["method"] != "GET" || call["key_hash"] != key {
		t.Errorf("%v", call)
	}
	if got := w.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q", got)
	}

	p.answer = admin.PlayedAnswer{Sent: true, Status: 429, Body: []byte(`{"error":"quota"}`), Report: json.RawMessage(`{"steps":[{"stage":"auth","result":"ok"},{"stage":"limit","result":"fail","said":"quota 100 of 100","facts":[{"rule":"quota","value":"100 in 1 h","seen":"100 used","from":"policy gold"}]}],"outcome":{"allowed":false,"reason":"quota_exceeded"}}`)}
	w.submit("/portal/try", "key", key, "path.id", "7").want(200, "/portal/try").says("429", "The gateway refused the call. The quota of the plan was used up.", "100 in 1 h; the call: 100 used (policy gold)", "✓ auth", "✗ limit: quota 100 of 100")
	p.answer = admin.PlayedAnswer{Sent: false}
	w.submit("/portal/try", "key", key, "path.id", "7").want(200, "/portal/try").says("The call does not reach the API")
	p.err = context.DeadlineExceeded
	w.submit("/portal/try", "key", key, "path.id", "7").want(504, "/portal/try").says("did not answer within 10s")
	p.err = nil

	made := len(p.calls)
	to, sent := w.form("/portal/try")
	sent.Set("path.id", "7")
	forged := url.Values{"api": sent["api"], "entry": sent["entry"], "path.id": {"7"}, "key": {key}, "token": {"x"}}
	w.post(to.String(), forged, "Sec-Fetch-Site", "same-origin").want(403, "/portal/try")
	w.post(to.String(), sent, "Sec-Fetch-Site", "cross-site").want(403, "/portal/try")
	if len(p.calls) != made {
		t.Error("a form of another site makes calls")
	}
}

// A developer calls with their own keys alone, and only what their plan includes.
func TestADeveloperTriesOnlyWithTheirOwnKeys(t *testing.T) {
	b, p := startTrying(t)
	b.Call("POST", "/api/apis", b.admin, `{"api_id":"other","name":"Other","use_keyless":false,"proxy":{"listen_path":"/other/","target_url":"http://up.example"}}`).Want(200)
	b.Call("POST", "/api/portal/policies", b.admin, `{"id":"elsewhere","name":"Elsewhere","state":"active","access_rights":{"other":{"api_id":"other"}}}`).Want(200)
	b.Call("POST", "/api/portal/catalogue/entries", b.admin, `{"id":"elsewhere","name":"Elsewhere","show":true,"api_id":"other","policy_id":"elsewhere"}`).Want(201)
	ada, bob := b.signUp("ada@example.com"), b.signUp("bob@example.com")
	key := func(w *browser, plan string) string {
		return hashOf(w.open("/portal/request/" + plan).submit("/portal/request/" + plan).byID("secret"))
	}
	adas, bobs, beyond := key(ada, "gold"), key(bob, "gold"), key(ada, "elsewhere")
	const page = "/portal/apis/gold/docs/getItem"
	ada.open(page).hides(bobs, beyond)
	ada.submit("/portal/try", "key", bobs, "path.id", "7").want(404, "/portal/try")
	ada.open(page).submit("/portal/try", "key", beyond, "path.id", "7").want(403, "/portal/try").says("no plan of the key includes this API")
	ada.open(page).submit("/portal/try", "entry", "none", "path.id", "7").want(404, "/portal/try")
	if len(p.calls) != 0 {
		t.Errorf("%d calls were made", len(p.calls))
	}
	ada.open(page).submit("/portal/try", "key", adas, "path.id", "7").want(200, "/portal/try")
}

func TestThePlaygroundOfAPlan(t *testing.T) {
	b, p := startTrying(t)
	const sdl = `type Query { country: Country secret: Int } type Country { name: String population: Int }`
	b.Call("POST", "/api/apis", b.admin, fmt.Sprintf(`{"api_id":"graph","name":"Graph","use_keyless":false,"proxy":{"listen_path":"/graph/","target_url":"http://up.example"},"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":%q}}`, sdl)).Want(200)
	b.Call("POST", "/api/portal/policies", b.admin, `{"id":"reader","name":"Reader","state":"active","rate":1,"per":1,"access_rights":{"graph":{"api_id":"graph","restricted_types":[{"name":"Query","fields":["secret"]}]}}}`).Want(200)
	doc := b.document("graph", "graphql", sdl)
	b.Call("POST", "/api/portal/catalogue/entries", b.admin, fmt.Sprintf(`{"id":"graph","name":"Graph","show":true,"api_id":"graph","policy_id":"reader","documentation":%q}`, doc)).Want(201)
	const page = "/portal/apis/graph/play"
	b.browser().open(page).want(200, "/portal/login")
	w := b.signUp("ada@example.com")
	w.open(page).want(200, page).says("you have none for it yet").hides("playground-")
	key := hashOf(w.open("/portal/request/reader").submit("/portal/request/reader").byID("secret"))
	w.open("/portal/apis/graph/docs/query.country").follow("Open in the playground").want(200, page)
	w.says("The playground needs JavaScript", "curl", "https://api.example.com/graph", "Reader")
	host := w.element("playground")
	if attr(host, "data-relay") != page || !strings.Contains(attr(host, "data-query"), "country") {
		t.Errorf("%v", host.Attr)
	}
	w.open(page+"/schema?key="+key).want(200, page+"/schema")
	if got := string(w.body); !strings.Contains(got, "country") || strings.Contains(got, "secret") {
		t.Errorf("%s", got)
	}
	ask := func(status int, has string, pairs ...string) {
		t.Helper()
		sent := url.Values{"token": {attr(host, "data-token")}, "key": {key}, "query": {"{ a }"}}
		for i := 0; i < len(pairs); i += 2 {
			sent.Set(pairs[i], pairs[i+1])
		}
		at, err := w.at.Parse(page)
		if err != nil {
			t.Fatal(err)
		}
		if w.post(at.String(), sent, "Sec-Fetch-Site", "same-origin"); w.status != status || !strings.Contains(string(w.body), has) || !strings.HasPrefix(w.header.Get("Content-Type"), "application/json") && status != 403 {
			t.Errorf("%v: %d %s %s", pairs, w.status, w.header.Get("Content-Type"), w.body)
		}
	}
	p.answer.Body = []byte(`{"data":1}`)
	ask(200, `"status":200`, "variables", `{"n":1}`, "operation", "A", "headers", `{"X-Y":"z"}`)
	if got, want := p.calls[0]["body"], `{"operationName":"A","query":"{ a }","variables":{"n":1}}`; got != want || p.calls[0]["url"] != "/graph/" || p.calls[0]["key_hash"] != key {
		t.Errorf("%v", p.calls[0])
	}
	ask(400, "variables: must be JSON", "variables", "{")
	ask(400, "headers: must be", "headers", "[]")
	ask(400, "is set by the gateway", "headers", `{"X-Forwarded-For":"1"}`)
	ask(404, "Could not retrieve", "key", "none")
	ask(403, "no longer valid", "token", "x")
	w.open("/portal/apis/gold/play").want(404, "/portal/apis/gold/play").says("There is no playground")
	script := w.open(page).element("playground").NextSibling
	for script != nil && script.Data != "script" {
		script = script.NextSibling
	}
	for encoding, want := range map[string]string{"gzip": string(packed(t, "script")), "identity": "script"} {
		if got := b.fetch(attr(script, "src"), encoding); got != want {
			t.Errorf("%s: %q", encoding, got)
		}
	}
}

// fetch returns the bytes of an address as they are sent.
func (b *bench) fetch(path, encoding string) string {
	b.t.Helper()
	req, err := http.NewRequest("GET", b.URL+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", encoding)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		b.t.Fatal(err)
	}
	return body.String()
}

// What operators write in Markdown is shown as their preview shows it, and runs nothing.
func TestADescriptionIsMarkdown(t *testing.T) {
	b := start(t)
	b.Call("PUT", "/api/portal/catalogue/entries/gold", b.admin, fmt.Sprintf(`{"name":"Gold","show":true,"api_id":"orders","policy_id":"gold","long_description":%q}`,
		"### About\n\n##### Deeper\n\n## Beside\n\nAll **orders**, [more](https://docs.example/).\n\n- one\n- two\n\n<script>alert(1)</script>\n\n[x](javascript:alert(1)) ![tracked](https://evil.example/p.png) "+attack)).Want(200)
	w := b.browser().open("/portal/apis/gold").want(200, "/portal/apis/gold").says("About", "tracked").hides("**orders**", "evil.example", "<script>alert", "javascript:")
	for name, text := range map[string]string{"strong": "orders", "li": "one", "h2": "About", "h3": "Deeper"} {
		found := false
		for _, n := range all(w.page, name) {
			found = found || textOf(n) == text
		}
		if !found {
			t.Errorf("no %s with %q", name, text)
		}
	}
	deep := strings.Repeat("*a ", 6000)
	b.Call("PUT", "/api/portal/catalogue/entries/free", b.admin, fmt.Sprintf(`{"name":"Free","show":true,"api_id":"orders","policy_id":"free","long_description":%q}`, deep)).Want(200)
	b.browser().open("/portal/apis/free").want(200, "/portal/apis/free").says("*a *a")
}

func TestVisitorsSeeThePortalOfItsOrganisation(t *testing.T) {
	b := start(t, func(d *admin.Deps) { d.Portal.Organisation = "second" })
	b.browser().open("/portal/").want(404, "/portal/").says("portal.organisation")
	b.Call("POST", "/api/orgs", b.admin, `{"id":"second","name":"Second"}`).Want(201)
	b.Call("POST", "/api/apis?org_id=second", b.admin, `{"api_id":"theirs","name":"Theirs","use_keyless":true,"proxy":{"listen_path":"/theirs/","target_url":"http://up.example"}}`).Want(200)
	b.Call("POST", "/api/portal/catalogue/entries?org_id=second", b.admin, `{"id":"theirs","name":"Their API","show":true,"api_id":"theirs","is_keyless":true}`).Want(201)
	b.Call("PUT", "/api/portal/brand?org_id=second", b.admin, `{"name":"Second developers"}`).Want(200)
	b.browser().open("/portal/").want(200, "/portal/").says("Second developers", "Their API").hides("Orders gold")
	w := b.browser()
	w.open("/portal/signup").submit("/portal/signup", "email", "ada@example.com", "password", "correct horse").want(200, "/portal/signup")
	if n := b.Count("select count(*) from developers where org_id = 'second'"); n != 1 {
		t.Errorf("%d developers of the organisation", n)
	}

	// Developers of another organisation see theirs.
	b.Call("POST", "/api/portal/developers", b.admin, `{"email":"bob@example.com","password":"correct horse"}`).Want(200)
	org := b.Text("select org_id from developers where email = 'bob@example.com'")
	session := b.Call("POST", "/api/portal/login?org_id="+org, "", `{"email":"bob@example.com","password":"correct horse"}`).Want(200).Text("access_key")
	other := b.browser()
	other.client.Jar.SetCookies(other.at, []*http.Cookie{{Name: "sluice-portal", Value: session, Path: "/"}})
	other.open("/portal/").want(200, "/portal/").says("bob@example.com", "Orders gold").hides("Their API", "Second developers")
}
