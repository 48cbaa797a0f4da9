// Package bench measures whole requests: over connections in memory, through the
// real server, gateway, stages and stores, to an upstream on loopback and back.
// What a request may allocate is a test; what it costs in time is a benchmark.
package bench

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/access"
	"github.com/sluicegate/sluice/gateway/auth"
	"github.com/sluicegate/sluice/gateway/auth/basic"
	"github.com/sluicegate/sluice/gateway/auth/jwt"
	"github.com/sluicegate/sluice/gateway/cache"
	"github.com/sluicegate/sluice/gateway/graphql"
	"github.com/sluicegate/sluice/gateway/limit"
	"github.com/sluicegate/sluice/gateway/observe"
	"github.com/sluicegate/sluice/gateway/observe/rollup"
	"github.com/sluicegate/sluice/gateway/observe/usage"
	"github.com/sluicegate/sluice/gateway/overload"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/gateway/upstream/calls"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	counts "github.com/sluicegate/sluice/internal/definition/usage"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/loadtest/load"
	"github.com/valyala/fasthttp"
)

// world is a gateway with everything on that a production one has: framing
// guard, timeouts, forwarded headers, metrics, events, and an access log to a
// file.
type world struct {
	tb       testing.TB
	gateway  *gateway.Gateway
	sessions *auth.Sessions
	store    keystore.Store
	hasher   *credential.Hasher
	bundle   *definition.Bundle
	ln       *listener
	calls    *rollup.Counts // nil: they are not counted for an admin
	taking   time.Duration  // how often they are taken
}

// settings are what of a world differs from case to case.
type settings struct {
	counter counter.Counter // nil: in this process
	store   keystore.Store  // nil: in this process
	cache   int             // sessions in memory; 0: 10,000
	ready   int             // of them, those that are ready for requests; 0: 65,536

	reloadCPU float64 // share of a processor for changes; 0: all there are

	operations int // bytes for what is known of them; 0: 32 MiB

	uncounted bool          // calls are not counted for an admin
	taking    time.Duration // how often the admin takes counts; 0: every second
}

// newWorld starts a gateway without definitions. It ends with the test.
func newWorld(tb testing.TB, s settings) *world {
	tb.Helper()
	w := &world{
		tb: tb, store: s.store, ln: newListener(), bundle: &definition.Bundle{Revision: "0"},
		hasher: &credential.Hasher{Algorithm: credential.SHA256, Prefix: credential.DefaultPrefix},
	}
	if w.store == nil {
		w.store = keystore.NewMemory()
	}
	if s.counter == nil {
		s.counter = counter.NewMemory(nil)
	}
	if s.cache == 0 {
		s.cache = 10_000
	}
	if s.operations == 0 {
		s.operations = 32 << 20
	}
	log := slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError}))
	w.sessions = auth.NewSessions(auth.SessionOptions{
		Store: w.store, Hasher: w.hasher, Log: log, Size: s.cache, Ready: s.ready, TTL: time.Hour, StaleTTL: time.Hour,
		UnknownSize: 1000, UnknownTTL: time.Hour, Timeout: time.Second,
	})
	lines, err := observe.OpenAccessLog(observe.AccessOptions{
		Target: "file", File: filepath.Join(tb.TempDir(), "access.log"), SampleOK: 1,
	}, log)
	if err != nil {
		tb.Fatal(err)
	}
	bus := event.NewBus(1024)
	if !s.uncounted {
		w.calls, w.taking = rollup.New(), cmp.Or(s.taking, time.Second)
	}
	observer := observe.New(observe.Options{Version: "bench", Usage: usage.New(), Calls: w.calls, Access: lines, Events: bus, Log: log})
	pools := upstream.NewPools()
	limiter := limit.New(limit.Options{Counter: s.counter, Log: log})
	trusted := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	w.gateway = gateway.New(gateway.Deps{
		Config: gateway.Config{Wire: wireConfig(), Trusted: trusted, ShowReason: true, ReloadCPU: s.reloadCPU},
		Stages: gateway.Stages{
			Auth:     auth.New(w.sessions, 3).WithPasswords(basic.New(basic.Options{Size: 100, TTL: time.Hour, AtOnce: 2})).WithTokens(jwt.New(nil, 100)),
			Overload: overload.New(overload.Options{TargetDelay: time.Second, MaxDelay: time.Second}, log),
			Access:   access.New(access.Options{Log: log}),
			GraphQL:  graphql.New(graphql.Options{MaxBody: 1 << 20, Cache: s.operations, BatchMax: 100, RefusedCache: 2 << 20, Rate: limiter.Rate, Log: log}),
			Limit:    limiter,
			Headers:  limit.NewHeaders(limit.Names{Limit: "X-RateLimit-Limit", Remaining: "X-RateLimit-Remaining", Reset: "X-RateLimit-Reset"}),
			Pools:    pools, Upstream: upstreamConfig(trusted), Meter: observer.NewMeter,
			Calls: calls.New(calls.Options{Pools: pools, Upstream: upstreamConfig(trusted), Raise: bus.Raise}),
			Cache: cache.New(cache.Options{MaxBytes: 64 << 20, MaxBody: 64 << 10, Patience: time.Second}),
		},
		Observe: observer, Log: log,
	})
	w.serve(pools, lines, bus)
	return w
}

