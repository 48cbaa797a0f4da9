// Package observe records traffic in metrics, in the access log and in events, and
// serves /metrics and the health paths. For a request this costs at most one reading of
// the clock and two locks, held for a few additions and a copy.
package observe

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/usage"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// Events accepts events without waiting.
type Events interface{ Raise(e event.Event) }

// Options are the parts of an Observer.
type Options struct {
	Version    string            // of the program, for sluice_build_info
	Source     func() string     // where the configuration in force came from, such as "admin" or "disk"; nil: not shown
	Operations *usage.Operations // nil: GraphQL operations are not counted
	Calls      *usage.Calls      // counts calls for the admin; nil: they are not counted
	Access     *AccessLog        // nil: there is no access log
	Events     Events            // nil: no events are raised
	RawKeys    bool              // events hold keys as clients sent them
	Log        *slog.Logger
}

// Observer records all traffic of a gateway. It is safe for concurrent use.
type Observer struct {
	registry   *prometheus.Registry
	apis       meters
	config     configState
	operations *usage.Operations
	calls      *usage.Calls
	access     *AccessLog
	events     Events
	rawKeys    bool
	unmatched  *meter
}

// New returns an observer that has recorded nothing.
func New(o Options) *Observer {
	obs := &Observer{
		registry: prometheus.NewRegistry(), apis: meters{byID: make(map[string]*meter)}, config: configState{source: o.Source},
		operations: o.Operations, calls: o.Calls, access: o.Access, events: o.Events, rawKeys: o.RawKeys,
	}
	obs.registerOwn(o.Version)
	obs.unmatched = obs.apis.meter("", obs.meter)
	return obs
}

// Registry is where other packages register their metrics.
func (o *Observer) Registry() prometheus.Registerer { return o.registry }

// NewMeter returns the meter of an API, for its compiled form. When an API is compiled
// again, its counts go on.
func (o *Observer) NewMeter(api string) pipeline.Meter {
	return o.apis.meter(api, o.meter)
}

// Unmatched returns the meter of the requests that match no API; their api label is
// empty.
func (o *Observer) Unmatched() pipeline.Meter { return o.unmatched }

// Drop drops the metrics of APIs.
func (o *Observer) Drop(ids []string) { o.apis.drop(ids) }

// KeepOperations drops the counts of the operations of all GraphQL APIs but these.
func (o *Observer) KeepOperations(graphs []*pipeline.API) {
	if o.operations == nil {
		return
	}
	schemas := make(map[string]*schema.Schema, len(graphs))
	for _, api := range graphs {
		schemas[api.Definition.ID] = api.Schema
	}
	o.operations.Keep(schemas)
	o.apis.reopen(schemas)
}

// Applied records that a bundle was put in force, how long that took, and how many of
// its definitions are not served as written.
func (o *Observer) Applied(revision string, took time.Duration, failed int) {
	o.config.applied(revision, took, failed)
}

// Refused records a bundle that was not put in force at all.
func (o *Observer) Refused(string) { o.config.rejected.Add(1) }

func (o *Observer) meter(api string) *meter { return &meter{observer: o, api: api} }
