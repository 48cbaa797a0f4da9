package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/graph"
	connections "github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/gateway/observe"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/snapshot"
	"github.com/sluicegate/sluice/gateway/source"
	"github.com/sluicegate/sluice/gateway/stage/access"
	"github.com/sluicegate/sluice/gateway/stage/auth"
	"github.com/sluicegate/sluice/gateway/stage/auth/basic"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwks"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwt"
	"github.com/sluicegate/sluice/gateway/stage/cache"
	"github.com/sluicegate/sluice/gateway/stage/graphql"
	"github.com/sluicegate/sluice/gateway/stage/limit"
	"github.com/sluicegate/sluice/gateway/stage/overload"
	"github.com/sluicegate/sluice/gateway/stage/tunnels"
	"github.com/sluicegate/sluice/gateway/stage/version"
	"github.com/sluicegate/sluice/gateway/stream/engine"
	"github.com/sluicegate/sluice/gateway/traces"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/gateway/upstream/targets"
	"github.com/sluicegate/sluice/gateway/usage"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/event/webhook"
	"github.com/valyala/fasthttp"
)

// plane is a gateway with all parts but its stores.
type plane struct {
	gateway   *gateway.Gateway
	observer  *observe.Observer
	access    *observe.AccessLog // nil: off
	sessions  *auth.Sessions
	limits    *limit.Limiter
	orgs      *limit.Orgs // nil: organisations have no limits
	passwords *basic.Verifier
	keySets   *jwks.Sets // of the issuers of JSON Web Tokens
	tokens    *jwt.Tokens
	pools     *upstream.Pools
	calls     *targets.Registry
	tunnels   *tunnels.Registry
	streams   *engine.Engine   // nil: event streams are not enabled
	traces    *traces.Recorder // nil: no traces are recorded
	cache     *cache.Cache
	graphql   *graphql.GraphQL
	graphs    *graph.Engine
	overload  *overload.Guard // nil: no overload protection
	log       *slog.Logger
}

// storeTimeout bounds one look-up in the key store.
const storeTimeout = time.Second

// planeParts are the parts of a plane.
type planeParts struct {
	common
	stores  *stores
	control fasthttp.RequestHandler // nil: not on the traffic port
	health  fasthttp.RequestHandler // nil: not on the traffic port
	origin  func() string           // where the configuration in force came from
	usage   *usage.Operations       // GraphQL operations
	shipped *shippedUsage           // counts of calls for the admin; nil: there is no admin
	secure  *secure                 // nil: there are no certificates
	sender  *webhook.Sender
	legacy  *legacyKeys // nil: no legacy hashes are allowed
}

