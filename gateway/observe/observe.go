// Package observe tells what traffic came to: in metrics, in the access log and
// in events. What it does for a request costs a clock read at most, and two locks
// that are held for a few additions and a copy.
package observe

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/gateway/observe/rollup"
	"github.com/sluicegate/sluice/gateway/observe/usage"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// Events takes what happens, without waiting.
type Events interface{ Raise(e event.Event) }

// Options says what an Observer is made of.
type Options struct {
	Version string         // of the program, for sluice_build_info
	Sources Sources        // what other rooms know
	Usage   *usage.Usage   // counts operations; nil: they are not counted
	Calls   *rollup.Counts // counts calls for the admin; nil: they are not counted
	Access  *AccessLog     // nil: there is no access log
	Events  Events         // nil: nobody listens
	Log     *slog.Logger
}

// Observer watches all traffic of a gateway. It is safe for concurrent use.
type Observer struct {
	metrics   *metrics
	usage     *usage.Usage
	calls     *rollup.Counts
	access    *AccessLog
	events    Events
	unmatched *meter
}

// New returns an observer that has seen nothing.
func New(o Options) *Observer {
	obs := &Observer{metrics: newMetrics(o), usage: o.Usage, calls: o.Calls, access: o.Access, events: o.Events}
	obs.unmatched = obs.metrics.apis.meter("", obs.meter)
	return obs
}

// Registry is where other rooms of the process add their metrics.
func (o *Observer) Registry() prometheus.Registerer { return o.metrics.registry }

// NewMeter returns what meters an API, for its compiled form. An API that is
// compiled again goes on counting where it was.
func (o *Observer) NewMeter(api string) pipeline.Meter {
	return o.metrics.apis.meter(api, o.meter)
}

// Unmatched meters the requests that no API took; their api label is empty.
func (o *Observer) Unmatched() pipeline.Meter { return o.unmatched }

// Drop drops the metrics of APIs.
func (o *Observer) Drop(ids []string) { o.metrics.apis.drop(ids) }

// KeepOperations drops what was counted of the operations of all GraphQL APIs
// but these.
func (o *Observer) KeepOperations(graphs []*pipeline.API) {
	if o.usage == nil {
		return
	}
	schemas := make(map[string]*schema.Schema, len(graphs))
	for _, api := range graphs {
		schemas[api.Definition.ID] = api.Schema
	}
	o.usage.Keep(schemas)
	o.metrics.apis.reopen(schemas)
}

// Applied reports a bundle that was put in force, how long that took, and how
// many of its definitions are not served as written.
func (o *Observer) Applied(revision string, took time.Duration, failed int) {
	o.metrics.config.applied(revision, took, failed)
}

// Refused reports a bundle that was not put in force at all.
func (o *Observer) Refused(string) { o.metrics.config.rejected.Add(1) }

func (o *Observer) meter(api string) *meter { return &meter{observer: o, api: api} }
