package catalogue

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/documents"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
)

// bench is a service on a database with two organisations. The first has the APIs
// orders and stock and the policies gold, silver and draft, the second the API
// theirs and the policy foreign.
type bench struct {
	t       testing.TB
	dsn     string
	store   *store.Store
	service *Service
	routes  []rest.Route
	from    string
}

func migrate(ctx context.Context, dsn string) error {
	_, err := store.Migrate(ctx, dsn)
	return err
}

func start(t testing.TB) *bench {
	t.Helper()
	b := &bench{t: t, dsn: testenv.Database(t, migrate, "catalogue"), from: "192.0.2.1"}
	var err error
	if b.store, err = store.Open(t.Context(), store.Options{URL: b.dsn, MaxConns: 12}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.store.Close)
	b.exec("insert into orgs (id, name, created_at) values ('one', 'one', 'epoch'), ('two', 'two', now())")
	docs := documents.New(b.store)
	b.service = New(b.store, func(_ context.Context, credential []byte) (rest.Principal, error) {
		return developer(string(credential))
	}, docs)
	b.routes = append(b.service.Routes(), docs.Routes()...)
	b.api("one", `{"api_id":"orders","name":"Orders","proxy":{"listen_path":"/orders/","target_url":"http://10.0.0.1:8080/v1","strip_listen_path":true}}`)
	b.api("one", `{"api_id":"stock","name":"Stock","domain":"stock.example.com","proxy":{"listen_path":"/stock","target_url":"http://up.internal"}}`)
	b.api("two", `{"api_id":"theirs","name":"Theirs","proxy":{"listen_path":"/theirs","target_url":"http://up.internal"}}`)
	b.policy("one", `{"id":"gold","name":"Gold","rate":10,"per":60,"quota_max":100000,"quota_renewal_rate":86400,"max_query_depth":3,"access_rights":{"orders":{"limit":{"rate":5,"per":1}}}}`)
	b.policy("one", `{"id":"silver","name":"Silver"}`)
	b.policy("one", `{"id":"draft","name":"Draft","state":"draft"}`)
	b.policy("two", `{"id":"foreign","name":"Foreign"}`)
	return b
}

func (b *bench) api(org, body string) {
	b.t.Helper()
	api, err := definition.ParseAPI([]byte(body))
	if err != nil {
		b.t.Fatal(err)
	}
	b.publish(org, func(ctx context.Context, c *store.Change) error { return c.CreateAPI(ctx, api) })
}

func (b *bench) policy(org, body string) {
	b.t.Helper()
	p, err := definition.ParsePolicy([]byte(body))
	if err != nil {
		b.t.Fatal(err)
	}
	b.publish(org, func(ctx context.Context, c *store.Change) error { return c.CreatePolicy(ctx, p) })
}

func (b *bench) publish(org string, change func(context.Context, *store.Change) error) {
	b.t.Helper()
	if _, err := b.store.Publish(b.t.Context(), store.Author{Org: org, Name: "test", Kind: "user", Source: "api"}, change); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) conn() *pgx.Conn {
	b.t.Helper()
	conn, err := pgx.Connect(context.Background(), b.dsn)
	if err != nil {
		b.t.Fatal(err)
	}
	return conn
}

func (b *bench) exec(statement string, args ...any) {
	b.t.Helper()
	conn := b.conn()
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), statement, args...); err != nil {
		b.t.Fatalf("%s: %v", statement, err)
	}
}