func newPlane(p planeParts) (*plane, error) {
	hasher, err := newHasher(p.cfg.Keys)
	if err != nil {
		return nil, err
	}
	pl := &plane{log: p.log, pools: upstream.NewPools(), overload: overload.New(overload.Options(p.cfg.Overload), p.log)}
	pl.access, err = observe.OpenAccessLog(observe.AccessOptions{
		Target: p.cfg.Log.Access, File: p.cfg.Log.AccessFile, SampleOK: p.cfg.Log.SampleOK,
	}, p.log)
	if err != nil {
		return nil, err
	}
	pl.tunnels = newTunnels(p.common)
	if pl.streams, err = newStreams(p.common); err != nil {
		return nil, err
	}
	keys := auth.SessionOptions{
		Store: p.stores.keys, Hasher: hasher, Log: p.log,
		Size: p.cfg.Keys.CacheSize, TTL: p.cfg.Keys.CacheTTL, StaleTTL: staleTTL(p.cfg.Keys),
		UnknownSize: p.cfg.Keys.NegativeSize, UnknownTTL: p.cfg.Keys.NegativeTTL,
		Timeout: storeTimeout, Changed: pl.tunnels.Wake, Legacy: p.legacy.noter(),
	}
	if p.stores.backed != nil {
		keys.MayServe = p.stores.backed.MayServe
	}
	pl.sessions = auth.NewSessions(keys)
	pl.keySets = jwks.New(jwks.Options{
		Addresses: dialguard.Policy{Private: true}, Timeout: p.cfg.JWT.KeysTimeout, // as for upstreams, which the same users configure
		Refresh: p.cfg.JWT.KeysRefresh, Retry: p.cfg.JWT.KeysRetry, Stale: p.cfg.JWT.KeysStale, Log: p.log,
	})
	pl.tokens = jwt.New(pl.keySets, p.cfg.JWT.CacheSize)
	pl.passwords = basic.New(basic.Options{
		Size: p.cfg.Passwords.CacheSize, TTL: p.cfg.Passwords.CacheTTL, AtOnce: p.cfg.Passwords.HashesAtOnce,
		PerUser: p.cfg.Passwords.WrongPerUser, PerAddress: p.cfg.Passwords.WrongPerAddress,
	})
	if pl.traces, err = newTraces(p.common); err != nil {
		return nil, err
	}
	watching := observe.Options{Version: Version(), Source: p.origin, Operations: p.usage, Access: pl.access, Events: p.events, RawKeys: p.cfg.Events.RawKeys, Log: p.log}
	if p.shipped != nil {
		watching.Calls = p.shipped.calls
	}
	pl.observer = observe.New(watching)
	deps := gateway.Deps{
		Config: gatewayConfig(p.cfg), Stages: pl.stages(p), Handshakes: p.secure.handshakes(), Challenges: p.secure.challenges(), Observe: pl.observer, Control: p.control, Health: p.health, Log: p.log,
	}
	if pl.traces != nil { // a nil *traces.Recorder in the interface would not be nil
		deps.Tracer = pl.traces
	}
	if p.shipped != nil {
		deps.Handover, deps.Samples = p.shipped.refusals, p.shipped.samples
	}
	pl.gateway = gateway.New(deps)
	pl.overload.AddDelay(pl.gateway.Waited)
	pl.observer.Registry().MustRegister(pl.metrics(p)...)
	return pl, nil
}

// staleTTL returns how long beyond keys.cache_ttl a session in memory is used while the
// key store is away.
func staleTTL(keys config.Keys) time.Duration {
	if keys.OnStoreError == "serve" {
		return forever
	}
	return keys.StaleTTL
}

// forever is longer than any process runs.
const forever = 100 * 365 * 24 * time.Hour

// newTunnels returns the registry of connections that have left HTTP. Without WebSockets
// and event streams it has no limits.
func newTunnels(c common) *tunnels.Registry {
	o := tunnels.Options{Interval: c.cfg.Gateway.TunnelRecheck, Log: c.log}
	if g := c.cfg.Gateway; g.Websockets || c.cfg.Streaming.Enabled {
		o.PerKey, o.PerAPI = g.MaxTunnelsPerKey, g.MaxTunnelsPerAPI
	}
	return tunnels.New(o)
}

func (pl *plane) stages(p planeParts) snapshot.Stages {
	g, toUpstreams := p.cfg.Gateway, upstreamConfig(p)
	pl.cache = cache.New(cache.Options{
		MaxBytes: int(p.cfg.Cache.MaxBytes), MaxBody: int(p.cfg.Cache.MaxBody), Patience: p.cfg.Upstream.ResponseTimeout,
	})
	pl.calls = targets.New(targets.Options{Pools: pl.pools, Upstream: toUpstreams, Raise: p.events.Raise})
	pl.newLimits(p)
	pl.graphql = graphql.New(graphqlOptions(p))
	pl.graphs = graph.New(graph.Options{Plans: int(p.cfg.GraphQL.Plans), Log: p.log})
	stages := snapshot.Stages{
		Auth:     auth.New(pl.sessions, p.cfg.Keys.MinLength).WithPasswords(pl.passwords).WithBodies(int(p.cfg.Passwords.MaxBody)).WithTokens(pl.tokens),
		Overload: pl.overload,
		Access:   access.New(accessOptions(p)),
		GraphQL:  pl.graphql,
		Graphs:   pl.graphs,
		Limit:    pl.limits,
		Orgs:     pl.orgs,
		Headers:  limitHeaders(g.RatelimitHeaders),
		Pools:    pl.pools,
		Upstream: toUpstreams,
		Calls:    pl.calls,
		Cache:    pl.cache,
		Tunnels:  pl.tunnels,
		Streams:  pl.streams,
		Versions: version.Options{Unanchored: g.PathLists == "unanchored"},
		Meter:    pl.observer.NewMeter,
	}
	p.secure.stages(&stages)
	return stages
}

