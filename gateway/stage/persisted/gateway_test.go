package persisted_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/stage/graphql"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/gatewaytest"
	"github.com/valyala/fasthttp"
)

// echo answers with what it was asked, and with a status and header of its own.
func echo(t *testing.T) string {
	return "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) {
		ctx.SetStatusCode(203)
		ctx.Response.Header.Set("X-Up", "yes")
		fmt.Fprintf(ctx, "%s %s %s %s %s", ctx.Method(), ctx.RequestURI(), ctx.Request.Header.ContentType(), ctx.Request.Header.Peek("X-Added"), ctx.Request.Body())
	})
}

// stored returns the definition of an API with two stored operations.
func stored(id, target string) *definition.API {
	const list = `{"persist_graphql": [
		{"method": "GET", "path": "/countries/{code}", "operation": "query($code: ID!) { country(code: $code) { name } }", "variables": {"code": "$path.code"}},
		{"method": "POST", "path": "/first/{n}", "operation": "query($n: Int) { countries(first: $n) { secret } }", "variables": {"n": "$path.n"}}
	]}`
	return &definition.API{
		ID: id, Name: id, OrgID: "o", UseKeyless: true, EnableContextVars: true,
		Proxy: definition.Proxy{ListenPath: "/" + id + "/", TargetURL: target + "/graphql?k=v", StripListenPath: true},
		VersionData: &definition.VersionData{NotVersioned: true, Versions: map[string]*definition.Version{
			"Default": {UseExtendedPaths: true, ExtendedPaths: testenv.Part[definition.ExtendedPaths](list)},
		}},
	}
}

// governed makes it a GraphQL API that asks for keys.
func governed(def *definition.API) *definition.API {
	def.UseKeyless = false
	def.GraphQL = &definition.GraphQL{
		Enabled: true, ExecutionMode: definition.ModeProxy,
		Schema: "type Query { country(code: ID!): Country countries(first: Int): [Country] } type Country { name: String secret: String }",
		Proxy:  &definition.GraphQLProxy{RequestHeaders: map[string]string{"X-Added": "$svc_context.token"}},
	}
	return def
}

func send(t *testing.T, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

func TestAPathOfAPlainAPIAnswersWithItsOperation(t *testing.T) {
	g := gatewaytest.Start(t, gatewaytest.Options{})
	g.MustLoad(stored("a", echo(t)))
	const country = `{"query":"query($code: ID!) { country(code: $code) { name } }","variables":{"code":"D/\"E"}}`
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/a/countries/D%2F%22E?x=1", "", 203, "POST /graphql?k=v application/json  " + country},
		{"HEAD", "/a/countries/D%2F%22E", "", 203, ""},
		{"POST", "/a/first/5", strings.Repeat("ignored", 10_000), 203, `POST /graphql?k=v application/json  {"query":"query($n: Int) { countries(first: $n) { secret } }","variables":{"n":5}}`},
		{"POST", "/a/first/five", "", 400, `{"errors":[{"message":"Variable \"$n\" got invalid value \"five\"; Int cannot represent non-integer value: \"five\""}]}`},
		{"PUT", "/a/first/5?x=1", "x", 203, "PUT /graphql/first/5?k=v&x=1 text/plain  x"},
		{"PUT", "/a/other?x=1", "x", 203, "PUT /graphql/other?k=v&x=1 text/plain  x"},
	} {
		resp, body := send(t, c.method, "http://"+g.Addr+c.path, c.body, "Content-Type: text/plain")
		if resp.StatusCode != c.status || body != c.want {
			t.Errorf("%s %s: %d %s\nwant %d %s", c.method, c.path, resp.StatusCode, body, c.status, c.want)
		}
		if up := resp.Header.Get("X-Up"); (up == "yes") != (c.status == 203) {
			t.Errorf("%s %s: X-Up is %q", c.method, c.path, up)
		}
	}
}

func TestAPathOfAGraphQLAPIIsGovernedAndCounted(t *testing.T) {
	g := gatewaytest.Start(t, gatewaytest.Options{
		GraphQL: func(o *graphql.Options) { o.MaxBody = 64 << 10 },
		Deps:    gatewaytest.WithLimitHeaders,
	})
	g.Put("the-key", &definition.Session{
		OrgID: "o", Limits: definition.Limits{QuotaMax: 10, QuotaRenewalRate: 3600},
		AccessRights: map[string]*definition.Access{"a": {
			APIID: "a", Versions: []string{"Default"}, RestrictedTypes: []definition.TypeFields{{Name: "Country", Fields: []string{"secret"}}},
		}},
	})
	g.MustLoad(governed(stored("a", echo(t))))
	for _, c := range []struct {
		method, path string
		status       int
		want, left   string
	}{
		{"GET", "/a/countries/DE", 203, `POST /graphql?k=v application/json the-key {"query":"query($code: ID!) { country(code: $code) { name } }","variables":{"code":"DE"}}`, "9"},
		{"POST", "/a/first/5", 400, `{"errors":[{"message":"field: secret is restricted on type: Country"}]}`, ""},
		{"POST", "/a/first/x", 400, `{"errors":[{"message":"Variable \"$n\" got invalid value \"x\"; Int cannot represent non-integer value: \"x\""}]}`, ""},
		{"DELETE", "/a/first/5", 405, `{"errors":[{"message":"The method is not one of GraphQL; use POST, or GET for queries."}]}`, ""},
		{"GET", "/a/?query={countries{name}}", 203, `GET /graphql?k=v&query={countries{name}}  the-key `, "8"},
		{"GET", "/a/countries/DE", 203, `POST /graphql?k=v application/json the-key {"query":"query($code: ID!) { country(code: $code) { name } }","variables":{"code":"DE"}}`, "7"},
	} {
		resp, body := send(t, c.method, "http://"+g.Addr+c.path, "", "Authorization: the-key")
		if resp.StatusCode != c.status || body != c.want || resp.Header.Get("X-Ratelimit-Remaining") != c.left {
			t.Errorf("%s %s: %d %s, %s left\nwant %d %s, %s left", c.method, c.path, resp.StatusCode, body, resp.Header.Get("X-Ratelimit-Remaining"), c.status, c.want, c.left)
		}
	}
	if resp, _ := send(t, "GET", "http://"+g.Addr+"/a/countries/DE", ""); resp.StatusCode != 401 {
		t.Errorf("without a key: %d", resp.StatusCode)
	}
}
