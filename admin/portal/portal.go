// Package portal is where developers ask for access, operators decide, and a
// credential comes out: the rooms of the portal, put together.
package portal

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/guard"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/secret"
)

// SessionPrefix begins every credential of a signed-in developer.
const SessionPrefix = "slp_"

// Deps are what a Portal works with.
type Deps struct {
	Store      *store.Store
	Counters   counter.Counter       // of the keys' quotas
	Naming     counter.Naming        // of Counters
	KeyOptions keys.Options          // how keys are made and found; its Passwords hash those of developers, too
	Deliver    func(hash string)     // brings a key that was committed to the gateways without delay
	MasterKey  secret.Key            // seals what is secret; the zero value: such things cannot be kept
	Outbound   guard.Policy          // of calls whose target others choose
	Metrics    prometheus.Registerer // nil: not measured
	Now        func() time.Time
	Log        *slog.Logger
}

// Portal is the portal of all organisations. Make one with New.
type Portal struct {
	routes  []rest.Route
	workers []func(context.Context) // in the background, until their context ends
}

// New returns a Portal. The database may be away.
func New(d Deps) (*Portal, error) {
	p := new(Portal)
	_ = d
	return p, nil
}

// Routes lists what the portal answers.
func (p *Portal) Routes() []rest.Route { return p.routes }

// Identify returns which developer has a credential; store.ErrNotFound is nobody.
func (p *Portal) Identify(context.Context, []byte) (rest.Principal, error) {
	return rest.Principal{}, store.ErrNotFound
}

// Run does the portal's work in the background until ctx ends.
func (p *Portal) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, work := range p.workers {
		running.Go(func() { work(ctx) })
	}
	running.Wait()
}