func upstreamConfig(p planeParts) upstream.Config {
	g, u := p.cfg.Gateway, p.cfg.Upstream
	conf := upstream.Config{
		Trusted: g.TrustedProxies, DialTimeout: u.DialTimeout, ResponseTimeout: u.ResponseTimeout,
		MaxConns: u.MaxConnsPerHost, MaxConnWait: u.MaxConnWait, MaxWaiting: u.MaxWaiting, IdleTimeout: u.IdleConnTimeout,
		Retries: u.Retries, Upgrades: g.Websockets, TunnelIdle: g.WebsocketIdleTimeout,
		CAFile: u.CAFile, PlainIO: !u.RawIO, Log: p.log,
	}
	if p.secure != nil {
		conf.Certificates = p.secure.store
	}
	return conf
}

func limitHeaders(c config.RatelimitHeaders) *limit.Headers {
	return limit.NewHeaders(limit.Names{Limit: c.Limit, Remaining: c.Remaining, Reset: c.Reset}, c.Source == "rate_limits")
}

func graphqlOptions(p planeParts) graphql.Options {
	c := p.cfg.GraphQL
	return graphql.Options{
		MaxBody: int(c.MaxBody), BatchMax: c.MaxBatch, DepthBase0: c.DepthBase == 0, Cache: int(c.Cache), RefusedCache: int(c.RefusedCache),
		Ceilings: graphql.Ceilings{
			Tokens: c.MaxTokens, Depth: c.MaxDepth, ValueDepth: c.MaxValueDepth, Aliases: c.MaxAliases,
			Directives: c.MaxDirectives, Literals: c.MaxLiterals, Fragments: c.MaxFragments, Operations: c.MaxOperations,
			RootFields: c.MaxRootFields, Fields: c.MaxFields,
		},
		WebSockets: p.cfg.Gateway.Websockets, Deflates: p.cfg.Gateway.GraphQLConnections.Compression, Log: p.log,
	}
}

func gatewayConfig(cfg *config.Config) gateway.Config {
	g := cfg.Gateway
	conf := gateway.Config{
		Wire: wire.Config{
			MaxHeader: int(g.MaxHeader), MaxURL: int(g.MaxURL), MaxHeaders: g.MaxHeaderCount, MaxBody: int64(g.MaxRequestBody),
			ReadTimeout: g.ReadTimeout, WriteTimeout: g.WriteTimeout, IdleTimeout: g.IdleTimeout,
			MaxConns: maxConnections(g.MaxConnections), MaxConnsPerIP: g.MaxConnectionsPerIP,
		},
		Trusted:       g.TrustedProxies,
		KeepIDs:       g.KeepRequestID,
		CustomDomains: g.CustomDomains,
		Tags:          g.Tags,
		ReloadCPU:     g.ReloadCPU,
		HideGenerator: g.HideGenerator,
		Wording:       wordingOf(&cfg.OverrideMessages.Auth),
		ShowReason:    g.ErrorDetail == "reason",
		Refusals:      g.RefusalsKept,
		Sockets:       socketLimits(&g.GraphQLConnections),
		SocketDrain:   g.GraphQLConnections.DrainSpread,
		LateSockets:   g.GraphQLConnections.MaxUnauthenticated,
	}
	if g.ProxyProtocol {
		conf.Wire.Proxies = g.TrustedProxies
	}
	return conf
}

