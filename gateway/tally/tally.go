// Package tally takes the counts of calls to the admin: every few seconds what
// there is, each batch again until the admin has it for good, and what comes in
// meanwhile together with what waits.
package tally

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/observe/rollup"
	"github.com/sluicegate/sluice/internal/definition/usage"
)

// A Receiver takes batches.
type Receiver interface {
	// Receive returns nil once a batch counts, be it that it did before. The error
	// is a *RefusedError when it never will; after any other it is to be tried
	// again. It does not keep the batch.
	Receive(ctx context.Context, b *usage.Batch) error
}

// RefusedError says that a batch will not be taken, however often it is tried.
type RefusedError struct{ Cause error }

// Error returns the cause.
func (e *RefusedError) Error() string { return "usage was refused: " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Cause }

// Options says what is handed over, and to whom.
type Options struct {
	Counts  *rollup.Counts
	To      Receiver
	Gateway string        // name of this gateway
	Every   time.Duration // what a crash may lose
	Log     *slog.Logger
}

// Sender hands counts over. Its methods but Stats are for one goroutine at a time.
type Sender struct {
	opts    Options
	boot    string
	waiting *pending
	flight  *usage.Batch // that the admin may have or not; nil: none
	number  int64        // of the last batch
	taken   time.Time    // when counts were last taken
	away    bool

	mu    sync.Mutex
	stats Stats
}

// Stats is what a Sender has done, and what it still has to do.
type Stats struct {
	Handed  uint64        // calls that the admin has
	Refused uint64        // calls that it did not want
	Waiting int           // rows that it does not have yet
	Merged  uint64        // rows that were made coarser for want of room
	Lag     time.Duration // how long ago it had everything

	complete time.Time // when it last had everything
}

// New returns a sender that has handed nothing over.
func New(o Options) *Sender {
	var boot [16]byte
	_, _ = rand.Read(boot[:]) // documented never to fail
	s := &Sender{opts: o, boot: hex.EncodeToString(boot[:]), waiting: newPending(maxPending)}
	s.stats.complete = time.Now()
	return s
}

const (
	receiveWithin = 10 * time.Second       // for one try
	firstRest     = 500 * time.Millisecond // before the next
	maxRest       = 10 * time.Second       // the same while the admin stays away
)

// Run takes counts and hands them over until ctx ends. The rest is for Finish.
func (s *Sender) Run(ctx context.Context) {
	due, rest := time.Now().Add(s.period()), time.Duration(0)
	for {
		wait := time.Until(due)
		if rest > 0 { // something waits for another try
			wait = min(wait, rest)
		}
		if !pause(ctx, wait) {
			return
		}
		if !time.Now().Before(due) {
			s.collect()
			due = time.Now().Add(s.period())
		}
		if s.handAll(ctx) {
			rest = 0
			continue
		}
		rest = min(2*rest+firstRest, maxRest)
		rest -= mathrand.N(rest / 4)
	}
}

// period is how long it is from one look at the counts to the next: a little less
// than asked for, since handing over takes time too, and not the same for all
// gateways.
func (s *Sender) period() time.Duration {
	tenth := s.opts.Every / 10
	return s.opts.Every - tenth - mathrand.N(tenth+1)
}

// Finish hands over what is left, as far as ctx allows. What the admin does not
// take is lost, and told in the log.
func (s *Sender) Finish(ctx context.Context) {
	s.collect()
	for wait := 50 * time.Millisecond; !s.handAll(ctx); wait *= 2 {
		if !pause(ctx, wait) {
			s.opts.Log.Error("the last counts of calls are lost: the admin did not take them", "rows", s.Stats().Waiting)
			return
		}
	}
}

// collect takes what was counted.
func (s *Sender) collect() {
	s.taken = time.Now()
	merged := s.waiting.merged
	s.opts.Counts.Take(s.waiting.addRow, s.waiting.addLatency)
	if s.waiting.merged > merged {
		s.opts.Log.Warn("counts of calls wait for the admin; details are given up", "rows", s.waiting.len())
	}
	s.note(func(*Stats) {})
}

// handAll hands over everything that waits, and tells whether it did.
func (s *Sender) handAll(ctx context.Context) bool {
	for {
		if s.flight == nil {
			s.flight = s.batch()
		}
		if s.flight == nil {
			s.note(func(st *Stats) { st.complete = s.taken })
			return true
		}
		if !s.hand(ctx) {
			return false
		}
	}
}

// batch returns the next one, or nil when nothing waits.
func (s *Sender) batch() *usage.Batch {
	rows, latencies := s.waiting.take()
	if len(rows)+len(latencies) == 0 {
		return nil
	}
	s.number++
	return &usage.Batch{Gateway: s.opts.Gateway, Boot: s.boot, Sequence: s.number, Rows: rows, Latencies: latencies}
}

// hand tries to hand over what is in flight, and tells whether it no longer is.
func (s *Sender) hand(ctx context.Context) bool {
	trying, cancel := context.WithTimeout(ctx, receiveWithin)
	defer cancel()
	err := s.opts.To.Receive(trying, s.flight)
	refused, never := errors.AsType[*RefusedError](err)
	if err != nil && !never {
		s.fail(ctx, err)
		return false
	}
	calls := uint64(0)
	for i := range s.flight.Rows {
		calls += uint64(s.flight.Rows[i].Hits)
	}
	s.flight = nil
	if never {
		s.opts.Log.Error("counts of calls are lost: the admin does not want them", "calls", calls, "err", refused.Cause)
		s.note(func(st *Stats) { st.Refused += calls })
		return true
	}
	if s.away {
		s.opts.Log.Info("the admin takes counts of calls again")
	}
	s.away = false
	s.note(func(st *Stats) { st.Handed += calls })
	return true
}

func (s *Sender) fail(ctx context.Context, err error) {
	if !s.away && ctx.Err() == nil {
		s.opts.Log.Warn("the admin does not take counts of calls; they are kept", "err", err)
		s.away = true
	}
}

// note changes what Stats tells.
func (s *Sender) note(change func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Waiting, s.stats.Merged = s.waiting.len(), s.waiting.merged
	if s.flight != nil {
		s.stats.Waiting += len(s.flight.Rows)
	}
	change(&s.stats)
}

// Stats returns current numbers. It is safe for concurrent use.
func (s *Sender) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.stats
	now.Lag = time.Since(now.complete)
	return now
}

// pause waits, and tells whether ctx is still good.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
