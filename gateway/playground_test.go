package gateway_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/gatewaytest"
	"github.com/valyala/fasthttp"
)

// A page is what a gateway answers.
type page struct {
	*http.Response
	body string
}

// playgrounds is a gateway with GraphQL APIs that have a playground, and its upstream.
type playgrounds struct {
	*gatewaytest.Gateway
	asked atomic.Int64
	t     *testing.T
}

func withPlaygrounds(t *testing.T) *playgrounds {
	p := &playgrounds{t: t, Gateway: gatewaytest.Start(t, gatewaytest.Options{})}
	origin := testenv.Origin(t, func(ctx *fasthttp.RequestCtx) {
		p.asked.Add(1)
		ctx.SetBodyString(`{"data":{}}`)
	})
	var apis []*definition.API
	for _, api := range []struct{ id, access, playground string }{
		{"open", `"use_keyless":true`, `{"enabled":true}`},
		{"deep", `"use_keyless":true`, `{"enabled":true,"path":"tools/try/"}`},
		{"off", `"use_keyless":true`, `{"enabled":false,"path":"/playground"}`},
		{"keyed", `"org_id":"o"`, `{"enabled":true,"path":""}`},
		{"param", `"org_id":"o","auth_configs":{"authToken":{"use_param":true,"param_name":"k"}}`, `{"enabled":true,"path":"/play"}`},
	} {
		def, err := definition.ParseAPI(fmt.Appendf(nil, `{"api_id":%[1]q,"name":"\"><script>alert(1)</script>",%[2]s,"proxy":{"listen_path":"/%[1]s/","target_url":"http://%[4]s","strip_listen_path":%[5]v},
			"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":"type Query { a: Int }","playground":%[3]s}}`, api.id, api.access, api.playground, origin, api.id != "deep"))
		if err != nil {
			t.Fatal(err)
		}
		apis = append(apis, def)
	}
	if failed := p.Apply(&definition.Bundle{Revision: "1", APIs: apis}); len(failed) > 0 {
		t.Fatal(failed)
	}
	for key, session := range map[string]string{
		"key-of-all":    `{"org_id":"o","quota_max":1,"quota_renewal_rate":3600,"access_rights":{"keyed":{},"param":{}}}`,
		"key-of-others": `{"org_id":"o","access_rights":{"else":{}}}`,
	} {
		s, err := definition.ParseSession([]byte(session))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Store.Put(t.Context(), p.Hasher.Hash(key), s); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p *playgrounds) send(method, path string, headers ...string) page {
	p.t.Helper()
	req, err := http.NewRequest(method, "http://"+p.Addr+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "identity")
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return page{resp, string(body)}
}

// The playground is served below the listen path, G.7.
func TestThePlaygroundIsAPageAndAScript(t *testing.T) {
	p := withPlaygrounds(t)
	for path, wants := range map[string][]string{
		"/open/playground": {`src="playground/playground.js"`, `data-endpoint="./"`, `data-schema="playground/schema"`},
		"/deep/tools/try":  {`src="try/playground.js"`, `data-endpoint="./../"`},
	} {
		got := p.send("GET", path)
		if got.StatusCode != 200 || got.Header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: %d %s %s", path, got.StatusCode, got.Header, got.body)
		}
		for _, want := range wants {
			if !strings.Contains(got.body, want) {
				t.Errorf("%s lacks %s: %s", path, want, got.body)
			}
		}
		if strings.Contains(got.body, "alert(1)</script>") {
			t.Errorf("%s: the name is not escaped: %s", path, got.body)
		}
		policy := got.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "require-trusted-types-for 'script'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", path, policy)
		}
		if got.Header.Get("X-Content-Type-Options") != "nosniff" || got.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", path, got.Header)
		}
		script := p.send("GET", path+"/playground.js")
		if script.StatusCode != 200 || script.Header.Get("Content-Type") != "text/javascript; charset=utf-8" || len(script.body) < 100_000 {
			t.Errorf("%s: script %d %v, %d bytes", path, script.StatusCode, script.Header, len(script.body))
		}
	}
	if p.asked.Load() != 0 {
		t.Error("the upstream was asked")
	}
}

