package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/deliveries"
	"github.com/sluicegate/sluice/internal/secret"
)

// Options says how a Queue works. Store and Log are required; other members have
// defaults.
type Options struct {
	Store     *store.Store
	MasterKey secret.Key // seals what holds a secret; the zero value refuses it

	Timeout time.Duration   // of one attempt; 0: 15 s
	Pauses  []time.Duration // before each further attempt, a tenth more or less; nil: Pauses
	Poll    time.Duration   // how often to look although nothing was announced; 0: 2 s
	Keep    time.Duration   // how long finished messages are kept; 0: 14 days

	Metrics prometheus.Registerer // nil: not measured
	Log     *slog.Logger
}

// Pauses returns the pauses before each further attempt of a message: eight in 24
// hours, quick ones for what was a moment's trouble, long ones for what somebody
// has to mend.
func Pauses() []time.Duration {
	return []time.Duration{
		5 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute,
		2 * time.Hour, 4 * time.Hour, 7 * time.Hour, 10*time.Hour + 20*time.Minute,
	}
}

// Queue is the queue of all messages. Several admins may each have one on the same
// database.
type Queue struct {
	opts   Options
	meters *meters
	lanes  []*lane
}

// New returns a queue. Nothing is sent before Run.
func New(o Options) (*Queue, error) {
	if o.Timeout == 0 {
		o.Timeout = 15 * time.Second
	}
	if o.Pauses == nil {
		o.Pauses = Pauses()
	}
	if o.Poll == 0 {
		o.Poll = 2 * time.Second
	}
	if o.Keep == 0 {
		o.Keep = 14 * 24 * time.Hour
	}
	m, err := newMeters(o.Metrics, o.Store)
	if err != nil {
		return nil, fmt.Errorf("registering metrics of deliveries: %w", err)
	}
	return &Queue{opts: o, meters: m}, nil
}

// Handle has s send all messages of a kind, and must be called before Run, once
// for a kind.
func (q *Queue) Handle(kind string, s Sender) {
	q.lanes = append(q.lanes, newLane(q, kind, s))
}

// Run sends messages until ctx ends. Those on their way then may end; those that
// do not soon go back into the queue.
func (q *Queue) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, l := range q.lanes {
		running.Go(func() { l.run(ctx) })
	}
	running.Go(func() { q.sweep(ctx) })
	q.opts.Store.Heed(ctx, deliveries.Channel, q.poke)
}

// poke has every lane look for messages.
func (q *Queue) poke() {
	for _, l := range q.lanes {
		l.poke()
	}
}

// How finished messages are forgotten.
const (
	sweepEvery = 10 * time.Minute
	sweepBatch = 1000
)

// sweep forgets what was finished long ago, in small parts.
func (q *Queue) sweep(ctx context.Context) {
	ticks := time.NewTicker(sweepEvery)
	defer ticks.Stop()
	for {
		gone, err := deliveries.Sweep(ctx, q.opts.Store, q.opts.Keep, sweepBatch)
		if err != nil && ctx.Err() == nil {
			q.opts.Log.Warn("forgetting old deliveries was interrupted", "err", err)
		}
		if err == nil && gone == sweepBatch {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}
