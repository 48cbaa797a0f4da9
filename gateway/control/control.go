// Package control is the gateway API: calls under /svc/ that show and change
// what a gateway serves, and the paths that tell whether it is well.
//
// Definitions and keys are changed through backends: files beside the gateway,
// or the admin that owns them. Callers see the same answers either way.
package control

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sluicegate/sluice/gateway/observe/usage"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/valyala/fasthttp"
)

// Live is what the gateway serves at the moment.
type Live interface {
	// Revision names the configuration in force; "" before the first.
	Revision() string

	// APIs returns the definitions in service, ordered by id.
	APIs() []*definition.API

	// API returns the definition in service under an id, or nil.
	API(id string) *definition.API

	// Policies returns the policies in force.
	Policies() *definition.PolicySet

	// Failed returns, by API id, why something is not served as written.
	Failed() map[string]error

	// Origin tells where the configuration in force came from.
	Origin() Origin
}

// Origin is where a configuration came from.
type Origin struct {
	Source string    // such as "files" or "admin"
	Since  time.Time // when it came into force
	Stale  bool      // its source is away, so that there may be a newer one
}

// Definitions stores APIs and policies. An error of type *Error is answered as
// it is.
type Definitions interface {
	// SaveAPI stores a definition and returns its id, which is generated when
	// empty. With update set it returns ErrNotFound when there is none yet.
	SaveAPI(ctx context.Context, api *definition.API, update bool) (id string, err error)

	// DeleteAPI removes a definition, or returns ErrNotFound.
	DeleteAPI(ctx context.Context, id string) error

	// SavePolicy stores a policy, which has an id. With update set it returns
	// ErrNotFound when there is none yet.
	SavePolicy(ctx context.Context, p *definition.Policy, update bool) error

	// DeletePolicy removes a policy, or returns ErrNotFound.
	DeletePolicy(ctx context.Context, id string) error
}

// Reloader brings this gateway up to date.
type Reloader interface {
	// Reload returns once what is stored now is in force. An error that joins
	// others (errors.Join) says what is not served as written while the rest is
	// in force; any other says that nothing changed.
	Reload(ctx context.Context) error
}

// GroupReloader reaches every gateway of a group.
type GroupReloader interface {
	// ReloadGroup tells the gateways to reload and does not wait for them.
	ReloadGroup(ctx context.Context) error

	// ForgetAnswers tells the gateways to forget the answers that they keep for an
	// API, and does not wait for them.
	ForgetAnswers(ctx context.Context, api string) error

	// Watch calls reload whenever this gateway is told to, or may have missed
	// that it was, until ctx ends; and forget with the API whose answers are to be
	// forgotten, "" for all when something may have been missed.
	Watch(ctx context.Context, reload func(), forget func(api string))
}

// Events takes what happened to keys.
type Events interface{ Raise(e event.Event) }

// Usage knows which fields of GraphQL APIs are read.
type Usage interface {
	// Fields reports on an API, whether it ever had traffic or not.
	Fields(api string, f usage.Filter) *usage.Report
}

// Explainer tells what would become of requests.
type Explainer interface {
	// Explain explains the request that is described, or the refused one that is
	// named. The error is a *definition.Problems when the description is at fault,
	// and ErrNotFound when nothing is known of what it names.
	Explain(ctx context.Context, description []byte) (answer any, err error)
}

// ErrNotFound says that a backend has no such API or policy.
var ErrNotFound = errors.New("not found")

// Deps is what the gateway API works with.
type Deps struct {
	Secret       secret.Value  // shown by callers in X-Svc-Authorization; required
	Live         Live          // required
	Definitions  Definitions   // required
	Keys         Keys          // required
	ListKeys     bool          // GET /svc/keys lists hashes, or keys where they are stored in clear
	Reloader     Reloader      // required
	Group        GroupReloader // nil: this gateway is alone in its group
	Certificates Certificates  // nil: there are none, and the calls are not found
	Usage        Usage         // nil: nothing is counted, and the call is not found
	Answers      Answers       // nil: none are kept
	Explain      Explainer     // nil: nothing is explained, and the call is not found
	Events       Events        // nil: nobody is told
	Health       []Component   // shown by /hello, beside the configuration
	Version      string        // of this program
	Log          *slog.Logger  // nil: discarded
}

// API answers the calls. Make one with New and have Run run beside it.
type API struct {
	deps    Deps
	log     *slog.Logger
	handler fasthttp.RequestHandler
	reloads *reloads
	health  *health

	explaining chan struct{} // holds one for each request that is being explained
}

// reloadEvery is the least time from one reload to the next: those asked for in
// between are one.
const reloadEvery = time.Second

// New returns the gateway API. It fails without a secret, since everybody could
// then change everything.
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
	a := &API{deps: deps, log: deps.Log, reloads: newReloads(deps.Reloader.Reload, reloadEvery), explaining: make(chan struct{}, maxExplained)}
	a.health = newHealth(append([]Component{a.configuration()}, deps.Health...))
	a.handler = a.routed()
	return a, nil
}

// Run carries out reloads and listens to the group until ctx ends. Reloads that
// are asked for when it does not run wait for it.
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
