package persisted_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/access"
	"github.com/sluicegate/sluice/gateway/auth"
	"github.com/sluicegate/sluice/gateway/graphql"
	"github.com/sluicegate/sluice/gateway/limit"
	"github.com/sluicegate/sluice/gateway/observe"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/valyala/fasthttp"
)

// serve runs a gateway on loopback until the test ends.
func serve(t *testing.T, store keystore.Store, apis ...*definition.API) (addr string) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	sessions := auth.NewSessions(auth.SessionOptions{
		Store: store, Hasher: &credential.Hasher{}, Log: log, Size: 100, TTL: time.Minute,
		UnknownSize: 100, UnknownTTL: time.Second, Timeout: 30 * time.Second,
	})
	watch := observe.New(observe.Options{Version: "test", Log: log})
	pools := upstream.NewPools()
	limiter := limit.New(limit.Options{Counter: counter.NewMemory(nil), Log: log})
	g := gateway.New(gateway.Deps{
		Config: gateway.Config{Wire: wire.Config{
			MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 1 << 20,
			ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 30 * time.Second,
		}},
		Stages: gateway.Stages{
			Auth: auth.New(sessions, 3), Access: access.New(access.Options{Log: log}), Limit: limiter, Pools: pools,
			Headers:  limit.NewHeaders(limit.Names{Limit: "X-RateLimit-Limit", Remaining: "X-RateLimit-Remaining"}),
			GraphQL:  graphql.New(graphql.Options{MaxBody: 64 << 10, Cache: 1 << 20, RefusedCache: 1 << 20, Rate: limiter.Rate, Log: log}),
			Upstream: upstream.Config{DialTimeout: 30 * time.Second, ResponseTimeout: 30 * time.Second, MaxConns: 100, IdleTimeout: time.Minute},
			Meter:    watch.NewMeter,
		},
		Observe: watch, Log: log,
	})
	for id, err := range g.Apply(&definition.Bundle{Revision: "1", APIs: apis}) {
		t.Fatalf("%s is not served: %v", id, err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- g.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		if err := g.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-done; !errors.Is(err, wire.ErrStopped) {
			t.Errorf("serve: %v", err)
		}
		pools.Close()
	})
	return ln.Addr().String()
}

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
			"Default": {UseExtendedPaths: true, ExtendedPaths: json.RawMessage(list)},
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
	addr := serve(t, keystore.NewMemory(), stored("a", echo(t)))
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
		{"PUT", "/a/first/5", "x", 405, "{\n    \"error\": \"Method Not Allowed\"\n}"},
		{"PUT", "/a/other?x=1", "x", 203, "PUT /graphql/other?k=v&x=1 text/plain  x"},
	} {
		resp, body := send(t, c.method, "http://"+addr+c.path, c.body, "Content-Type: text/plain")
		if resp.StatusCode != c.status || body != c.want {
			t.Errorf("%s %s: %d %s\nwant %d %s", c.method, c.path, resp.StatusCode, body, c.status, c.want)
		}
		if up := resp.Header.Get("X-Up"); (up == "yes") != (c.status == 203) {
			t.Errorf("%s %s: X-Up is %q", c.method, c.path, up)
		}
		if allow := resp.Header.Get("Allow"); (allow == "POST") != (c.status == 405) {
			t.Errorf("%s %s: Allow is %q", c.method, c.path, allow)
		}
	}
}

func TestAPathOfAGraphQLAPIIsGovernedAndCounted(t *testing.T) {
	store := keystore.NewMemory()
	err := store.Put(t.Context(), (&credential.Hasher{}).Hash("the-key"), &definition.Session{
		OrgID: "o", Limits: definition.Limits{QuotaMax: 10, QuotaRenewalRate: 3600},
		AccessRights: map[string]*definition.Access{"a": {
			APIID: "a", Versions: []string{"Default"}, RestrictedTypes: []definition.TypeFields{{Name: "Country", Fields: []string{"secret"}}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	addr := serve(t, store, governed(stored("a", echo(t))))
	for _, c := range []struct {
		method, path string
		status       int
		want, left   string
	}{
		{"GET", "/a/countries/DE", 203, `POST /graphql?k=v application/json the-key {"query":"query($code: ID!) { country(code: $code) { name } }","variables":{"code":"DE"}}`, "9"},
		{"POST", "/a/first/5", 400, `{"errors":[{"message":"field: secret is restricted on type: Country"}]}`, ""},
		{"POST", "/a/first/x", 400, `{"errors":[{"message":"Variable \"$n\" got invalid value \"x\"; Int cannot represent non-integer value: \"x\""}]}`, ""},
		{"DELETE", "/a/first/5", 405, "{\n    \"error\": \"Method Not Allowed\"\n}", ""},
		{"GET", "/a/?query={countries{name}}", 203, `GET /graphql?k=v&query={countries{name}}  the-key `, "8"},
		{"GET", "/a/countries/DE", 203, `POST /graphql?k=v application/json the-key {"query":"query($code: ID!) { country(code: $code) { name } }","variables":{"code":"DE"}}`, "7"},
	} {
		resp, body := send(t, c.method, "http://"+addr+c.path, "", "Authorization: the-key")
		if resp.StatusCode != c.status || body != c.want || resp.Header.Get("X-Ratelimit-Remaining") != c.left {
			t.Errorf("%s %s: %d %s, %s left\nwant %d %s, %s left", c.method, c.path, resp.StatusCode, body, resp.Header.Get("X-Ratelimit-Remaining"), c.status, c.want, c.left)
		}
	}
	if resp, _ := send(t, "GET", "http://"+addr+"/a/countries/DE", ""); resp.StatusCode != 401 {
		t.Errorf("without a key: %d", resp.StatusCode)
	}
}
