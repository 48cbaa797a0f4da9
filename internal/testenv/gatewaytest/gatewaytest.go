// Package gatewaytest runs a gateway for tests: the product's stages, with
// sessions and counters in memory and bounds that tests do not reach by accident.
package gatewaytest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/graph"
	"github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/gateway/observe"
	"github.com/sluicegate/sluice/gateway/snapshot"
	"github.com/sluicegate/sluice/gateway/stage/access"
	"github.com/sluicegate/sluice/gateway/stage/auth"
	"github.com/sluicegate/sluice/gateway/stage/graphql"
	"github.com/sluicegate/sluice/gateway/stage/limit"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// Options are what differs from test to test. The functions change defaults just
// before they are used.
type Options struct {
	Store    keystore.Store     // nil: in memory
	Hasher   *credential.Hasher // nil: keys are stored as they are
	Counter  counter.Counter    // nil: in memory, on the system's clock
	Log      *slog.Logger       // nil: discarded
	Listener net.Listener       // nil: TCP on the loopback interface

	Sessions func(*auth.SessionOptions)
	GraphQL  func(*graphql.Options)
	Observe  func(*observe.Options)
	Deps     func(*gateway.Deps)
}

// Gateway is a gateway that serves until the test ends.
type Gateway struct {
	*gateway.Gateway
	Addr     string // host and port
	Store    keystore.Store
	Hasher   *credential.Hasher
	Sessions *auth.Sessions
	GraphQL  *graphql.GraphQL
	Graphs   *graph.Engine

	tb       testing.TB
	revision int
}

// Start runs a gateway without definitions. It ends with the test.
func Start(tb testing.TB, o Options) *Gateway {
	tb.Helper()
	o = o.withDefaults(tb)
	sessions := auth.SessionOptions{
		Store: o.Store, Hasher: o.Hasher, Log: o.Log, Size: 1000, TTL: time.Minute,
		UnknownSize: 1000, UnknownTTL: time.Second, Timeout: 30 * time.Second,
	}
	o.Sessions(&sessions)
	watch := observe.Options{Version: "test", Log: o.Log}
	o.Observe(&watch)
	limiter := limit.New(limit.Options{Counter: o.Counter, Log: o.Log})
	operations := graphql.Options{MaxBody: 1 << 20, Cache: 8 << 20, RefusedCache: 1 << 20, Log: o.Log}
	o.GraphQL(&operations)

	g := &Gateway{tb: tb, Addr: o.Listener.Addr().String(), Store: o.Store, Hasher: o.Hasher}
	g.Sessions, g.GraphQL = auth.NewSessions(sessions), graphql.New(operations)
	g.Graphs = graph.New(graph.Options{Plans: 1 << 20, Log: o.Log})
	observer := observe.New(watch)
	deps := gateway.Deps{
		Config: gateway.Config{Wire: wire.Config{
			MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 1 << 20,
			ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 30 * time.Second,
		}, Sockets: live.Limits{
			Operations: 100, MaxMessage: 1 << 20, MaxQueued: 4 << 20, MaxResponse: 4 << 20,
			InitTimeout: 15 * time.Second, Heartbeat: 15 * time.Second, WriteWithin: 10 * time.Second,
		}, LateSockets: 100},
		Stages: snapshot.Stages{
			Auth: auth.New(g.Sessions, 3), Access: access.New(access.Options{Log: o.Log}), Limit: limiter,
			GraphQL: g.GraphQL, Graphs: g.Graphs, Pools: upstream.NewPools(), Meter: observer.NewMeter,
			Upstream: upstream.Config{DialTimeout: 30 * time.Second, ResponseTimeout: 30 * time.Second, MaxConns: 100, IdleTimeout: time.Minute, Retries: 1},
		},
		Observe: observer, Log: o.Log,
	}
	o.Deps(&deps)
	g.Gateway = gateway.New(deps)
	tb.Cleanup(g.Graphs.Close) // after run's
	g.run(o.Listener, deps.Stages.Pools)
	return g
}

// WithLimitHeaders sends the rate limit headers by their usual names.
func WithLimitHeaders(d *gateway.Deps) {
	d.Stages.Headers = limit.NewHeaders(limit.Names{Limit: "X-RateLimit-Limit", Remaining: "X-RateLimit-Remaining", Reset: "X-RateLimit-Reset"}, false)
}

func (o Options) withDefaults(tb testing.TB) Options {
	tb.Helper()
	o.Hasher = cmp.Or(o.Hasher, &credential.Hasher{})
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Store == nil {
		o.Store = keystore.NewMemory()
	}
	if o.Counter == nil {
		o.Counter = counter.NewMemory(nil)
	}
	if o.Listener == nil {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		o.Listener = ln
	}
	o.Sessions, o.GraphQL = orNothing(o.Sessions), orNothing(o.GraphQL)
	o.Observe, o.Deps = orNothing(o.Observe), orNothing(o.Deps)
	return o
}

func orNothing[T any](change func(*T)) func(*T) {
	if change == nil {
		return func(*T) {}
	}
	return change
}

// run serves until the test ends.
func (g *Gateway) run(ln net.Listener, pools *upstream.Pools) {
	done := make(chan error, 1)
	go func() { done <- g.Gateway.Serve(ln) }()
	g.tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		if err := g.Shutdown(ctx); err != nil {
			g.tb.Errorf("shutdown: %v", err)
		}
		if err := <-done; !errors.Is(err, wire.ErrStopped) {
			g.tb.Errorf("serve: %v", err)
		}
		pools.Close()
	})
}

// Load serves definitions under a new revision. It returns those that cannot be
// served, by ID.
func (g *Gateway) Load(apis ...*definition.API) map[string]error {
	g.revision++
	return g.Apply(&definition.Bundle{Revision: fmt.Sprint(g.revision), APIs: apis})
}

// MustLoad is Load that fails the test for a definition that cannot be served.
func (g *Gateway) MustLoad(apis ...*definition.API) {
	g.tb.Helper()
	for id, err := range g.Load(apis...) {
		g.tb.Fatalf("%s is not served: %v", id, err)
	}
}

// Put stores the session of a key.
func (g *Gateway) Put(key string, s *definition.Session) {
	g.tb.Helper()
	if err := g.Store.Put(context.Background(), g.Hasher.Hash(key), s); err != nil {
		g.tb.Fatal(err)
	}
}
