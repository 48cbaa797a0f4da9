// Package admin is the management server: a REST API over the store, and the
// distribution of configuration and keys to the gateways. Each resource is a file with
// its routes and handlers; the developer portal is a package of its own.
package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/distribution"
	"github.com/sluicegate/sluice/admin/portal"
	"github.com/sluicegate/sluice/admin/replay"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/schemas"
	"github.com/sluicegate/sluice/admin/signin"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/usage"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/throttle"
)

// Deps are the dependencies of a Server. The caller closes them after Shutdown.
type Deps struct {
	Store    *store.Store
	Keys     keystore.Store      // key store of the gateways; required
	Shared   distribution.Shared // Keys if several processes share it; nil: it is in this process, and Refill fills it
	Seal     *keystore.Seal      // of the sessions in Keys, which gateways are told; nil: they are not sealed
	Counters counter.Counter     // of the keys' quotas; required
	Naming   counter.Naming      // of Counters

	KeyOptions keys.Options // how keys are made and found; its Hasher is required
	OrgLimits  bool         // gateways enforce the limits of organisations (enforce_org_quotas)

	Schemas schemas.Options // how schemas are fetched from upstreams

	Explain Explainer // nil: POST /api/explain answers 404
	Play    Player    // nil: there is no playground
	Try     Player    // makes the calls of developers, apart from those of operators; nil: they make none

	TryStream StreamTrier // runs the processors of event streams; nil: they cannot be tried

	Compare replay.Comparer // nil: recorded requests cannot be run

	MasterKey secret.Key // seals private keys and other secrets; with the zero value none can be stored

	Streaming bool // streaming.enabled: streams can be managed

	Portal portal.Settings

	GatewayToken secret.Value // credential of the gateways; empty: only users with the role gateway are accepted

	FormerGatewayToken secret.Value // accepted beside GatewayToken; empty: none

	// AccessKeyChanged is called after the access key of a user has ended, with its hash
	// and the key that took its place; empty: the user was deleted. May be nil.
	AccessKeyChanged func(former []byte, now secret.Value)

	Retention usage.Retention // how long usage is kept; zero members: 8 days of minutes, 400 days of hours, 7 days of refusals and of recorded requests, 10,000 of the latter

	AuditRetention time.Duration // how long entries of the audit log are kept; 0: 730 days

	PageSize  int // default number of objects on a page of a list, in 1…500; 0: 10
	LoginRate int // failed authentications a minute from one address before 429; 0: 5

	PublicURL string           // under which users reach the admin, for links; "": as they call it
	HSTS      time.Duration    // how long browsers use HTTPS alone, on a listener of its own portal.Settings.HSTS; 0: not said
	Now       func() time.Time // for sessions of users; nil: time.Now

	UI UI // pages for browsers; nil: no pages are served

	Trusted []netip.Prefix // proxies whose X-Forwarded-For is trusted

	Version  string                               // of this program, for the OpenAPI document
	Settings func() []Setting                     // of this process; nil: none are shown
	Examine  func(context.Context, Ask) []Finding // checks the installation; nil: nothing is checked

	Metrics prometheus.Registerer   // nil: not measured
	Scrape  fasthttp.RequestHandler // answers GET /metrics and authenticates its callers; nil: 404
	Log     *slog.Logger            // nil: discarded
}

// UI is what answers requests of browsers for pages.
type UI interface {
	// Strip removes the base path from the path of a request.
	Strip(ctx *fasthttp.RequestCtx)
	// Answer answers a request for a page or a part of one, and reports whether it did:
	// never for a path of the REST or of the portal.
	Answer(ctx *fasthttp.RequestCtx) bool
}

// Server is the management server. Make one with New.
type Server struct {
	deps      Deps
	log       *slog.Logger
	http      *fasthttp.Server
	apart     *fasthttp.Server // of the portal's own listener
	gateways  *distribution.Service
	schemas   *schemas.Keeper
	portal    *portal.Portal
	signin    *signin.Service
	handlers  handlerMemo
	servePage fasthttp.RequestHandler // answers requests for pages of the portal
	inside    fasthttp.RequestHandler // answers calls of the REST that begin in this process
	usage     *usage.Service
	replay    *replay.Service
	throttle  *throttle.Throttle
	memory    gatewayMemory
	metrics   *callMetrics
	openapi   func() ([]byte, error)

	pulses      pulses
	examining   sync.Mutex
	formerUsers names // gateways that used the former token

	warnedOfProxy atomic.Bool // see warnOfProxy

	lists      heldLists[connectionList]
	running    heldLists[runningStreams]
	asking     chan struct{} // holds an element for each question to the gateways
	explaining chan struct{} // holds an element for each request that is being explained
	playing    chan struct{} // holds an element for each call of the playground
	tries      *tries        // of developers
	streamed   *underWay     // subscriptions of the playground, of operators
	trials     *underWay     // of processors of streams

	streams    context.Context // of all subscriptions of the playground; ends with Shutdown
	endStreams context.CancelCauseFunc

	lifetime context.Context // ends with Shutdown
	end      context.CancelFunc
	work     sync.WaitGroup // in the background, until lifetime ends
}

