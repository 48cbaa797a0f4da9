package engine

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

// A sink takes messages: an output, or several as one.
type sink interface {
	demand() *stream.Demand
	write(m *stream.Message, settle stream.Settle)
}

// leaf is one output.
type leaf struct {
	*connector
	out stream.Output
}

func (l *leaf) demand() *stream.Demand { return l.out.Demand() }

func (l *leaf) write(m *stream.Message, settle stream.Settle) {
	l.out.Write(m, func(err error) {
		if err == nil {
			settle(nil)
			return
		}
		if !errors.Is(err, stream.ErrClosed) {
			err = failed(l.site, err)
		}
		settle(err)
	})
}

// failed records an error that an output settled a message with, and returns it with the
// label of the output.
func failed(s *stream.Site, err error) error {
	failure, ok := errors.AsType[*stream.Failure](err)
	if !ok {
		failure = &stream.Failure{Class: stream.Transient, Err: err}
	}
	if failure.By == "" {
		failure = &stream.Failure{Class: failure.Class, By: s.Label, After: failure.After, Err: failure.Err}
	}
	s.State.Fail(failure)
	return failure
}

// retrying tries a message again that its sink did not take.
type retrying struct {
	sink
	run    *running
	always bool // without end, whatever the error
}

func (r *retrying) write(m *stream.Message, settle stream.Settle) {
	(&try{of: r, m: m, settle: settle}).once()
}

// A try is a message on its way into a retrying sink.
type try struct {
	of     *retrying
	m      *stream.Message
	settle stream.Settle
	times  int
}

func (t *try) once() { t.of.sink.write(t.m, t.done) }

func (t *try) done(err error) {
	t.times++
	retry := &t.of.run.conf.Retry
	last := retry.MaxAttempts > 0 && t.times >= retry.MaxAttempts || stream.ClassOf(err) == stream.Permanent
	if err == nil || isFinal(err) || last && !t.of.always {
		t.settle(err)
		return
	}
	t.of.run.later(pause(retry, t.times, err), t.once, func() { t.settle(stream.ErrClosed) })
}

// isFinal reports whether an error is the end of a message in this stream.
func isFinal(err error) bool {
	_, ok := errors.AsType[*final](err)
	return ok || errors.Is(err, stream.ErrClosed)
}

// A final is an error of an output after everything was tried.
type final struct{ error }

// Unwrap returns the error itself.
func (f *final) Unwrap() error { return f.error }

// mostDoublings keeps a doubled pause from overflowing.
const mostDoublings = 30

// pause returns how long to wait after a number of failures. The jitter is full, so that
// messages that failed together do not come back together.
func pause(r *streams.Retry, failures int, err error) time.Duration {
	longest := r.Max
	if n := failures - 1; n < mostDoublings {
		longest = min(longest, r.Initial<<n)
	}
	wait := time.Duration(0)
	if longest > 0 {
		wait = rand.N(longest) + 1
	}
	if failure, ok := errors.AsType[*stream.Failure](err); ok {
		wait = max(wait, failure.After)
	}
	return wait
}

// burying sends a message to the dead letter of the stream that its sink cannot take.
type burying struct {
	sink
	run *running

	onlyPermanent bool // other errors are for the source
	asks          bool // a sender that waits for the answer gets the error
}

func (b *burying) write(m *stream.Message, settle stream.Settle) {
	b.sink.write(m, func(err error) {
		switch {
		case err == nil:
			settle(nil)
		case isFinal(err):
			settle(err)
		case b.run.dead == nil, b.asks && m.Reply != nil, b.onlyPermanent && stream.ClassOf(err) != stream.Permanent:
			settle(&final{err})
		default:
			b.run.bury(m, err, metaOutput, settle)
		}
	})
}

// all gives each message to all of its sinks.
type all struct {
	sinks    []sink
	level    *stream.Demand
	failFast bool // the first error settles the message
}

func (a *all) demand() *stream.Demand { return a.level }

func (a *all) write(m *stream.Message, settle stream.Settle) {
	var mu sync.Mutex
	left, settled, first := len(a.sinks), false, error(nil)
	for _, one := range a.sinks {
		one.write(m, func(err error) {
			mu.Lock()
			left--
			if first == nil {
				first = err
			}
			now := !settled && (left == 0 || a.failFast && err != nil)
			settled = settled || now
			result := first
			mu.Unlock()
			if now {
				settle(result)
			}
		})
	}
}

// inTurn gives each message to its sinks one after the other, as long as they take it.
type inTurn struct {
	sinks []sink
	level *stream.Demand
}

func (s *inTurn) demand() *stream.Demand { return s.level }

func (s *inTurn) write(m *stream.Message, settle stream.Settle) { s.from(0, m, settle) }

func (s *inTurn) from(at int, m *stream.Message, settle stream.Settle) {
	s.sinks[at].write(m, func(err error) {
		if err != nil || at == len(s.sinks)-1 {
			settle(err)
			return
		}
		s.from(at+1, m, settle)
	})
}

// one gives each message to one of its sinks, and to another if that fails.
type one struct {
	sinks []sink
	level *stream.Demand
	turns bool // which sink is first changes; otherwise it is the first that has demand
	turn  atomic.Uint64
}

func (o *one) demand() *stream.Demand { return o.level }

func (o *one) write(m *stream.Message, settle stream.Settle) {
	start := 0
	if o.turns {
		start = int((o.turn.Add(1) - 1) % uint64(len(o.sinks)))
	}
	order := make([]sink, 0, len(o.sinks))
	var without []sink // demand
	for i := range o.sinks {
		s := o.sinks[(start+i)%len(o.sinks)]
		if s.demand().On() {
			order = append(order, s)
		} else {
			without = append(without, s)
		}
	}
	firstOf(append(order, without...), m, settle)
}

// firstOf writes a message to the first of several sinks that takes it.
func firstOf(order []sink, m *stream.Message, settle stream.Settle) {
	order[0].write(m, func(err error) {
		if err == nil || len(order) == 1 || errors.Is(err, stream.ErrClosed) {
			settle(err)
			return
		}
		firstOf(order[1:], m, settle)
	})
}

// asFailure returns an error as a failure, nil if it is none.
func asFailure(err error) *stream.Failure {
	failure, _ := errors.AsType[*stream.Failure](err)
	return failure
}