func wireConfig() wire.Config {
	return wire.Config{
		MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 4 << 20,
		ReadTimeout: 15 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 75 * time.Second,
	}
}

func upstreamConfig(trusted []netip.Prefix) upstream.Config {
	return upstream.Config{
		Trusted: trusted, DialTimeout: 3 * time.Second, ResponseTimeout: 30 * time.Second,
		MaxConns: 512, MaxConnWait: time.Second, IdleTimeout: time.Minute, Retries: 1,
	}
}

// serve runs the world until the test ends.
func (w *world) serve(pools *upstream.Pools, lines *observe.AccessLog, bus *event.Bus) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{}, 5)
	for _, job := range []func(){
		func() { w.sessions.Run(ctx) },
		func() { lines.Run(ctx) },
		func() { bus.Run(ctx) },
		func() { w.takeCalls(ctx) },
		func() {
			if err := w.gateway.Serve(w.ln); !errors.Is(err, wire.ErrStopped) {
				w.tb.Errorf("serving: %v", err)
			}
		},
	} {
		go func() {
			job()
			ended <- struct{}{}
		}()
	}
	w.tb.Cleanup(func() {
		late, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		pools.Close()
		if err := w.gateway.Shutdown(late); err != nil {
			w.tb.Errorf("stopping: %v", err)
		}
		stop()
		for range cap(ended) {
			<-ended
		}
	})
}

// takeCalls takes what was counted, as the admin would have it, but mostly more
// often.
func (w *world) takeCalls(ctx context.Context) {
	if w.calls == nil {
		return
	}
	tick := time.NewTicker(w.taking)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.calls.Take(func(counts.Row) {}, func(counts.Latency) {})
		}
	}
}

// add puts an API into the bundle; apply serves it.
func (w *world) add(api *definition.API) { w.bundle.APIs = append(w.bundle.APIs, api) }

// apply serves the bundle as it is now.
func (w *world) apply() {
	w.tb.Helper()
	w.bundle.Revision += "+"
	for id, err := range w.gateway.Apply(w.bundle) {
		w.tb.Fatalf("%s is not served: %v", id, err)
	}
}

// key makes a key with a session.
func (w *world) key(s *definition.Session) string {
	w.tb.Helper()
	key := credential.Generate(credential.DefaultPrefix)
	if err := w.store.Put(context.Background(), w.hasher.Hash(key), s); err != nil {
		w.tb.Fatal(err)
	}
	return key
}

// origin answers every request with a kilobyte.
func origin(tb testing.TB) string {
	body, _ := load.Body([]byte("1k"))
	return "http://" + testenv.Origin(tb, func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.SetNoDefaultContentType(true)
		ctx.Response.SetBodyRaw(body)
	})
}

// client is one connection to a world.
type client struct {
	tb    testing.TB
	conn  net.Conn
	reads *load.Reader
}

func (w *world) client() *client {
	c := w.ln.dial()
	w.tb.Cleanup(func() { _ = c.Close() })
	return &client{tb: w.tb, conn: c, reads: load.NewReader(c)}
}

// round has one request answered, as wanted.
func (c *client) round(request []byte, want *load.Want) {
	if _, err := c.conn.Write(request); err != nil {
		c.tb.Fatalf("sending a request: %v", err)
	}
	if err := c.reads.Next(want); err != nil {
		c.tb.Fatalf("%v\n%s", err, request)
	}
}