// New returns a server that follows the store's configuration and delivers keys
// from now on, until Shutdown. The database may be unavailable.
func New(d Deps) (*Server, error) {
	if d.Store == nil || d.Keys == nil || d.Counters == nil || d.KeyOptions.Hasher == nil {
		return nil, errors.New("admin: Store, Keys, Counters and KeyOptions.Hasher are required")
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.PageSize <= 0 || d.PageSize > rest.MaxPageSize {
		d.PageSize = 10
	}
	if d.LoginRate <= 0 {
		d.LoginRate = 5
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	d.AuditRetention = cmp.Or(d.AuditRetention, keptAudit)
	s := &Server{deps: d, log: d.Log, throttle: throttle.New(d.LoginRate, time.Now)}
	s.explaining, s.playing, s.tries = make(chan struct{}, maxExplained), make(chan struct{}, maxPlayed), newTries(time.Now)
	s.asking = make(chan struct{}, maxAsking)
	s.streamed, s.trials = newUnderWay(maxStreamed, maxStreamedBy), newUnderWay(maxTrials, maxTrialsBy)
	s.streams, s.endStreams = context.WithCancelCause(context.Background())
	var err error
	s.gateways, err = distribution.New(distribution.Deps{
		Store: d.Store, Keys: d.Keys, Counters: d.Counters, Shared: d.Shared, Shown: d.KeyOptions.Hasher.Shown, Secret: s.openSecret, Metrics: d.Metrics, Log: d.Log,
	})
	if err != nil {
		return nil, err
	}
	s.portal, err = portal.New(portal.Deps{
		Store: d.Store, Counters: d.Counters, Naming: d.Naming, KeyOptions: d.KeyOptions, MasterKey: d.MasterKey,
		Deliver: s.gateways.Deliver, Settings: d.Portal, LoginRate: d.LoginRate, Metrics: d.Metrics, Now: time.Now, Log: d.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("opening the portal: %w", err)
	}
	s.signin = signin.New(signin.Deps{
		Store: d.Store, Passwords: d.KeyOptions.Passwords, Letters: s.portal.Letters(), PublicURL: strings.TrimSuffix(d.PublicURL, "/"), LoginRate: d.LoginRate, Now: d.Now, Log: d.Log,
	})
	d.Schemas.Secret, d.Schemas.Used = s.Secret, s.fieldsRead
	s.schemas = schemas.New(d.Store, d.Schemas, d.Log)
	if err := s.openUsage(); err != nil {
		return nil, err
	}
	s.openapi = sync.OnceValues(s.describe) // made on the first request, as few servers are asked for it
	if s.metrics, err = newCallMetrics(d.Metrics); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	routes := s.routes()
	var scrape fasthttp.RequestHandler
	if d.Scrape != nil {
		scrape = s.scrape
	}
	s.inside = s.router(routes, scrape)
	if err := s.openSite(); err != nil {
		return nil, err
	}
	s.http, s.apart = s.newHTTP(routes, s.handler()), s.newPortalHTTP(routes)
	s.lifetime, s.end = context.WithCancel(context.Background())
	s.gateways.Start()
	s.work.Go(func() { s.schemas.Run(s.lifetime) })
	s.work.Go(func() { s.portal.Run(s.lifetime) })
	s.work.Go(func() { s.signin.Run(s.lifetime) })
	s.work.Go(func() { s.usage.Run(s.lifetime) })
	s.work.Go(func() { s.replay.Run(s.lifetime) })
	s.work.Go(func() { s.deleteOldCalls(s.lifetime) })
	s.work.Go(func() { s.remember(s.lifetime) })
	s.work.Go(func() { s.deleteOldAudit(s.lifetime) })
	return s, nil
}

// newHTTP sets all limits that protect the server from its clients.
func (s *Server) newHTTP(routes []rest.Route, handler fasthttp.RequestHandler) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:               handler,
		HeaderReceived:        s.bodies(routes),
		ErrorHandler:          s.refuseUnreadable,
		Concurrency:           20_000,
		ReadBufferSize:        16 << 10, // also the largest head
		MaxRequestBodySize:    rest.MaxBody,
		ReadTimeout:           30 * time.Second,
		WriteTimeout:          time.Minute,
		IdleTimeout:           75 * time.Second,
		NoDefaultServerHeader: true,
		NoDefaultDate:         false,
		CloseOnShutdown:       true,
		ReduceMemoryUsage:     true, // without it, a connection without a request yet counts as busy, and Shutdown waits for it
		Logger:                quiet{},
	}
}

// quiet drops the log lines of fasthttp, which report faults of clients.
type quiet struct{}

// Printf does nothing.
func (quiet) Printf(string, ...any) {}

// Serve serves requests on ln until Shutdown, and closes it.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(lingeringListener{ln}); err != nil {
		return fmt.Errorf("serving the admin: %w", err)
	}
	return nil
}

// Shutdown ends long-polls and subscriptions of the playground, waits for requests in flight until ctx ends, and stops all
// work in the background.
func (s *Server) Shutdown(ctx context.Context) error {
	s.gateways.Release()
	s.endStreams(endStop)
	err := errors.Join(s.apart.ShutdownWithContext(ctx), s.http.ShutdownWithContext(ctx))
	s.end()
	s.work.Wait()
	s.gateways.Stop()
	if err != nil {
		return fmt.Errorf("stopping the admin: %w", err)
	}
	return nil
}

// Refill writes every key to the key store. A key store in the gateway's process is
// empty at first: the caller waits for Refill before it accepts traffic.
func (s *Server) Refill(ctx context.Context) error { return s.gateways.Refill(ctx) }

// NextBundle waits for a bundle whose entity tag is not have, and returns it. When ctx
// ends or the server shuts down it returns the current bundle, or nil if there is none.
func (s *Server) NextBundle(ctx context.Context, have string) *distribution.Bundle {
	return s.gateways.Next(ctx, have, nil)
}