func TestTheScriptOfThePlaygroundIsCompressedAndKept(t *testing.T) {
	p := withPlaygrounds(t)
	const path = "/open/playground/playground.js"
	packed := p.send("GET", path, "Accept-Encoding: br, gzip")
	r, err := gzip.NewReader(strings.NewReader(packed.body))
	if err != nil || packed.Header.Get("Content-Encoding") != "gzip" || packed.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatal(err, packed.Header)
	}
	if script, err := io.ReadAll(r); err != nil || string(script) != p.send("GET", path).body {
		t.Errorf("the compressed script is another: %v", err)
	}
	tag := packed.Header.Get("ETag")
	if got := p.send("GET", path, "If-None-Match: "+tag); tag == "" || got.StatusCode != 304 || got.body != "" || got.Header.Get("ETag") != tag {
		t.Errorf("again: %d %v", got.StatusCode, got.Header)
	}
	if got := p.send("GET", path, `If-None-Match: "other"`); got.StatusCode != 200 {
		t.Errorf("another tag: %d", got.StatusCode)
	}
}

// Everything but GET of the two paths is an operation, as it is without a playground.
func TestOtherRequestsAreNotOfThePlayground(t *testing.T) {
	p := withPlaygrounds(t)
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"POST", "/open/playground", 400},
		{"PUT", "/open/playground", 405},
		{"GET", "/open/playground/", 400},
		{"GET", "/open/playgroundx", 400},
		{"GET", "/off/playground", 400},
		{"GET", "/off/playground/playground.js", 400},
		{"GET", "/deep/playground", 400},
		{"GET", "/open/playground.js", 400},
	} {
		if got := p.send(c.method, c.path, "Content-Type: application/json"); got.StatusCode != c.status || strings.Contains(got.body, "<html") {
			t.Errorf("%s %s: %d %.80s", c.method, c.path, got.StatusCode, got.body)
		}
	}
}

// Whoever may call the API may open its playground, and nobody else.
func TestThePlaygroundFollowsTheAuthenticationOfItsAPI(t *testing.T) {
	p := withPlaygrounds(t)
	for _, c := range []struct {
		path, key string
		status    int
	}{
		{"/keyed/playground", "", 401},
		{"/keyed/playground", "key-of-nobody", 403},
		{"/keyed/playground", "key-of-others", 403},
		{"/keyed/playground", "key-of-all", 200},
		{"/keyed/playground", "key-of-all", 200},
		{"/keyed/playground/playground.js", "key-of-all", 200},
		{"/keyed/playground/playground.js", "", 401},
		{"/param/play", "", 401},
		{"/param/play?k=wrong", "", 403},
		{"/keyed/playground?k=key-of-all", "", 401},
	} {
		var headers []string
		if c.key != "" {
			headers = []string{"Authorization: " + c.key}
		}
		if got := p.send("GET", c.path, headers...); got.StatusCode != c.status {
			t.Errorf("%s with %q: %d %.80s", c.path, c.key, got.StatusCode, got.body)
		}
	}
	got := p.send("GET", "/param/play?k=key-of-all")
	if got.StatusCode != 200 || !strings.Contains(got.body, `src="play/playground.js?k=key-of-all"`) || !strings.Contains(got.body, `data-param="k"`) || got.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v %s", got.StatusCode, got.Header, got.body)
	}
	if got := p.send("GET", "/param/play/playground.js?k=key-of-all"); got.StatusCode != 200 || !strings.Contains(got.Header.Get("Cache-Control"), "private") {
		t.Errorf("%d %v", got.StatusCode, got.Header)
	}
}

