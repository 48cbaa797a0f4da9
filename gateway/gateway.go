// Package gateway serves traffic: it reads requests, runs them through the stages
// of the API that they reach, and swaps the snapshot that they are served from when
// configuration changes.
package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/snapshot"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/valyala/fasthttp"
)

// Config is how a gateway serves, apart from what its bundles say.
type Config struct {
	Wire          wire.Config
	Trusted       []netip.Prefix    // proxies whose X-Forwarded-For and X-Request-Id are used
	KeepIDs       bool              // X-Request-Id of any caller is used
	Tags          []string          // of the gateway, for explanations
	CustomDomains bool              // domains of definitions are compared with the request's host
	HideGenerator bool              // error answers have no X-Generator
	Wording       *pipeline.Wording // replaces texts of error answers; nil: none
	ShowReason    bool              // error answers have X-Sluice-Reason
	Refusals      int               // how many refused requests are recorded, for explanations by their ids; 0: none
	ReloadCPU     float64           // share of one processor that loading may take beside traffic; 0: all there are
	Sockets       live.Limits       // bounds of each GraphQL connection
	SocketDrain   time.Duration     // over which Shutdown ends GraphQL connections
	LateSockets   int               // GraphQL connections of one API that may wait for their credential
}

// Deps are the dependencies of a gateway.
type Deps struct {
	Config     Config
	Stages     snapshot.Stages
	Handshakes Handshakes // nil: without TLS
	Challenges Challenges // nil: ACME is off
	Observe    Observer
	Tracer     Tracer                  // nil: no traces are recorded
	Handover   *explain.Handover       // keeps refusals for the admin, unless Config.Refusals is 0; nil: they are not kept
	Samples    *explain.Samples        // records requests; nil: none
	Control    fasthttp.RequestHandler // serves /svc/; nil: it is not on this port
	Health     fasthttp.RequestHandler // serves the health paths; nil: they are not on this port
	Log        *slog.Logger
}

// An Observer measures requests and reloads.
type Observer interface {
	// Unmatched returns the meter of requests that reach no API.
	Unmatched() pipeline.Meter

	// ConnectionEnded records a GraphQL connection that has ended.
	ConnectionEnded(m *live.Member)

	// OperationEnded records an operation of one that has ended. It does not wait.
	OperationEnded(m *live.Member, e *live.OperationEnd)

	// Applied records a bundle that is in force, and how many of its APIs are not
	// served as written.
	Applied(revision string, took time.Duration, failed int)

	// Refused records a bundle that was refused as a whole.
	Refused(revision string)

	// Drop drops the measurements of APIs by their ids.
	Drop(ids []string)

	// KeepOperations drops the measurements of operations of all GraphQL APIs but
	// these.
	KeepOperations(graphs []*pipeline.API)
}

// Handshakes configures TLS handshakes, in which clients are asked for the
// certificates that APIs require.
type Handshakes interface {
	// Came adds APIs that are about to enter service.
	Came(apis []*pipeline.API)

	// Gone removes APIs that have left service.
	Gone(apis []*pipeline.API)
}

// Challenges answers the challenges of ACME by HTTP.
type Challenges interface {
	// Answer returns the answer to the challenge with a token at a host, which may have a
	// port, or nil if the request is for APIs.
	Answer(host, token []byte) []byte
}

// Gateway serves requests from its current snapshot.
type Gateway struct {
	conf       Config
	stages     snapshot.Stages
	compiler   *snapshot.Compiler
	handshakes Handshakes
	challenges Challenges
	observe    Observer
	tracer     Tracer
	unmatched  pipeline.Meter
	control    fasthttp.RequestHandler
	health     fasthttp.RequestHandler
	log        *slog.Logger
	server     *wire.Server
	faults     sync.Map // *wire.Fault to *pipeline.Rejection
	refusals   *explain.Refusals
	handover   *explain.Handover // nil: refusals are not kept for an admin
	samples    *explain.Samples  // nil: requests are not recorded

	current atomic.Pointer[serving] // nil before the first bundle
	sockets live.Registry
	streams openStreams
	hub     live.Hub // of connections to upstreams of subscriptions
	late    lateConnections

	stopping atomic.Bool // no more GraphQL connections
}

// New returns a gateway that answers 503 until its first bundle is applied.
func New(deps Deps) *Gateway {
	g := &Gateway{
		conf: deps.Config, stages: deps.Stages, compiler: snapshot.NewCompiler(deps.Stages, deps.Log),
		handshakes: deps.Handshakes, challenges: deps.Challenges, observe: deps.Observe, tracer: deps.Tracer,
		unmatched: deps.Observe.Unmatched(), control: deps.Control, health: deps.Health, log: deps.Log,
		refusals: explain.NewRefusals(deps.Config.Refusals), handover: deps.Handover, samples: deps.Samples,
	}
	g.server = wire.New(deps.Config.Wire, g, slog.NewLogLogger(deps.Log.Handler(), slog.LevelWarn))
	return g
}

// Serve accepts connections until Shutdown, or until the listener fails.
func (g *Gateway) Serve(ln net.Listener) error { return g.server.Serve(ln) }

// ServeTLS is Serve for connections that begin with TLS.
func (g *Gateway) ServeTLS(ln net.Listener, secure *wire.Secure) error {
	return g.server.ServeTLS(ln, secure)
}

// Leave makes clients open new connections, elsewhere if they can; see [wire.Server].
func (g *Gateway) Leave() { g.server.Leave() }

// Shutdown waits for open calls to finish, until ctx ends. Clients of event streams are
// asked to connect again at once, and those of GraphQL connections within
// Config.SocketDrain and four fifths of the time that there is.
func (g *Gateway) Shutdown(ctx context.Context) error {
	g.stopping.Store(true)
	ctx, over := context.WithCancel(ctx)
	within := g.conf.SocketDrain
	if end, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(end)*4/5)
	}
	left := g.sockets.Leave(ctx, within, goodbye)
	g.streams.leave()
	streams := make(chan error, 1)
	go func() { streams <- g.stages.Streams.Shutdown(ctx) }() // its clients are calls that are open
	err := errors.Join(g.server.Shutdown(ctx), <-streams)
	over()
	<-left
	return err
}

// Connections returns the state of client connections.
func (g *Gateway) Connections() wire.Stats { return g.server.Stats() }

// Metrics returns the metrics of the connections and requests of clients.
func (g *Gateway) Metrics() prometheus.Collector { return g.server.Metrics() }

// HandshakeMetrics returns the metrics of the TLS handshakes of clients.
func (g *Gateway) HandshakeMetrics() prometheus.Collector { return g.server.HandshakeMetrics() }

// Waited returns how long requests waited to be read; see [wire.Server].
func (g *Gateway) Waited() time.Duration { return g.server.Waited() }

// Current returns the snapshot in force, or nil before the first.
func (g *Gateway) Current() *snapshot.Snapshot {
	if s := g.current.Load(); s != nil {
		return s.Snapshot
	}
	return nil
}
