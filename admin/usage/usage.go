// Package usage receives the usage that gateways count, sums it up, keeps it for the
// configured time and reports on it.
package usage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	rows "github.com/sluicegate/sluice/admin/store/usage"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/usage"
)

// Retention is how long usage is kept, at least.
type Retention = rows.Retention

// Deps are the parts that a Service works with.
type Deps struct {
	Store     *store.Store
	Retention Retention
	Clear     bool // identities of keys are the keys themselves

	// Key returns the identity of the key in a call's path; OwnKey that of a key of the
	// calling developer.
	Key, OwnKey func(ctx context.Context, c *rest.Call) (identity string, err error)

	// Remembered returns the explanation of a refused request that a gateway still
	// remembers. The error wraps store.ErrNotFound if none does; nil: none is asked.
	Remembered func(ctx context.Context, org, id string) (explanation []byte, err error)

	Metrics prometheus.Registerer // nil: not measured
	Now     func() time.Time
	Log     *slog.Logger
}

// Service reports the usage of all organisations. It is safe for concurrent use.
type Service struct {
	deps    Deps
	batches *prometheus.CounterVec
	behind  prometheus.Gauge
}

// New returns a service. The database may be away.
func New(d Deps) (*Service, error) {
	s := &Service{
		deps: d,
		batches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_admin_usage_batches_total", Help: "Batches of counted calls that gateways handed over, by what became of them.",
		}, []string{"result"}),
		behind: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sluice_admin_usage_sum_timestamp", Help: "When all hours that are over were last summed up, in unix seconds.",
		}),
	}
	if d.Metrics == nil {
		return s, nil
	}
	for _, c := range []prometheus.Collector{s.batches, s.behind} {
		if err := d.Metrics.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics of usage: %w", err)
		}
	}
	return s, nil
}

// Receive adds a batch, which counts once however often it is sent. It returns what of
// the batch cannot be counted, and a *rest.Fault if nothing of it ever will.
func (s *Service) Receive(ctx context.Context, b *usage.Batch) (usage.Receipt, error) {
	good, refused, err := b.Sift()
	if err != nil {
		s.batches.WithLabelValues("invalid").Inc()
		return refused, rest.BadRequest("Usage cannot be counted: " + err.Error())
	}
	added, err := rows.Add(ctx, s.deps.Store, good, s.deps.Now())
	if err == nil && added {
		if err := rows.TrimSamples(ctx, s.deps.Store, good, s.deps.Retention.MostSamples); err != nil {
			s.deps.Log.Warn("recorded requests that are too many stay until the next batch", "err", err)
		}
	}
	switch {
	case err != nil:
		s.batches.WithLabelValues("failed").Inc()
		return refused, err
	case !added:
		s.batches.WithLabelValues("repeated").Inc()
	case refused.Refused > 0:
		s.batches.WithLabelValues("partly").Inc()
		s.deps.Log.Warn("a gateway handed over usage that cannot be counted; the rest of the batch counts",
			"gateway", b.Gateway, "refused", refused.Refused, "calls", refused.Calls, "fault", refused.Faults[0])
	default:
		s.batches.WithLabelValues("added").Inc()
	}
	return refused, nil
}

// How often work is done.
const (
	sumEvery  = time.Minute
	keepEvery = time.Hour
)

// workWithin bounds one step.
const workWithin = 6 * time.Minute

// Run sums up hours and keeps partitions until ctx ends. If several admins run, one of
// them works at a time.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(sumEvery)
	defer tick.Stop()
	var kept time.Time
	for failing := false; ; {
		err := s.sum(ctx)
		if err == nil && time.Since(kept) >= keepEvery {
			if err = s.keep(ctx); err == nil {
				kept = time.Now()
			}
		}
		if errors.Is(err, rows.ErrBusy) {
			err = nil
		}
		if err != nil && !failing && ctx.Err() == nil {
			s.deps.Log.Warn("usage is not summed up; it is tried again", "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sum sums up all hours that are over.
func (s *Service) sum(ctx context.Context) error {
	for {
		working, cancel := context.WithTimeout(ctx, workWithin)
		more, err := rows.Sum(working, s.deps.Store, s.deps.Now())
		cancel()
		if err != nil {
			return fmt.Errorf("summing up an hour: %w", err)
		}
		if !more {
			s.behind.Set(float64(s.deps.Now().Unix()))
			return nil
		}
	}
}

// keep creates and drops partitions.
func (s *Service) keep(ctx context.Context) error {
	working, cancel := context.WithTimeout(ctx, workWithin)
	defer cancel()
	done, err := rows.Keep(working, s.deps.Store, s.deps.Now(), s.deps.Retention)
	if err != nil {
		return fmt.Errorf("keeping partitions: %w", err)
	}
	if !done {
		s.deps.Log.Warn("old minutes of usage stay: some hours are not summed up yet")
	}
	return nil
}

// A KeyRange selects the calls of a key for a report.
type KeyRange struct {
	Org      string
	Identity string   // of the key
	Days     int      // the last ones
	Step     string   // minute, hour, day or none
	By       []string // groupings: some of api, status and reason
}

// keyOf returns what the rows of a key have in place of its identity.
func (s *Service) keyOf(identity string) string {
	return usage.KeyOf(identity, s.deps.Clear || credential.IsLegacy(identity))
}

// OfKey reports the usage of a key.
func (s *Service) OfKey(ctx context.Context, k KeyRange) (*Report, error) {
	now := s.deps.Now()
	key := s.keyOf(k.Identity)
	r := &request{from: now.AddDate(0, 0, -k.Days), to: now, step: k.Step, key: &key, status: -1, page: store.Page{Max: rest.MaxPageSize}}
	if err := r.checkRange(); err != nil {
		return nil, err
	}
	for _, name := range k.By {
		if err := r.group(name); err != nil {
			return nil, err
		}
	}
	return s.report(ctx, k.Org, r)
}
