// Package control is the gateway API: calls under /svc/ that read and change what a
// gateway serves, and the health paths.
//
// Definitions and keys are changed through backends: files on this machine, or the
// admin that owns them. Responses are the same with both.
package control

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/usage"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/throttle"
	"github.com/valyala/fasthttp"
)

// Live is the configuration in force.
type Live interface {
	// Revision names the configuration in force; "" before the first.
	Revision() string

	// APIs returns the definitions in service, ordered by id.
	APIs() []*definition.API

	// API returns the definition in service under an id, or nil.
	API(id string) *definition.API

	// Policies returns the policies in force.
	Policies() *definition.PolicySet

	// Failed returns, by API id, why definitions are not served as written.
	Failed() map[string]error

	// Origin returns where the configuration in force came from.
	Origin() Origin
}

// Origin is where a configuration came from.
type Origin struct {
	Source string    // such as "files" or "admin"
	Since  time.Time // when it came into force
	Stale  bool      // its source is away: there may be a newer configuration

	Trouble string // what is wrong with the source, without addresses; "" if nothing is, or unknown
}

// Definitions stores APIs and policies. An error of type *Error becomes the response.
type Definitions interface {
	// SaveAPI stores a definition and returns its id, which is generated if empty. With
	// update it returns ErrNotFound if there is none yet.
	SaveAPI(ctx context.Context, api *definition.API, update bool) (id string, err error)

	// DeleteAPI removes a definition, or returns ErrNotFound.
	DeleteAPI(ctx context.Context, id string) error

	// SavePolicy stores a policy, which has an id. With update it returns ErrNotFound if
	// there is none yet.
	SavePolicy(ctx context.Context, p *definition.Policy, update bool) error

	// DeletePolicy removes a policy, or returns ErrNotFound.
	DeletePolicy(ctx context.Context, id string) error
}

// Reloader reloads the configuration of this gateway.
type Reloader interface {
	// Reload returns once the stored configuration is in force. An error that joins
	// others (errors.Join) lists definitions that are not served as written; any other
	// means that nothing changed.
	Reload(ctx context.Context) error
}

// GroupReloader reaches every gateway of a group.
type GroupReloader interface {
	// ReloadGroup makes the gateways reload and does not wait for them.
	ReloadGroup(ctx context.Context) error

	// ForgetAnswers makes the gateways drop their cached responses of an API, and does
	// not wait for them.
	ForgetAnswers(ctx context.Context, api string) error

	// Watch calls reload whenever this gateway is to reload, or may have missed a
	// message, until ctx ends. It calls forget with the API whose cached responses are
	// to be dropped, or with "" for all after messages may have been missed.
	Watch(ctx context.Context, reload func(), forget func(api string))
}

// Events accepts events about keys.
type Events interface{ Raise(e event.Event) }

// Usage reports which fields of GraphQL APIs are read.
type Usage interface {
	// Fields reports on an API, even if it never had traffic.
	Fields(api string, f usage.FieldFilter) *usage.FieldReport
}

// Explainer explains what the gateway would do with requests.
type Explainer interface {
	// Explain explains the request that is described, or the refused request that is
	// named. The error is a *definition.Problems for an invalid description, and
	// ErrNotFound if the request or an object in it is unknown.
	Explain(ctx context.Context, description []byte) (answer any, err error)
}

// ErrNotFound means that a backend has no such object.
var ErrNotFound = errors.New("not found")

// Deps are the parts that the gateway API works with.
type Deps struct {
	Secret       secret.Value  // that callers send in X-Svc-Authorization; required
	LoginRate    int           // calls without it a minute from one address before 429; 0: 5
	Live         Live          // required
	Definitions  Definitions   // required
	Keys         Keys          // required
	OrgLimits    bool          // the limits of organisations are enforced (enforce_org_quotas)
	ListKeys     bool          // GET /svc/keys lists hashes, or keys where they are stored in clear
	Reloader     Reloader      // required
	Group        GroupReloader // nil: the group has no other gateways
	Certificates Certificates  // nil: the calls answer 404
	Usage        Usage         // nil: the call answers 404
	Answers      Answers       // nil: no responses are cached
	Explain      Explainer     // nil: the call answers 404
	Connections  Connections   // nil: the calls answer 404
	Streams      Streams       // nil: the calls answer 404
	Events       Events        // nil: no events are raised
	Health       []Component   // in /hello, besides the configuration
	Stopping     func() bool   // reports whether the gateway stops: it is not ready then; nil: never
	Version      string        // of this program
	Log          *slog.Logger  // nil: discarded
}

// API answers the calls. Run must run while it is used.
type API struct {
	deps    Deps
	log     *slog.Logger
	handler fasthttp.RequestHandler
	reloads *reloads
	health  *health

	throttle *throttle.Throttle
	refused  atomic.Uint64 // calls without the secret

	explaining chan struct{} // has one element for each request that is being explained
	trying     chan struct{} // has one element for each stream that is being tried
}

// reloadEvery is the shortest time from one reload to the next. Requests in between
// share one reload.
const reloadEvery = time.Second

// New returns the gateway API. It fails without a secret, since anyone could change the
// configuration then.
func New(deps Deps) (*API, error) {
	switch {
	case deps.Secret.Empty():
		return nil, errors.New("gateway API: secret: is not set; anybody could call it without one")
	case deps.Live == nil || deps.Definitions == nil || deps.Keys == nil || deps.Reloader == nil:
		return nil, errors.New("gateway API: Live, Definitions, Keys and Reloader are required")
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.LoginRate <= 0 {
		deps.LoginRate = 5
	}
	a := &API{deps: deps, log: deps.Log, throttle: throttle.New(deps.LoginRate, time.Now), reloads: newReloads(deps.Reloader.Reload, reloadEvery), explaining: make(chan struct{}, maxExplained), trying: make(chan struct{}, maxTrials)}
	a.health = newHealth(append([]Component{a.configuration()}, deps.Health...))
	a.handler = a.routed(a.routes())
	return a, nil
}

// NewHealth returns an API that answers the health paths, and 404 below /svc/. Of deps it
// uses Live, Health, Stopping, Version and Log.
func NewHealth(deps Deps) *API {
	a := &API{deps: deps, log: deps.Log}
	a.health = newHealth(append([]Component{a.configuration()}, deps.Health...))
	a.handler = a.routed(nil)
	return a
}

// Run performs reloads and listens to the group until ctx ends. Reloads that are
// requested while it does not run wait for it.
func (a *API) Run(ctx context.Context) {
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if a.deps.Group != nil {
			a.deps.Group.Watch(ctx, a.reloads.schedule, a.forget)
		}
	}()
	a.reloads.run(ctx, a.log)
	<-watched
}
