package site_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/html"

	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/admin/portal"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/password"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// bench is a running admin with an API that the catalogue offers under two plans.
type bench struct {
	*admintest.Database
	*admintest.Client
	t    testing.TB
	keys *keystore.Memory
	log  *testenv.Log

	admin  string // access key
	server *admin.Server
}

func aMasterKey() secret.Key {
	key, err := secret.ParseKey(secret.New(strings.Repeat("0a", 32)))
	if err != nil {
		panic(err)
	}
	return key
}

func start(t testing.TB, change ...func(*admin.Deps)) *bench {
	t.Helper()
	b := &bench{t: t, Database: admintest.NewDatabase(t, "site"), keys: keystore.NewMemory(), log: new(testenv.Log)}
	deps := admin.Deps{
		Store: b.Open(store.Options{MaxConns: 10}), Keys: b.keys, Counters: counter.NewMemory(nil), MasterKey: aMasterKey(),
		KeyOptions: keys.Options{Hasher: &credential.Hasher{Prefix: credential.DefaultPrefix}, Passwords: password.NewHasher(2, 200, 20*time.Second)},
		LoginRate:  1000, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(b.log, nil)),
		Portal: portal.Settings{Mailbox: 10_000, PublicURL: "http://127.0.0.1/portal", Gateway: func() string { return "https://api.example.com" }},
	}
	for _, c := range change {
		c(&deps)
	}
	server, err := admin.New(deps)
	if err != nil {
		t.Fatal(err)
	}
	b.server = server
	b.Client, b.admin = admintest.NewClient(t, admintest.Serve(t, server)), admin.NewAccessKey()
	if created, err := server.Bootstrap(t.Context(), secret.New(b.admin)); err != nil || !created {
		t.Fatalf("bootstrap: %v, %v", created, err)
	}
	b.Call("POST", "/api/apis", b.admin, `{"api_id":"orders","name":"Orders API","use_keyless":false,"auth":{"auth_header_name":"Authorization"},"proxy":{"listen_path":"/orders/","target_url":"http://up.example","strip_listen_path":true}}`).Want(200)
	for _, id := range []string{"gold", "free"} {
		b.Call("POST", "/api/portal/policies", b.admin, fmt.Sprintf(
			`{"id":%q,"name":"Plan %s","state":"active","rate":10,"per":1,"quota_max":100,"quota_renewal_rate":3600,"access_rights":{"orders":{"api_id":"orders","versions":["Default"]}}}`, id, id)).Want(200)
		b.entry(id, "Orders "+id, "")
	}
	return b
}

// entry offers a plan for the API orders; more are further members.
func (b *bench) entry(id, name, more string) {
	b.t.Helper()
	b.Call("POST", "/api/portal/catalogue/entries", b.admin, fmt.Sprintf(
		`{"id":%q,"name":%q,"short_description":"All orders.","show":true,"api_id":"orders","policy_id":%q%s}`, id, name, id, more)).Want(201)
}

// configure replaces the configuration of the portal.
func (b *bench) configure(members string) {
	b.t.Helper()
	b.Call("PUT", "/api/portal/configuration", b.admin, "{"+members+"}").Want(200)
}

// letter waits for the last letter to an address, and returns its text.
func (b *bench) letter(to, has string) string {
	b.t.Helper()
	var text string
	wait.Until(b.t, "a letter to "+to, func() bool {
		list := b.Call("GET", "/api/portal/mailbox?page_size=100&q="+url.QueryEscape(to), b.admin, "").Want(200)
		for _, each := range list.Object()["Data"].([]any) {
			id := each.(map[string]any)["id"].(string)
			text = b.Call("GET", "/api/portal/mailbox/"+id, b.admin, "").Want(200).Text("text")
			if strings.Contains(text, has) {
				return true
			}
		}
		return false
	})
	return text
}

// A browser keeps cookies and submits forms, without scripts.
type browser struct {
	b      *bench
	client *http.Client
	at     *url.URL
	status int
	header http.Header
	body   []byte
	page   *html.Node
}