// The page's documentation and completion have what the caller's key may use, and no more.
func TestThePlaygroundHasTheSchemaOfItsCaller(t *testing.T) {
	p := withPlaygrounds(t)
	def, err := definition.ParseAPI([]byte(`{"api_id":"ruled","name":"Ruled","org_id":"o","proxy":{"listen_path":"/ruled/","target_url":"http://127.0.0.1:1"},
		"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":"type Query { me: User ticks: Int } type User { id: ID email: String }","cost":{"list_size":7},"playground":{"enabled":true}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if failed := p.Apply(&definition.Bundle{Revision: "2", APIs: []*definition.API{def}}); len(failed) > 0 {
		t.Fatal(failed)
	}
	for key, access := range map[string]string{
		"all":     `{}`,
		"deep":    `{"field_access_rights":[{"type_name":"Query","field_name":"me","limits":{"max_query_depth":2}}]}`,
		"no-mail": `{"restricted_types":[{"name":"User","fields":["email"]}]}`,
		"one":     `{"allowed_types":[{"name":"Query","fields":["ticks"]}]}`,
		"none":    `{"allowed_types":[{"name":"User","fields":["id"]}]}`,
		"hidden":  `{"disable_introspection":true}`,
	} {
		s, err := definition.ParseSession(fmt.Appendf(nil, `{"org_id":"o","rate":3,"per":3600,"max_query_depth":5,"access_rights":{"ruled":%s}}`, access))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Store.Put(t.Context(), p.Hasher.Hash(key), s); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		key       string
		status    int
		has, lack []string
	}{
		{"all", 200, []string{"email", "ticks", `"list_size":7`, `"max_depth":5`, `"depth_base":1`}, nil},
		{"deep", 200, []string{"email", `"field_name":"me","max_query_depth":2`}, nil},
		{"no-mail", 200, []string{"me: User", "id: ID", "ticks"}, []string{"email"}},
		{"one", 200, []string{"ticks"}, []string{"User", "me:"}},
		{"none", 200, []string{`"schema":""`}, []string{"User"}},
		{"hidden", 403, []string{"introspection is disabled"}, []string{"User", "Query"}},
		{"", 401, nil, []string{"User", "Query"}},
		{"unknown", 403, nil, []string{"User", "Query"}},
	} {
		var headers []string
		if c.key != "" {
			headers = []string{"Authorization: " + c.key}
		}
		got := p.send("GET", "/ruled/playground/schema", headers...)
		if got.StatusCode != c.status || c.status == 200 && (got.Header.Get("Content-Type") != "application/json" || got.Header.Get("Cache-Control") != "no-store") {
			t.Errorf("%q: %d %v %s", c.key, got.StatusCode, got.Header, got.body)
		}
		for _, want := range c.has {
			if !strings.Contains(got.body, want) {
				t.Errorf("%q lacks %s: %s", c.key, want, got.body)
			}
		}
		for _, wrong := range c.lack {
			if strings.Contains(got.body, wrong) {
				t.Errorf("%q shows %s: %s", c.key, wrong, got.body)
			}
		}
	}
	// Refusals count under the rate, and a schema that is known does not.
	for range 3 {
		p.send("GET", "/ruled/playground/schema", "Authorization: hidden")
	}
	if got := p.send("GET", "/ruled/playground/schema", "Authorization: hidden"); got.StatusCode != 429 {
		t.Errorf("refused often: %d %s", got.StatusCode, got.body)
	}
	for range 5 {
		if got := p.send("GET", "/ruled/playground/schema", "Authorization: none"); got.StatusCode != 200 {
			t.Fatalf("again: %d %s", got.StatusCode, got.body)
		}
	}
	if p.asked.Load() != 0 {
		t.Error("the upstream was asked")
	}
}

// A report-only policy takes nothing from the schema.
func TestThePlaygroundShowsWhatReportOnlyPoliciesWouldHide(t *testing.T) {
	p := withPlaygrounds(t)
	def, err := definition.ParseAPI([]byte(`{"api_id":"ruled","name":"Ruled","org_id":"o","proxy":{"listen_path":"/ruled/","target_url":"http://127.0.0.1:1"},
		"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":"type Query { me: Int mail: Int }","playground":{"enabled":true}}}`))
	if err != nil {
		t.Fatal(err)
	}
	policy, err := definition.ParsePolicy([]byte(`{"id":"trial","name":"Trial","org_id":"o","active":true,"enforcement":"measure","access_rights":{"ruled":{"api_id":"ruled","disable_introspection":true,"restricted_types":[{"name":"Query","fields":["mail"]}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if failed := p.Apply(&definition.Bundle{Revision: "2", APIs: []*definition.API{def}, Policies: []*definition.Policy{policy}}); len(failed) > 0 {
		t.Fatal(failed)
	}
	s, err := definition.ParseSession([]byte(`{"org_id":"o","apply_policies":["trial"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Store.Put(t.Context(), p.Hasher.Hash("tried"), s); err != nil {
		t.Fatal(err)
	}
	if got := p.send("GET", "/ruled/playground/schema", "Authorization: tried"); got.StatusCode != 200 || !strings.Contains(got.body, "mail") {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}
