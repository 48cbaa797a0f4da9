package usage

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sluicegate/sluice/internal/metrics"
	"github.com/sluicegate/sluice/internal/sleep"
	"github.com/sluicegate/sluice/internal/usage"
)

// A Receiver takes batches.
type Receiver interface {
	// Receive returns nil once a batch is counted, now or before. A *RefusedError is
	// final; after any other error the batch is to be sent again. Receive does not
	// keep the batch.
	Receive(ctx context.Context, b *usage.Batch) error
}

// RefusedError means that a batch will not be accepted, however often it is sent.
type RefusedError struct{ Cause error }

// Error returns the cause.
func (e *RefusedError) Error() string { return "usage was refused: " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Cause }

// SenderOptions are the settings of a Sender.
type SenderOptions struct {
	Calls   *Calls
	To      Receiver
	Gateway string        // name of this gateway
	Every   time.Duration // between two batches: what a crash may lose
	Log     *slog.Logger
}

// A Sender ships the counts of calls to the admin: every few seconds what was
// counted, each batch again until the admin has it. What is counted meanwhile is
// merged with what waits. Run and Finish must not run at the same time.
type Sender struct {
	opts    SenderOptions
	boot    string
	waiting *pending
	sent    *usage.Batch // not acknowledged yet; nil: none
	number  int64        // of the last batch
	taken   time.Time    // when counts were last taken
	away    bool

	mu    sync.Mutex
	stats SenderStats
}

// SenderStats is what a Sender has done, and what it still has to do.
type SenderStats struct {
	Delivered uint64        // calls that the admin has
	Refused   uint64        // calls that it refused
	Waiting   int           // rows that it does not have yet
	Merged    uint64        // rows that lost detail for want of memory
	Lag       time.Duration // since it last had everything

	complete time.Time // when it last had everything
}

// NewSender returns a sender that has sent nothing.
func NewSender(o SenderOptions) *Sender {
	var boot [16]byte
	_, _ = rand.Read(boot[:]) // documented never to fail
	s := &Sender{opts: o, boot: hex.EncodeToString(boot[:]), waiting: newPending(maxPending)}
	s.stats.complete = time.Now()
	return s
}

const (
	receiveTimeout = 10 * time.Second       // of one attempt
	firstPause     = 500 * time.Millisecond // before the next attempt
	maxPause       = 10 * time.Second       // the same while the admin stays away
)

// Run takes and sends counts until ctx ends. Finish sends the rest.
func (s *Sender) Run(ctx context.Context) {
	due, rest := time.Now().Add(s.period()), time.Duration(0)
	for {
		wait := time.Until(due)
		if rest > 0 { // a batch waits for another attempt
			wait = min(wait, rest)
		}
		if sleep.For(ctx, wait) != nil {
			return
		}
		if !time.Now().Before(due) {
			s.collect()
			due = time.Now().Add(s.period())
		}
		if s.sendAll(ctx) {
			rest = 0
			continue
		}
		rest = min(2*rest+firstPause, maxPause)
		rest -= mathrand.N(rest / 4)
	}
}

// period returns the time until counts are taken again: a little less than
// configured, because sending takes time, and different for each gateway.
func (s *Sender) period() time.Duration {
	tenth := s.opts.Every / 10
	return s.opts.Every - tenth - mathrand.N(tenth+1)
}

// Finish sends what is left until ctx ends. What the admin has not accepted by then
// is lost and logged.
func (s *Sender) Finish(ctx context.Context) {
	s.collect()
	for wait := 50 * time.Millisecond; !s.sendAll(ctx); wait *= 2 {
		if sleep.For(ctx, wait) != nil {
			s.opts.Log.Error("the last counts of calls are lost: the admin did not accept them", "rows", s.Stats().Waiting)
			return
		}
	}
}

// collect takes what was counted.
func (s *Sender) collect() {
	s.taken = time.Now()
	merged := s.waiting.merged
	s.opts.Calls.Take(s.waiting.addRow, s.waiting.addLatency)
	if s.waiting.merged > merged {
		s.opts.Log.Warn("counts of calls wait for the admin and lose detail", "rows", s.waiting.len())
	}
	s.update(func(*SenderStats) {})
}

// sendAll sends everything that waits, and reports whether the admin has it.
func (s *Sender) sendAll(ctx context.Context) bool {
	for {
		if s.sent == nil {
			s.sent = s.batch()
		}
		if s.sent == nil {
			s.update(func(st *SenderStats) { st.complete = s.taken })
			return true
		}
		if !s.send(ctx) {
			return false
		}
	}
}

// batch returns the next batch, or nil when nothing waits.
func (s *Sender) batch() *usage.Batch {
	rows, latencies := s.waiting.take()
	if len(rows)+len(latencies) == 0 {
		return nil
	}
	s.number++
	return &usage.Batch{Gateway: s.opts.Gateway, Boot: s.boot, Sequence: s.number, Rows: rows, Latencies: latencies}
}

// send tries to deliver s.sent, and reports whether that is done with.
func (s *Sender) send(ctx context.Context) bool {
	trying, cancel := context.WithTimeout(ctx, receiveTimeout)
	defer cancel()
	err := s.opts.To.Receive(trying, s.sent)
	refused, final := errors.AsType[*RefusedError](err)
	if err != nil && !final {
		if !s.away && ctx.Err() == nil {
			s.opts.Log.Warn("the admin does not accept counts of calls; they are kept", "err", err)
			s.away = true
		}
		return false
	}
	calls := uint64(0)
	for i := range s.sent.Rows {
		calls += uint64(s.sent.Rows[i].Hits)
	}
	s.sent = nil
	if final {
		s.opts.Log.Error("counts of calls are lost: the admin refused them", "calls", calls, "err", refused.Cause)
		s.update(func(st *SenderStats) { st.Refused += calls })
		return true
	}
	if s.away {
		s.opts.Log.Info("the admin accepts counts of calls again")
	}
	s.away = false
	s.update(func(st *SenderStats) { st.Delivered += calls })
	return true
}

// update changes the stats.
func (s *Sender) update(change func(*SenderStats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Waiting, s.stats.Merged = s.waiting.len(), s.waiting.merged
	if s.sent != nil {
		s.stats.Waiting += len(s.sent.Rows)
	}
	change(&s.stats)
}

// Stats returns current numbers. It is safe for concurrent use.
func (s *Sender) Stats() SenderStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.stats
	now.Lag = time.Since(now.complete)
	return now
}

var (
	callsShipped = metrics.Describe("usage_calls_total", "Calls that the admin has counted.")
	callsLost    = metrics.Describe("usage_dropped_total", "Calls that the admin will never count: there was no room for them, or it refused them.")
	callsOther   = metrics.Describe("usage_other_keys_total", "Calls that are counted without their key, for want of room.")
	rowsWaiting  = metrics.Describe("usage_waiting_rows", "Rows of counted calls that the admin does not have yet.")
	senderLag    = metrics.Describe("usage_flush_lag_seconds", "How long ago the admin had all that was counted.")
)

// Metrics returns the metrics of what is sent.
func (s *Sender) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		now := s.Stats()
		ch <- metrics.Counter(callsShipped, now.Delivered)
		ch <- metrics.Counter(callsLost, now.Refused+s.opts.Calls.Lost())
		ch <- metrics.Counter(callsOther, s.opts.Calls.Others())
		ch <- metrics.Gauge(rowsWaiting, float64(now.Waiting))
		ch <- metrics.Gauge(senderLag, now.Lag.Seconds())
	}, callsShipped, callsLost, callsOther, rowsWaiting, senderLag)
}