func (b *bench) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	at, err := url.Parse(b.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	return &browser{b: b, client: &http.Client{Jar: jar, Timeout: 30 * time.Second}, at: at}
}

func (w *browser) send(req *http.Request) *browser {
	w.b.t.Helper()
	resp, err := w.client.Do(req)
	if err != nil {
		w.b.t.Fatal(err)
	}
	defer resp.Body.Close()
	if w.body, err = io.ReadAll(resp.Body); err != nil {
		w.b.t.Fatal(err)
	}
	w.status, w.header, w.at = resp.StatusCode, resp.Header, resp.Request.URL
	if w.page, err = html.Parse(bytes.NewReader(w.body)); err != nil {
		w.b.t.Fatal(err)
	}
	w.inspect()
	return w
}

// inspect checks what every page has to have.
func (w *browser) inspect() {
	w.b.t.Helper()
	if !strings.HasPrefix(w.header.Get("Content-Type"), "text/html") {
		return
	}
	if policy := w.header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self'") || !strings.Contains(policy, "require-trusted-types-for 'script'") {
		w.b.t.Errorf("%s: policy %q", w.at, policy)
	}
	for name, want := range map[string]string{"Content-Security-Policy": "frame-ancestors 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
		if !strings.Contains(w.header.Get(name), want) {
			w.b.t.Errorf("%s: %s is %q", w.at, name, w.header.Get(name))
		}
	}
	w.harmless(w.page)
	if n := len(all(w.page, "h1")); n != 1 {
		w.b.t.Errorf("%s: %d headings of the first level", w.at, n)
	}
}

// harmless checks that nothing on a page runs or loads but what the site serves: what the
// strict policy would refuse is not there at all.
func (w *browser) harmless(n *html.Node) {
	w.b.t.Helper()
	if n.Type == html.ElementNode {
		own := strings.HasPrefix(attr(n, "src"), "/") && !strings.HasPrefix(attr(n, "src"), "//")
		if n.Data == "style" || n.Data == "iframe" || n.Data == "object" || (n.Data == "script" || n.Data == "img") && !own || n.Data == "script" && n.FirstChild != nil {
			w.b.t.Errorf("%s: the page has an element %s: %s", w.at, n.Data, w.body)
		}
		for _, a := range n.Attr {
			scheme, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(a.Val)), ":")
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || (a.Key == "href" || a.Key == "action" || a.Key == "src") && (scheme == "javascript" || scheme == "data") {
				w.b.t.Errorf("%s: the page has %s=%q", w.at, a.Key, a.Val)
			}
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		w.harmless(c)
	}
}

// open opens a page of the portal.
func (w *browser) open(path string) *browser {
	w.b.t.Helper()
	to, err := w.at.Parse(path)
	if err != nil {
		w.b.t.Fatal(err)
	}
	req, err := http.NewRequest("GET", to.String(), nil)
	if err != nil {
		w.b.t.Fatal(err)
	}
	return w.send(req)
}

// follow opens the link with a text.
func (w *browser) follow(text string) *browser {
	w.b.t.Helper()
	for _, a := range all(w.page, "a") {
		if strings.TrimSpace(textOf(a)) == text {
			return w.open(attr(a, "href"))
		}
	}
	w.b.t.Fatalf("%s has no link %q: %s", w.at, text, w.body)
	return w
}

// all returns the elements of a name below a node.
func all(n *html.Node, name string) (found []*html.Node) {
	if n.Type == html.ElementNode && n.Data == name {
		found = append(found, n)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		found = append(found, all(c, name)...)
	}
	return found
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var b strings.Builder
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.WriteString(textOf(c))
	}
	return b.String()
}

