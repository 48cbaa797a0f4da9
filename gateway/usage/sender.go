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
	// Receive returns no error once a batch is counted, now or before, except for what
	// the receipt names. After a *RefusedError nothing of it is counted, and its parts
	// may be sent; after any other error the batch is to be sent again. Receive does
	// neither keep nor change the batch.
	Receive(ctx context.Context, b *usage.Batch) (usage.Receipt, error)
}

// RefusedError means that a batch will not be accepted as it is, however often it is
// sent.
type RefusedError struct{ Cause error }

// Error returns the cause.
func (e *RefusedError) Error() string { return "usage was refused: " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Cause }

// SenderOptions are the settings of a Sender.
type SenderOptions struct {
	Calls    *Calls
	Refusals Refusals // nil: none are sent
	Samples  Samples  // nil: none are sent
	To       Receiver
	Gateway  string        // name of this gateway
	Every    time.Duration // between two batches: what a crash may lose
	Log      *slog.Logger
}

// Refusals keeps the newest refused requests of each key. It is safe for concurrent use.
type Refusals interface {
	// Take hands out what was kept since the last Take.
	Take(each func(usage.Refusal))

	// Lost returns how many were not kept for want of room.
	Lost() uint64
}

// Samples keeps recorded requests. It is safe for concurrent use.
type Samples interface {
	// Take hands out what was kept since the last Take, the oldest first.
	Take(each func(usage.Sample))

	// Lost returns how many requests were due and not kept, for want of room.
	Lost() uint64
}

// A Sender ships the counts of calls to the admin: every few seconds what was
// counted, each batch again until the admin has it. What is counted meanwhile is
// merged with what waits. Run and Finish must not run at the same time.
type Sender struct {
	opts    SenderOptions
	boot    string
	waiting *pending
	sent    *usage.Batch // not acknowledged yet; nil: none
	parts   []part       // of batches that were refused as a whole; they are sent from the end
	refused int          // batches in a row that were refused as a whole
	number  int64        // of the last batch
	taken   time.Time    // when counts were last taken
	away    bool

	mu    sync.Mutex
	stats SenderStats
}

// SenderStats is what a Sender has done, and what it still has to do.
type SenderStats struct {
	Delivered uint64        // calls that the admin has
	Refused   uint64        // calls that cannot be counted
	Waiting   int           // rows that it does not have yet
	Merged    uint64        // rows that lost detail for want of memory
	Forgotten uint64        // refused requests without a record, for want of memory
	Unsampled uint64        // requests that were due to be recorded and were not, for want of memory
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
	if s.opts.Refusals != nil {
		s.opts.Refusals.Take(s.waiting.addRefusal)
	}
	if s.opts.Samples != nil {
		s.opts.Samples.Take(s.waiting.addSample)
	}
	if s.waiting.merged > merged {
		s.opts.Log.Warn("counts of calls wait for the admin and lose detail", "rows", s.waiting.len())
	}
	s.update(func(*SenderStats) {})
}

// maxRefused is how many batches in a row may be refused before a pause: parts of a
// batch are sent without one.
const maxRefused = 32

