// Package admin is the management server: REST over the store, and the supply of
// configuration and keys to the gateways.
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/secret"
)

// Deps are what a Server works with. The caller closes them after Shutdown.
type Deps struct {
	Store    *store.Store
	Keys     keystore.Store  // where gateways find sessions; required
	Counters counter.Counter // whose counters a key's change resets; nil: none
	Epoch    Epoch           // nil: Keys lives in this process, and Refill fills it

	GatewayToken secret.Value // what gateways show; empty: only users with the role gateway are let in as such

	PageSize  int // objects on a page of a list when the caller does not say, in 1…500; 0: 10
	LoginRate int // failed authentications a minute from one address before 429; 0: 5

	Version string                  // of this program, for the API's description
	Metrics prometheus.Registerer   // nil: not measured
	Scrape  fasthttp.RequestHandler // answers GET /metrics, with its own authentication; nil: 404
	Log     *slog.Logger            // nil: discarded
}

// An Epoch tells whether a shared key store still holds what was put there.
type Epoch interface {
	// Filled reports whether the mark of MarkFilled is there: a store that lost
	// its data lost the mark as well.
	Filled(ctx context.Context) (bool, error)

	// MarkFilled sets the mark.
	MarkFilled(ctx context.Context) error
}

// Server is the management server. Make one with New.
type Server struct {
	deps    Deps
	log     *slog.Logger
	http    *fasthttp.Server
	shelf   *shelf
	fleet   *fleet
	guard   *guard
	meters  *meters
	openapi []byte

	dirty chan struct{} // the configuration is to be rendered again; holds one
	late  chan struct{} // a key could not be delivered at once; holds one

	lifetime context.Context // ends with Shutdown
	end      context.CancelFunc
	workers  sync.WaitGroup
}

// New returns a server that follows the store's configuration and delivers keys
// from now on, until Shutdown. The database may be away.
func New(d Deps) (*Server, error) {
	if d.Store == nil || d.Keys == nil {
		return nil, errors.New("admin: Store and Keys are required")
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.PageSize <= 0 || d.PageSize > maxPageSize {
		d.PageSize = 10
	}
	if d.LoginRate <= 0 {
		d.LoginRate = 5
	}
	s := &Server{
		deps: d, log: d.Log, shelf: newShelf(), fleet: newFleet(), guard: newGuard(d.LoginRate, time.Now),
		dirty: make(chan struct{}, 1), late: make(chan struct{}, 1),
	}
	var err error
	if s.openapi, err = describe(s.routes(), d.Version); err != nil {
		return nil, fmt.Errorf("describing the API: %w", err)
	}
	if s.meters, err = newMeters(d.Metrics, s); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	s.http = s.newHTTP()
	s.lifetime, s.end = context.WithCancel(context.Background())
	s.workers.Go(func() { d.Store.Listen(s.lifetime, func(store.State) { poke(s.dirty) }) })
	s.workers.Go(s.follow)
	s.workers.Go(s.drain)
	s.workers.Go(s.watchEpoch)
	s.workers.Go(s.reportFleet)
	return s, nil
}

// newHTTP sets every limit that a client can press.
func (s *Server) newHTTP() *fasthttp.Server {
	return &fasthttp.Server{
		Handler:               s.handler(),
		ErrorHandler:          s.refuseUnreadable,
		Concurrency:           20_000,
		ReadBufferSize:        16 << 10, // also the largest head
		MaxRequestBodySize:    maxBody,
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
	if err := s.http.Serve(ln); err != nil {
		return fmt.Errorf("serving the admin: %w", err)
	}
	return nil
}

// Shutdown releases waiting gateways, lets requests in flight finish until ctx
// ends, and stops all work in the background.
func (s *Server) Shutdown(ctx context.Context) error {
	s.shelf.close()
	err := s.http.ShutdownWithContext(ctx)
	s.end()
	s.workers.Wait()
	if err != nil {
		return fmt.Errorf("stopping the admin: %w", err)
	}
	return nil
}

// poke wakes whoever waits on a channel that holds one, or will.
func poke(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// pause waits, or less when ctx ends; it tells whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