func (b *bench) count(query string, args ...any) (n int) {
	b.t.Helper()
	conn := b.conn()
	defer conn.Close(context.Background())
	if err := conn.QueryRow(context.Background(), query, args...).Scan(&n); err != nil {
		b.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// answer is what came back.
type answer struct {
	t      testing.TB
	what   string
	status int
	etag   string
	body   []byte
}

// call makes a call as a role of the first organisation, as "two:" and a role of
// the second, as a session, or with "" as nobody.
func (b *bench) call(method, path, who, body string, headers ...string) *answer {
	b.t.Helper()
	req := new(fasthttp.Request)
	req.Header.SetMethod(method)
	req.SetRequestURI(path)
	req.SetBodyString(body)
	req.Header.SetContentType("application/json")
	req.Header.SetUserAgent("a browser")
	if who != "" {
		req.Header.Set("Authorization", who)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	ctx := new(fasthttp.RequestCtx)
	ctx.Init(req, &net.TCPAddr{IP: net.ParseIP(b.from)}, nil)
	within, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := b.serve(within, ctx, who); err != nil {
		f, expected := rest.FaultOf(err)
		if !expected && f.Status == 500 {
			b.t.Errorf("%s %s: %v", method, path, err)
		}
		f.Write(ctx)
	}
	return &answer{b.t, method + " " + path, ctx.Response.StatusCode(), string(ctx.Response.Header.Peek("ETag")), bytes.Clone(ctx.Response.Body())}
}

func (b *bench) serve(ctx context.Context, http *fasthttp.RequestCtx, who string) error {
	for i := range b.routes {
		r := &b.routes[i]
		if r.Method != string(http.Method()) || !fits(r.Path, http) {
			continue
		}
		c := &rest.Call{HTTP: http, Route: r, PageSize: 10}
		if err := c.CheckSizes(); err != nil {
			return err
		}
		var err error
		if c.Who, err = b.identify(who); who == "" && r.Role != rest.Anyone {
			return rest.Refuse(fasthttp.StatusUnauthorized, "Not authorised")
		}
		if err != nil {
			return err
		}
		if !r.Allows(c.Who.Role) {
			return rest.Refuse(fasthttp.StatusForbidden, "access denied")
		}
		answer, err := r.Handle(ctx, c)
		if err != nil {
			return err
		}
		return c.Write(answer)
	}
	return rest.NotFound("no route")
}

// fits tells whether a path is a route's, and notes what its names stand for.
func fits(pattern string, http *fasthttp.RequestCtx) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(string(http.URI().PathOriginal()), "/")
	if len(want) != len(have) {
		return false
	}
	for i := range want {
		if name, found := strings.CutPrefix(want[i], "{"); found {
			http.SetUserValue(strings.TrimSuffix(name, "}"), have[i])
		} else if want[i] != have[i] {
			return false
		}
	}
	return true
}

func (b *bench) identify(who string) (rest.Principal, error) {
	if who == "" {
		return rest.Principal{}, nil
	}
	if developer, err := developer(who); err == nil {
		return developer, nil
	}
	org := "one"
	if role, second := strings.CutPrefix(who, "two:"); second {
		org, who = "two", role
	}
	return rest.Principal{Org: org, ID: who, Name: who + "@" + org, Kind: "user", Role: rest.Role(who)}, nil
}

// developer knows one developer of each organisation.
func developer(credential string) (rest.Principal, error) {
	org, found := strings.CutPrefix(credential, "slp_")
	if !found || org != "one" && org != "two" {
		return rest.Principal{}, store.ErrNotFound
	}
	return rest.Principal{Org: org, ID: "d", Name: "d@" + org, Kind: "developer", Role: rest.Developer}, nil
}

func (a *answer) want(status int) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: %d %s, want %d", a.what, a.status, a.body, status)
	}
	return a
}

func (a *answer) says(parts ...string) *answer {
	a.t.Helper()
	for _, part := range parts {
		if !bytes.Contains(a.body, []byte(part)) {
			a.t.Errorf("%s: %s is not in %s", a.what, part, a.body)
		}
	}
	return a
}

func (a *answer) hides(parts ...string) *answer {
	a.t.Helper()
	for _, part := range parts {
		if bytes.Contains(a.body, []byte(part)) {
			a.t.Errorf("%s: %s is in %s", a.what, part, a.body)
		}
	}
	return a
}

func (a *answer) object() map[string]any {
	a.t.Helper()
	var m map[string]any
	if err := json.Unmarshal(a.body, &m); err != nil {
		a.t.Fatalf("%s: %v in %s", a.what, err, a.body)
	}
	return m
}

func (a *answer) text(member string) string {
	a.t.Helper()
	text, _ := a.object()[member].(string)
	return text
}