func socketLimits(c *config.GraphQLConnections) connections.Limits {
	return connections.Limits{
		Operations: c.MaxOperations, MaxMessage: int64(c.MaxMessage), MaxQueued: int(c.MaxQueue), MaxResponse: int(c.MaxResponse),
		InitTimeout: c.InitTimeout, Heartbeat: c.Heartbeat, WriteWithin: c.WriteTimeout, Idle: c.IdleTimeout,
	}
}

// wordingOf returns the texts that replace the gateway's own.
func wordingOf(said *config.AuthMessages) *pipeline.Wording {
	w := new(pipeline.Wording)
	for text, m := range map[pipeline.Text]config.Message{
		pipeline.TextFieldMissing: said.FieldMissing, pipeline.TextKeyNotFound: said.KeyNotFound, pipeline.TextKeyInvalid: said.KeyInvalid,
		pipeline.TextCertNotFound: said.CertNotFound, pipeline.TextCertExpired: said.CertExpired, pipeline.TextCertRequired: said.CertRequired,
		pipeline.TextCertMismatch: said.CertMismatch,
	} {
		w.Set(text, m.Message, m.Code)
	}
	return w
}

// metrics returns the metrics of the parts of a plane.
func (pl *plane) metrics(p planeParts) []prometheus.Collector {
	all := []prometheus.Collector{
		pl.gateway.Metrics(), pl.gateway.LiveConnections().Metrics(), pl.pools.Metrics(), pl.calls.Metrics(), pl.tunnels.Metrics(), pl.cache.Metrics(), pl.sessions.Metrics(),
		pl.graphql.Metrics(), pl.overload.Metrics(), pl.limits.Metrics(), pl.tokens.Metrics(), pl.passwords.Metrics(),
		p.usage.Metrics(), p.events.Metrics(), p.stores.metrics(),
	}
	if p.sender != nil {
		all = append(all, p.sender.Metrics())
	}
	if pl.traces != nil {
		all = append(all, pl.traces.Metrics())
	}
	if pl.streams != nil {
		all = append(all, pl.streams.Metrics())
	}
	if p.shipped != nil {
		all = append(all, p.shipped.sender.Metrics())
	}
	if p.secure != nil && p.secure.server != nil {
		all = append(all, p.secure.server.Metrics(), pl.gateway.HandshakeMetrics())
		if p.secure.acme != nil {
			all = append(all, p.secure.acme.Metrics())
		}
	}
	return all
}

// serve accepts traffic until the listener fails or the plane is drained.
func (pl *plane) serve(ln net.Listener) error {
	if err := pl.gateway.Serve(ln); !errors.Is(err, wire.ErrStopped) {
		return err
	}
	return nil
}

// run runs the background work of the plane until ctx ends.
func (pl *plane) run(ctx context.Context, t *tasks, src source.Source) {
	limitMemory(pl.log)
	t.start("configuration", func() error { pl.gateway.Follow(ctx, src); return nil })
	t.start("sessions", func() error { pl.sessions.Run(ctx); return nil })
	if pl.orgs != nil {
		t.start("organisations", func() error { pl.orgs.Run(ctx); return nil })
	}
	t.start("tunnels", func() error { pl.tunnels.Run(ctx); return nil })
	if pl.traces != nil {
		t.start("traces", func() error { pl.traces.Run(ctx); return nil })
	}
	t.start("targets", func() error { pl.calls.Run(ctx); return nil })
	t.start("token keys", func() error { pl.keySets.Run(ctx); return nil })
	t.start("passwords", func() error { pl.passwords.Run(ctx); return nil })
	t.start("overload", func() error { return pl.overload.Run(ctx) })
	if pl.access != nil {
		t.start("access log", func() error { pl.access.Run(ctx); return nil })
	}
}
