package graphql_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
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
	t        testing.TB
	gateway  *gateway.Gateway
	graphql  *graphql.GraphQL
	addr     string
	upstream string
	store    keystore.Store
	revision int
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
	w := &world{t: t, store: keystore.NewMemory(), log: new(record)}
	w.upstream = "http://" + testenv.Origin(t, w.answer)
	log := slog.New(slog.NewTextHandler(w.log, nil))
	sessions := auth.NewSessions(auth.SessionOptions{
		Store: w.store, Hasher: &credential.Hasher{}, Log: log, Size: 1000, TTL: time.Minute,
		UnknownSize: 100, UnknownTTL: time.Second, Timeout: 30 * time.Second,
	})
	watch := observe.New(observe.Options{Version: "test", Log: log})
	pools := upstream.NewPools()
	limiter := limit.New(limit.Options{Counter: counter.NewMemory(nil), Log: log})
	w.graphql = graphql.New(graphql.Options{
		MaxBody: 192 << 10, BatchMax: 100, Ceilings: ceilings, Cache: 8 << 20, RefusedCache: 1 << 20, Rate: limiter.Rate, Log: log,
	})
	w.gateway = gateway.New(gateway.Deps{
		Config: gateway.Config{ShowReason: true, Wire: wire.Config{
			MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 1 << 20,
			ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 30 * time.Second,
		}},
		Stages: gateway.Stages{
			Auth: auth.New(sessions, 3), Access: access.New(access.Options{Log: log}), GraphQL: w.graphql, Limit: limiter,
			Headers: limit.NewHeaders(limit.Names{Limit: "X-RateLimit-Limit", Remaining: "X-RateLimit-Remaining", Reset: "X-RateLimit-Reset"}),
			Pools:   pools, Meter: watch.NewMeter,
			Upstream: upstream.Config{DialTimeout: 30 * time.Second, ResponseTimeout: 30 * time.Second, MaxConns: 100, IdleTimeout: time.Minute, Retries: 1},
		},
		Observe: watch, Log: log,
	})
	w.serve(pools)
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

func (w *world) serve(pools *upstream.Pools) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.addr = ln.Addr().String()
	done := make(chan error, 1)
	go func() { done <- w.gateway.Serve(ln) }()
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		if err := w.gateway.Shutdown(ctx); err != nil {
			w.t.Errorf("shutdown: %v", err)
		}
		if err := <-done; !errors.Is(err, wire.ErrStopped) {
			w.t.Errorf("serve: %v", err)
		}
		pools.Close()
	})
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

// apply serves definitions and returns what is not served.
func (w *world) apply(apis ...*definition.API) map[string]error {
	w.revision++
	return w.gateway.Apply(&definition.Bundle{Revision: fmt.Sprint(w.revision), APIs: apis})
}

func (w *world) mustApply(apis ...*definition.API) {
	w.t.Helper()
	for id, err := range w.apply(apis...) {
		w.t.Fatalf("%s is not served: %v", id, err)
	}
}

// key makes a key with an access entry for the API "a".
func (w *world) key(name string, limits definition.Limits, entry definition.Access) {
	w.t.Helper()
	entry.APIID, entry.Versions = "a", []string{"Default"}
	err := w.store.Put(context.Background(), (&credential.Hasher{}).Hash(name), &definition.Session{
		OrgID: "o", Limits: limits, AccessRights: map[string]*definition.Access{"a": &entry},
	})
	if err != nil {
		w.t.Fatal(err)
	}
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
	req, err := http.NewRequest(method, "http://"+w.addr+path, strings.NewReader(body))
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