// form returns the form on the page that posts to a path, with what it would send.
func (w *browser) form(path string) (to *url.URL, sent url.Values) {
	w.b.t.Helper()
	for _, f := range all(w.page, "form") {
		to, err := w.at.Parse(attr(f, "action"))
		if err != nil || to.Path != path || attr(f, "method") != "post" {
			continue
		}
		sent := url.Values{}
		for _, in := range all(f, "input") {
			_, checked := find(in, "checked")
			if kind := attr(in, "type"); (kind == "checkbox" || kind == "radio") && !checked {
				continue
			}
			sent.Add(attr(in, "name"), attr(in, "value"))
		}
		for _, in := range all(f, "textarea") {
			sent.Add(attr(in, "name"), textOf(in))
		}
		return to, sent
	}
	w.b.t.Fatalf("%s (%d): no form posts to %s: %s", w.at, w.status, path, w.body)
	return nil, nil
}

func find(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// submit fills in and sends a form of the page. Pairs are names and values.
func (w *browser) submit(path string, pairs ...string) *browser {
	w.b.t.Helper()
	to, sent := w.form(path)
	for i := 0; i < len(pairs); i += 2 {
		sent.Set(pairs[i], pairs[i+1])
	}
	return w.post(to.String(), sent, "Sec-Fetch-Site", "same-origin")
}

func (w *browser) post(to string, sent url.Values, headers ...string) *browser {
	w.b.t.Helper()
	req, err := http.NewRequest("POST", to, strings.NewReader(sent.Encode()))
	if err != nil {
		w.b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return w.send(req)
}

// want checks status and path of the page.
func (w *browser) want(status int, path string) *browser {
	w.b.t.Helper()
	if w.status != status || w.at.Path != path {
		w.b.t.Fatalf("%s: %d; want %s: %d: %s", w.at, w.status, path, status, textOf(w.page))
	}
	return w
}

// says checks that readers of the page see texts.
func (w *browser) says(texts ...string) *browser {
	w.b.t.Helper()
	seen := strings.Join(strings.Fields(textOf(w.page)), " ")
	for _, text := range texts {
		if !strings.Contains(seen, text) {
			w.b.t.Errorf("%s does not say %q: %s", w.at, text, seen)
		}
	}
	return w
}

// hides checks that the page does not hold texts.
func (w *browser) hides(texts ...string) *browser {
	w.b.t.Helper()
	for _, text := range texts {
		if strings.Contains(string(w.body), text) {
			w.b.t.Errorf("%s has %q: %s", w.at, text, w.body)
		}
	}
	return w
}

// element returns the element with an id.
func (w *browser) element(id string) *html.Node {
	w.b.t.Helper()
	var walk func(n *html.Node) *html.Node
	walk = func(n *html.Node) *html.Node {
		if attr(n, "id") == id {
			return n
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if found := walk(c); found != nil {
				return found
			}
		}
		return nil
	}
	found := walk(w.page)
	if found == nil {
		w.b.t.Fatalf("%s has no element %q: %s", w.at, id, w.body)
	}
	return found
}

// byID returns the text of the element with an id.
func (w *browser) byID(id string) string {
	w.b.t.Helper()
	var walk func(n *html.Node) string
	walk = func(n *html.Node) string {
		if attr(n, "id") == id {
			return textOf(n)
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if text := walk(c); text != "" {
				return text
			}
		}
		return ""
	}
	text := walk(w.page)
	if text == "" {
		w.b.t.Fatalf("%s has no element %q: %s", w.at, id, w.body)
	}
	return text
}

// signUp registers a developer and confirms the address.
func (b *bench) signUp(email string) *browser {
	b.t.Helper()
	w := b.browser()
	w.open("/portal/signup").submit("/portal/signup", "email", email, "password", "correct horse").want(200, "/portal/signup").says("Check your mail", email)
	link := regexp.MustCompile(`/portal/verify\?token=\w+`).FindString(b.letter(email, "/verify?token="))
	w.open(link).submit("/portal/verify", "password", "correct horse").want(200, "/portal/").says(email, "Sign out")
	return w
}