// sendAll sends everything that waits, and reports whether the admin has it.
func (s *Sender) sendAll(ctx context.Context) bool {
	s.refused = 0
	for s.refused < maxRefused {
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
	return false
}

// A part is what is left of a refused batch.
type part struct {
	rows      []usage.Row
	latencies []usage.Latency
	refusals  []usage.Refusal
	samples   []usage.Sample
}

func (p part) len() int { return len(p.rows) + len(p.latencies) + len(p.refusals) + len(p.samples) }

// halves returns a part of more than one element as two that are not empty.
func (p part) halves() (first, second part) {
	left := p.len() / 2
	of := func(n int) int {
		n = min(n, left)
		left -= n
		return n
	}
	rows, latencies, refusals, samples := of(len(p.rows)), of(len(p.latencies)), of(len(p.refusals)), of(len(p.samples))
	return part{p.rows[:rows], p.latencies[:latencies], p.refusals[:refusals], p.samples[:samples]},
		part{p.rows[rows:], p.latencies[latencies:], p.refusals[refusals:], p.samples[samples:]}
}

// batch returns the next batch, or nil when nothing waits.
func (s *Sender) batch() *usage.Batch {
	var next part
	if last := len(s.parts) - 1; last >= 0 {
		next, s.parts = s.parts[last], s.parts[:last]
	} else {
		next = s.waiting.take()
	}
	if next.len() == 0 {
		return nil
	}
	s.number++
	return &usage.Batch{Gateway: s.opts.Gateway, Boot: s.boot, Sequence: s.number, Rows: next.rows, Latencies: next.latencies, Refusals: next.refusals, Samples: next.samples}
}

// send tries to deliver s.sent, and reports whether that is done with.
func (s *Sender) send(ctx context.Context) bool {
	trying, cancel := context.WithTimeout(ctx, receiveTimeout)
	defer cancel()
	receipt, err := s.opts.To.Receive(trying, s.sent)
	if refusal, whole := errors.AsType[*RefusedError](err); whole {
		s.split(refusal)
		return true
	}
	if err != nil {
		if !s.away && ctx.Err() == nil {
			s.opts.Log.Warn("the admin does not accept counts of calls; they are kept", "err", err)
			s.away = true
		}
		return false
	}
	if s.away {
		s.opts.Log.Info("the admin accepts counts of calls again")
	}
	if receipt.Refused > 0 {
		s.opts.Log.Error("some counts of calls are lost: the admin cannot count them",
			"rows", receipt.Refused, "calls", receipt.Calls, "faults", receipt.Faults)
	}
	calls := callsOf(s.sent)
	lost := min(calls, uint64(max(receipt.Calls, 0)))
	s.sent, s.away, s.refused = nil, false, 0
	s.update(func(st *SenderStats) { st.Delivered, st.Refused = st.Delivered+calls-lost, st.Refused+lost })
	return true
}

// callsOf returns the number of calls in a batch.
func callsOf(b *usage.Batch) (calls uint64) {
	for i := range b.Rows {
		calls += uint64(max(b.Rows[i].Hits, 0))
	}
	return calls
}

// split puts the halves of the refused s.sent in its place, so that one row cannot take
// others with it. A row that is refused alone is lost.
func (s *Sender) split(refusal *RefusedError) {
	s.refused++
	whole := part{s.sent.Rows, s.sent.Latencies, s.sent.Refusals, s.sent.Samples}
	calls := callsOf(s.sent)
	s.sent = nil
	if whole.len() > 1 {
		first, second := whole.halves()
		s.parts = append(s.parts, second, first)
		s.update(func(*SenderStats) {})
		return
	}
	var row usage.Row
	switch {
	case len(whole.rows) > 0:
		row = whole.rows[0]
	case len(whole.latencies) > 0:
		row.API, row.Minute = whole.latencies[0].API, whole.latencies[0].Minute
	case len(whole.samples) > 0:
		row.API, row.Status, row.Reason = whole.samples[0].API, whole.samples[0].Status, whole.samples[0].Reason
	default:
		row.API, row.Status, row.Reason = whole.refusals[0].API, whole.refusals[0].Status, whole.refusals[0].Reason
	}
	s.opts.Log.Error("counts of calls are lost: the admin refused them",
		"calls", calls, "api", row.API, "status", row.Status, "reason", row.Reason, "minute", row.Minute, "err", refusal.Cause)
	s.update(func(st *SenderStats) { st.Refused += calls })
}

// update changes the stats.
func (s *Sender) update(change func(*SenderStats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Waiting, s.stats.Merged, s.stats.Forgotten = s.waiting.len(), s.waiting.merged, s.waiting.forgotten
	if s.opts.Refusals != nil {
		s.stats.Forgotten += s.opts.Refusals.Lost()
	}
	s.stats.Unsampled = s.waiting.unsampled
	if s.opts.Samples != nil {
		s.stats.Unsampled += s.opts.Samples.Lost()
	}
	if s.sent != nil {
		s.stats.Waiting += len(s.sent.Rows)
	}
	for _, p := range s.parts {
		s.stats.Waiting += len(p.rows)
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
	refusalsLost = metrics.Describe("usage_refusals_dropped_total", "Refused requests that are counted and of which the admin gets no record, for want of room.")
	samplesLost  = metrics.Describe("usage_samples_dropped_total", "Requests that were due to be recorded and were not, for want of room.")
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
		ch <- metrics.Counter(refusalsLost, now.Forgotten)
		ch <- metrics.Counter(samplesLost, now.Unsampled)
		ch <- metrics.Gauge(rowsWaiting, float64(now.Waiting))
		ch <- metrics.Gauge(senderLag, now.Lag.Seconds())
	}, callsShipped, callsLost, callsOther, refusalsLost, samplesLost, rowsWaiting, senderLag)
}
