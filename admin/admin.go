// Package admin is the management server: REST over the store, and the supply of
// configuration and keys to the gateways.
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/attempts"
	"github.com/sluicegate/sluice/admin/certs"
	"github.com/sluicegate/sluice/admin/meters"
	"github.com/sluicegate/sluice/admin/portal"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/schemas"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/supply"
	"github.com/sluicegate/sluice/admin/usage"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/secret"
)

// Deps are what a Server works with. The caller closes them after Shutdown.
type Deps struct {
	Store    *store.Store
	Keys     keystore.Store  // where gateways find sessions; required
	Shared   supply.Shared   // Keys once more, where it is shared; nil: it lives in this process, and Refill fills it
	Counters counter.Counter // of the keys' quotas; required
	Naming   counter.Naming  // of Counters

	KeyOptions keys.Options // how keys are made and found; its Hasher is required

	Schemas schemas.Options // how upstreams are asked for their schemas

	Explain Explainer // nil: nothing is explained

	MasterKey secret.Key // seals private keys of certificates; the zero value lets nobody store one

	Portal portal.Settings

	GatewayToken secret.Value // what gateways show; empty: only users with the role gateway are let in as such

	Retention usage.Retention // how long usage is kept; what is zero: 8 days of minutes, 400 days of hours

	PageSize  int // objects on a page of a list when the caller does not say, in 1…500; 0: 10
	LoginRate int // failed authentications a minute from one address before 429; 0: 5

	Trusted []netip.Prefix // proxies whose X-Forwarded-For names the address of a caller

	Version string                  // of this program, for the API's description
	Metrics prometheus.Registerer   // nil: not measured
	Scrape  fasthttp.RequestHandler // answers GET /metrics, with its own authentication; nil: 404
	Log     *slog.Logger            // nil: discarded
}

// Server is the management server. Make one with New.
type Server struct {
	deps    Deps
	log     *slog.Logger
	http    *fasthttp.Server
	supply  *supply.Supply
	schemas *schemas.Keeper
	certs   *certs.Keeper
	portal  *portal.Portal
	usage   *usage.Service
	guard   *attempts.Guard
	meters  *meters.Meters
	openapi []byte

	explaining chan struct{} // holds one for each request that is being explained

	lifetime context.Context // ends with Shutdown
	end      context.CancelFunc
	work     sync.WaitGroup // in the background, until lifetime ends
}

// New returns a server that follows the store's configuration and delivers keys
// from now on, until Shutdown. The database may be away.
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
	s := &Server{deps: d, log: d.Log, certs: certs.New(d.Store, d.MasterKey), guard: attempts.New(d.LoginRate, time.Now)}
	s.explaining = make(chan struct{}, maxExplained)
	var err error
	s.portal, err = portal.New(portal.Deps{
		Store: d.Store, Counters: d.Counters, Naming: d.Naming, KeyOptions: d.KeyOptions, MasterKey: d.MasterKey,
		Deliver:  func(hash string) { s.supply.Deliver(hash) },
		Settings: d.Portal, LoginRate: d.LoginRate, Metrics: d.Metrics, Now: time.Now, Log: d.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("opening the portal: %w", err)
	}
	d.Schemas.Publish = s.portal.Publish
	s.schemas = schemas.New(d.Store, d.Schemas, d.Log)
	if err := s.openUsage(); err != nil {
		return nil, err
	}
	if s.openapi, err = rest.Describe(s.routes(), d.Version); err != nil {
		return nil, fmt.Errorf("describing the API: %w", err)
	}
	if s.meters, err = meters.New(d.Metrics); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	s.supply, err = supply.Start(supply.Deps{
		Store: d.Store, Keys: d.Keys, Counters: d.Counters, Shared: d.Shared, Shown: d.KeyOptions.Hasher.Shown, Metrics: d.Metrics, Log: d.Log,
	})
	if err != nil {
		return nil, err
	}
	s.http = s.newHTTP()
	s.lifetime, s.end = context.WithCancel(context.Background())
	s.work.Go(func() { s.schemas.Run(s.lifetime) })
	s.work.Go(func() { s.portal.Run(s.lifetime) })
	s.work.Go(func() { s.usage.Run(s.lifetime) })
	s.work.Go(func() { s.forgetCalls(s.lifetime) })
	return s, nil
}

// newHTTP sets every limit that a client can press.
func (s *Server) newHTTP() *fasthttp.Server {
	routes := s.routes()
	return &fasthttp.Server{
		Handler:               s.handler(routes),
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
		Logger:                quiet{},
	}
}

// quiet drops fasthttp's own log lines, which repeat what clients did wrong.
type quiet struct{}

// Printf does nothing.
func (quiet) Printf(string, ...any) {}

// Serve answers requests on ln until Shutdown, and closes it.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(lingeringListener{ln}); err != nil {
		return fmt.Errorf("serving the admin: %w", err)
	}
	return nil
}

// Shutdown releases waiting gateways, lets requests in flight finish until ctx
// ends, and stops all work in the background.
func (s *Server) Shutdown(ctx context.Context) error {
	s.supply.Release()
	err := s.http.ShutdownWithContext(ctx)
	s.end()
	s.work.Wait()
	s.supply.Stop()
	if err != nil {
		return fmt.Errorf("stopping the admin: %w", err)
	}
	return nil
}

// Refill puts every key into the key store. Where that lives in the gateway's
// process it is empty at first: the caller waits for Refill before it lets
// traffic in.
func (s *Server) Refill(ctx context.Context) error { return s.supply.Refill(ctx) }

// NextBundle waits until there is a bundle with another entity tag than have,
// and returns it. It returns the one with that tag, or nil when there is none at
// all, once ctx ends or the server shuts down.
func (s *Server) NextBundle(ctx context.Context, have string) *supply.Bundle {
	return s.supply.Next(ctx, have)
}
