// Package bench measures whole requests: over connections in memory, through the
// real server, gateway, stages and stores, to an upstream on loopback and back.
// What a request may allocate is a test; what it costs in time is a benchmark.
package bench

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/bench/answer"
	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/observe"
	"github.com/sluicegate/sluice/gateway/stage/auth"
	"github.com/sluicegate/sluice/gateway/stage/auth/basic"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwt"
	"github.com/sluicegate/sluice/gateway/stage/cache"
	"github.com/sluicegate/sluice/gateway/stage/graphql"
	"github.com/sluicegate/sluice/gateway/stage/overload"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/gateway/upstream/targets"
	"github.com/sluicegate/sluice/gateway/usage"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/gatewaytest"
	counts "github.com/sluicegate/sluice/internal/usage"
	"github.com/valyala/fasthttp"
)

// world is a gateway with everything on that a production one has: framing
// guard, timeouts, forwarded headers, metrics, events, and an access log to a
// file.
type world struct {
	*gatewaytest.Gateway
	tb     testing.TB
	bundle *definition.Bundle
	ln     *listener
	calls  *usage.Calls  // nil: they are not counted for an admin
	taking time.Duration // how often they are taken
}

// settings are what of a world differs from case to case.
type settings struct {
	counter counter.Counter // nil: in this process
	store   keystore.Store  // nil: in this process
	cache   int             // sessions in memory; 0: 10,000

	reloadCPU float64 // share of a processor for changes; 0: all there are

	operations int // bytes for what is known of them; 0: 32 MiB

	uncounted bool          // calls are not counted for an admin
	taking    time.Duration // how often the admin takes counts; 0: every second

	samples *explain.Samples // nil: requests are not recorded

	tcp bool // clients' connections are those of the system, and not in memory
}

// newWorld starts a gateway without definitions. It ends with the test.
func newWorld(tb testing.TB, s settings) *world {
	tb.Helper()
	w := &world{ln: newListener(), bundle: &definition.Bundle{Revision: "0"}}
	lines, err := observe.OpenAccessLog(observe.AccessOptions{
		Target: "file", File: filepath.Join(tb.TempDir(), "access.log"), SampleOK: 1,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	bus := event.NewBus(1024)
	if !s.uncounted {
		w.calls, w.taking = usage.NewCalls(), cmp.Or(s.taking, time.Second)
	}
	trusted := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	var ln net.Listener = w.ln
	if s.tcp {
		ln = nil
	}
	w.Gateway = gatewaytest.Start(tb, gatewaytest.Options{
		Store: s.store, Counter: s.counter, Listener: ln,
		Hasher: &credential.Hasher{Algorithm: credential.SHA256, Prefix: credential.DefaultPrefix},
		Sessions: func(o *auth.SessionOptions) {
			o.Size = cmp.Or(s.cache, 10_000)
			o.TTL, o.StaleTTL, o.UnknownTTL, o.Timeout = time.Hour, time.Hour, time.Hour, time.Second
		},
		GraphQL: func(o *graphql.Options) {
			o.WebSockets = true
			o.Cache, o.RefusedCache, o.BatchMax = cmp.Or(s.operations, 32<<20), 2<<20, 100
		},
		Observe: func(o *observe.Options) {
			o.Operations, o.Calls, o.Access, o.Events = usage.NewOperations(), w.calls, lines, bus
		},
		Deps: func(d *gateway.Deps) {
			d.Config = gateway.Config{Wire: wireConfig(), Sockets: d.Config.Sockets, LateSockets: d.Config.LateSockets, Trusted: trusted, ShowReason: true, ReloadCPU: s.reloadCPU}
			d.Stages.Auth.WithPasswords(basic.New(basic.Options{Size: 100, TTL: time.Hour, AtOnce: 2})).WithTokens(jwt.New(nil, 100))
			d.Stages.Overload = overload.New(overload.Options{TargetDelay: time.Second, MaxDelay: time.Second}, d.Log)
			d.Stages.Upstream = upstreamConfig(trusted)
			d.Stages.Calls = targets.New(targets.Options{Pools: d.Stages.Pools, Upstream: d.Stages.Upstream, Raise: bus.Raise})
			d.Stages.Cache = cache.New(cache.Options{MaxBytes: 64 << 20, MaxBody: 64 << 10, Patience: time.Second})
			d.Samples = s.samples
			gatewaytest.WithLimitHeaders(d)
		},
	})
	w.tb = tb
	w.background(lines, bus)
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

// background runs a gateway's background work until the test ends.
func (w *world) background(lines *observe.AccessLog, bus *event.Bus) {
	ctx, stop := context.WithCancel(context.Background())
	var jobs sync.WaitGroup
	for _, run := range []func(context.Context){w.Sessions.Run, lines.Run, bus.Run, w.takeCalls} {
		jobs.Go(func() { run(ctx) })
	}
	w.tb.Cleanup(func() {
		stop()
		jobs.Wait()
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
	for id, err := range w.Apply(w.bundle) {
		w.tb.Fatalf("%s is not served: %v", id, err)
	}
}

// key makes a key with a session.
func (w *world) key(s *definition.Session) string {
	w.tb.Helper()
	key := credential.Generate(credential.DefaultPrefix)
	w.Put(key, s)
	return key
}

// origin answers every request with a kilobyte.
func origin(tb testing.TB) string {
	body, _ := answer.Body([]byte("1k"))
	return "http://" + testenv.Origin(tb, func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.SetNoDefaultContentType(true)
		ctx.Response.SetBodyRaw(body)
	})
}

// client is one connection to a world.
type client struct {
	tb    testing.TB
	conn  net.Conn
	reads *answer.Reader
}

func (w *world) client() *client {
	c := w.ln.dial()
	w.tb.Cleanup(func() { _ = c.Close() })
	return &client{tb: w.tb, conn: c, reads: answer.NewReader(c)}
}

// round has one request answered, as wanted.
func (c *client) round(request []byte, want *answer.Want) {
	if _, err := c.conn.Write(request); err != nil {
		c.tb.Fatalf("sending a request: %v", err)
	}
	if err := c.reads.Next(want); err != nil {
		c.tb.Fatalf("%v\n%s", err, request)
	}
}
