// Package gateway answers traffic: it listens, serves requests from an
// immutable snapshot, and swaps that for the next one when configuration
// changes.
package gateway

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/valyala/fasthttp"
)

// Config is how a gateway serves, apart from what its bundles say.
type Config struct {
	Wire          wire.Config
	Trusted       []netip.Prefix    // proxies whose X-Forwarded-For counts
	CustomDomains bool              // domains of definitions are compared with Host
	HideGenerator bool              // the gateway's own answers do not say whose they are
	Wording       *pipeline.Wording // of texts of the gateway's own answers, in place of its own; nil: there is none
	ShowReason    bool              // the gateway's own answers carry X-Sluice-Reason
	Refusals      int               // how many refused requests are remembered, for explanations by their ids; 0: none
	ReloadCPU     float64           // share of one processor that loading may take beside traffic; 0: all there are
}

// Deps is what a gateway is built of.
type Deps struct {
	Config  Config
	Stages  Stages
	Observe Observer
	Tracer  Tracer                  // nil: nobody records traces
	Control fasthttp.RequestHandler // serves /svc/ and the health paths; nil: they are not on this port
	Log     *slog.Logger
}

// An Observer is told about requests and reloads.
type Observer interface {
	// Unmatched meters the requests that no API took.
	Unmatched() pipeline.Meter

	// Applied reports a bundle that was put in force, and what of it was not.
	Applied(revision string, took time.Duration, failed int)

	// Refused reports a bundle that was not put in force at all.
	Refused(revision string)

	// Drop drops what is held for APIs of these ids.
	Drop(ids []string)

	// KeepOperations drops what is held of operations of GraphQL APIs other than
	// these.
	KeepOperations(graphs []*pipeline.API)
}

// Handshakes are those of TLS, in which clients are asked for what APIs want of
// them.
type Handshakes interface {
	// Came is told of APIs before they are in service.
	Came(apis []*pipeline.API)

	// Gone is told of APIs that have left.
	Gone(apis []*pipeline.API)
}

// Gateway serves requests from its current snapshot.
type Gateway struct {
	conf      Config
	stages    Stages
	observe   Observer
	tracer    Tracer
	unmatched pipeline.Meter
	control   fasthttp.RequestHandler
	log       *slog.Logger
	server    *wire.Server
	faults    sync.Map // *wire.Fault to *pipeline.Rejection
	refusals  *explain.Refusals

	current atomic.Pointer[Snapshot]
}

// New returns a gateway that answers 503 until its first bundle is applied.
func New(deps Deps) *Gateway {
	g := &Gateway{
		conf: deps.Config, stages: deps.Stages, observe: deps.Observe,
		tracer: deps.Tracer, unmatched: deps.Observe.Unmatched(), control: deps.Control, log: deps.Log,
		refusals: explain.NewRefusals(deps.Config.Refusals),
	}
	g.stages.log, g.stages.forms = deps.Log, new(atomic.Uint64)
	g.server = wire.New(deps.Config.Wire, g, slog.NewLogLogger(deps.Log.Handler(), slog.LevelWarn))
	return g
}

// Serve accepts connections until Shutdown, or until the listener fails.
func (g *Gateway) Serve(ln net.Listener) error { return g.server.Serve(ln) }

// ServeTLS is Serve for connections that begin with TLS.
func (g *Gateway) ServeTLS(ln net.Listener, secure *wire.Secure) error {
	return g.server.ServeTLS(ln, secure)
}

// Shutdown lets calls in flight finish, until ctx ends.
func (g *Gateway) Shutdown(ctx context.Context) error { return g.server.Shutdown(ctx) }

// Connections returns what the client side is doing.
func (g *Gateway) Connections() wire.Stats { return g.server.Stats() }

// Waited returns how long requests waited until they were read; see [wire.Server].
func (g *Gateway) Waited() time.Duration { return g.server.Waited() }

// Current returns the snapshot in force, or nil before the first.
func (g *Gateway) Current() *Snapshot { return g.current.Load() }

var (
	noRoute    = plain(pipeline.NewRejection(pipeline.ReasonRouteNotFound, 404, "Not Found"))
	badPath    = pipeline.NewRejection(pipeline.ReasonBadRequest, 400, "The request path is ambiguous or malformed")
	notStarted = pipeline.NewRejection(pipeline.ReasonNotServed, 503, "Configuration is not loaded yet")
	// The text is the one that users of comparable gateways know.
	schemaBroken = pipeline.NewRejection(pipeline.ReasonSchemaBroken, 500, "there was a problem proxying the request")
	notServed    = pipeline.NewRejection(pipeline.ReasonNotServed, 503, "This API's definition could not be loaded")
)

func plain(r *pipeline.Rejection) *pipeline.Rejection {
	r.PlainText = true
	return r
}

// Handle answers one call. It implements wire.Handler.
func (g *Gateway) Handle(call *wire.Call) {
	if g.control != nil && isControl(call.Path) {
		g.control(call.Ctx())
		return
	}
	ex := pipeline.For(call)
	setID(&ex.ID)
	ex.Client = upstream.ClientAddress(call, g.conf.Trusted)
	g.join(ex)
	meter := g.unmatched
	if g.current.Load().find(ex) {
		if ex.API.Meter != nil {
			meter = ex.API.Meter
		}
		g.run(ex)
	} else {
		g.reject(ex)
		g.remember(ex, inRoute)
	}
	meter.Done(ex)
	if ex.Trace.Steps != nil {
		g.tracer.Done(ex)
	}
	ex.Release()
}

// run walks the stages of the API, and then of the version that these settled on.
func (g *Gateway) run(ex *pipeline.Exchange) {
	at, verdict := inEntry, g.pass(ex, inEntry, ex.API.Entry)
	if verdict == pipeline.Next {
		at, verdict = inRequest, g.pass(ex, inRequest, stagesOf(ex))
	}
	if verdict == pipeline.Next {
		at, verdict = inForward, g.ask(ex)
	}
	if verdict != pipeline.Rejected && ex.Answer.Takeover != nil && !g.hold(ex) {
		verdict = pipeline.Rejected
	}
	if verdict == pipeline.Rejected {
		g.reject(ex)
		if !ex.Relayed() {
			g.remember(ex, at)
		}
		return
	}
	pipeline.Run(ex.Version.Response, ex)
}

// stagesOf returns the stages that decide on a request.
func stagesOf(ex *pipeline.Exchange) []pipeline.Stage {
	if ex.Open {
		return ex.Version.Open
	}
	return ex.Version.Request
}

// Refuse answers what was not a request. It implements wire.Handler.
func (g *Gateway) Refuse(call *wire.Call, fault *wire.Fault) {
	ex := pipeline.For(call)
	setID(&ex.ID)
	ex.Client = call.Peer
	ex.Rejection = g.rejectionOf(fault)
	g.reject(ex)
	g.remember(ex, inFraming)
	g.unmatched.Done(ex)
	ex.Release()
}
