package graphql_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/stage/graphql"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/gatewaytest"
	"github.com/valyala/fasthttp"
)

// schemaText is what most tests govern.
const schemaText = `
type Query {
  country(code: ID!): Country
  countries(first: Int, filter: Filter): [Country!]!
  animals: [Animal!]!
  secret: String
}
type Mutation { rename(code: ID!, name: String!): Country }
type Subscription { renamed: Country }
type Country { code: ID! name: String! continent: Continent! }
type Continent { code: ID! name: String! countries: [Country!]! }
interface Animal { name: String! }
type Cat implements Animal { name: String! lives: Int! }
type Dog implements Animal { name: String! barks: Boolean! }
input Filter { code: ID = "x" size: Int! }
`

// world is a gateway on loopback before an upstream that remembers what reaches
// it.
type world struct {
	*gatewaytest.Gateway
	t        testing.TB
	upstream string
	log      *record

	mu   sync.Mutex
	seen []seen
}

// seen is a request as the upstream got it.
type seen struct {
	method, uri, body, header string

	conn string // that it came on
}

// ceilings are those of the defaults.
var ceilings = graphql.Ceilings{
	Tokens: 15_000, Depth: 64, ValueDepth: 32, Aliases: 1000, Directives: 500, Literals: 2000, Fragments: 200,
	Operations: 50, RootFields: 500, Fields: 20_000,
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, log: new(record)}
	w.upstream = "http://" + testenv.Origin(t, w.answer)
	w.Gateway = gatewaytest.Start(t, gatewaytest.Options{
		Log:     slog.New(slog.NewTextHandler(w.log, nil)),
		GraphQL: func(o *graphql.Options) { o.MaxBody, o.BatchMax, o.Ceilings = 192<<10, 100, ceilings },
		Deps: func(d *gateway.Deps) {
			d.Config.ShowReason = true
			gatewaytest.WithLimitHeaders(d)
		},
	})
	return w
}

// record is a buffer to log to. What has been answered over raw sockets has not
// thereby been seen: it is read under its lock as well.
type record struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}

// answer is the upstream.
func (w *world) answer(ctx *fasthttp.RequestCtx) {
	w.mu.Lock()
	w.seen = append(w.seen, seen{string(ctx.Method()), string(ctx.RequestURI()), string(ctx.PostBody()), ctx.Request.Header.String(), fmt.Sprint(ctx.ConnID())})
	w.mu.Unlock()
	ctx.SetContentType("application/json")
	ctx.SetBodyString(`{"data":{"up":true}}`)
}

// reached returns what reached the upstream since the last call.
func (w *world) reached() []seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.seen
	w.seen = nil
	return all
}

// api returns the definition of a GraphQL API under /id/.
func (w *world) api(id string, change func(*definition.API)) *definition.API {
	a := &definition.API{
		ID: id, Name: id, OrgID: "o", UseKeyless: true,
		Proxy:   definition.Proxy{ListenPath: "/" + id + "/", TargetURL: w.upstream, StripListenPath: true},
		GraphQL: &definition.GraphQL{Enabled: true, ExecutionMode: definition.ModeProxy, Schema: schemaText},
	}
	if change != nil {
		change(a)
	}
	return a
}

// keyed asks for keys.
func keyed(a *definition.API) { a.UseKeyless = false }

// key makes a key with an access entry for the API "a".
func (w *world) key(name string, limits definition.Limits, entry definition.Access) {
	w.t.Helper()
	entry.APIID, entry.Versions = "a", []string{"Default"}
	w.Put(name, &definition.Session{OrgID: "o", Limits: limits, AccessRights: map[string]*definition.Access{"a": &entry}})
}

// unlimited is for keys whose calls are not counted.
var unlimited = definition.Limits{QuotaMax: -1}

// answered is an answer as a client reads it.
type answered struct {
	status int
	body   string
	header http.Header
	seen   []seen // what reached the upstream because of it
}

func (a answered) String() string { return fmt.Sprint(a.status, " ", a.body) }

// send sends a request with header lines such as "Accept: x".
func (w *world) send(method, path, body string, header ...string) answered {
	w.t.Helper()
	w.reached()
	req, err := http.NewRequest(method, "http://"+w.Addr+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header[http.CanonicalHeaderKey(name)] = append(req.Header[http.CanonicalHeaderKey(name)], value)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answered{resp.StatusCode, string(b), resp.Header, w.reached()}
}

const jsonType = "Content-Type: application/json"

// post sends a body to the API "a".
func (w *world) post(body string, header ...string) answered {
	w.t.Helper()
	return w.send("POST", "/a/", body, append([]string{jsonType}, header...)...)
}
