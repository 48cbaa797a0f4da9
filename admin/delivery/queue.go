package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/secret"
)

// Options are the options of a Queue. Store and Log are required; other members have
// defaults.
type Options struct {
	Store     *store.Store
	MasterKey secret.Key // seals payloads with secrets; with the zero value these are refused

	Timeout time.Duration   // of one attempt; 0: 15 s
	Pauses  []time.Duration // before each further attempt, a fifth more or less; nil: Pauses
	Poll    time.Duration   // interval of looking for messages without an announcement; 0: 2 s
	Keep    time.Duration   // how long finished messages are kept; 0: 14 days

	Metrics prometheus.Registerer // nil: not measured
	Log     *slog.Logger
}

// Pauses returns the default pauses before each further attempt: eight in 24 hours, short
// ones for brief failures, long ones for those that take a person to repair.
func Pauses() []time.Duration {
	return []time.Duration{
		5 * time.Second, 30 * time.Second, 5 * time.Minute, 30 * time.Minute,
		2 * time.Hour, 5 * time.Hour, 8 * time.Hour, 8 * time.Hour,
	}
}

// Queue is the queue of all messages. Several admins may each have one on the same
// database.
type Queue struct {
	opts    Options
	meters  *meters
	workers []*worker
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

// Handle makes s send the messages of a kind. It must be called before Run, once for each
// kind.
func (q *Queue) Handle(kind string, s Sender) {
	q.workers = append(q.workers, newWorker(q, kind, s))
}

// Run sends messages until ctx ends. Messages being sent then get a little time, and go
// back into the queue if that is not enough.
func (q *Queue) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, l := range q.workers {
		running.Go(func() { l.run(ctx) })
	}
	running.Go(func() { q.sweep(ctx) })
	q.opts.Store.Subscribe(ctx, store.DeliveryChannel, q.wake)
}

// wake makes every worker look for messages.
func (q *Queue) wake() {
	for _, l := range q.workers {
		l.wake()
	}
}

// How finished messages are deleted.
const (
	sweepEvery = 10 * time.Minute
	sweepBatch = 1000
)

// sweep deletes messages that were finished long ago, in small batches.
func (q *Queue) sweep(ctx context.Context) {
	ticks := time.NewTicker(sweepEvery)
	defer ticks.Stop()
	for {
		gone, err := q.opts.Store.SweepMessages(ctx, q.opts.Keep, sweepBatch)
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
