package engine

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/stream/process"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

// A running stream is one that a gateway has: its connectors and processors, and the
// messages that are not settled. It implements stream.Flow.
type running struct {
	engine *Engine
	key    string // of its configuration
	org    string
	api    string
	conf   *streams.Stream
	log    *slog.Logger
	refs   int // APIs in service that have it; of the engine

	connectors []*connector
	chain      *process.Chain
	out, dead  sink // nil before start; dead is nil without a dead letter
	level      *stream.Demand
	room       *room

	passed, refused, buried, returned atomic.Uint64 // messages by how they ended

	mu        sync.Mutex
	phase     stream.Phase
	since     time.Time
	began     bool // the inputs were started
	stopping  bool
	timers    map[*timer]struct{}
	calledOff bool // nothing is done later any more
}

// newRunning compiles a stream. Nothing is connected, and no goroutine started.
func (e *Engine) newRunning(key, org, api string, conf *streams.Stream) (*running, error) {
	r := &running{
		engine: e, key: key, org: org, api: api, conf: conf, log: e.log.With("api", api, "stream", conf.Name),
		room: newRoom(conf.MaxInFlight, conf.MaxInFlightBytes), phase: stream.Starting, since: time.Now(),
	}
	if err := r.survey(&conf.Input, sideInput); err != nil {
		return nil, err
	}
	if err := r.survey(&conf.Output, sideOutput); err != nil {
		return nil, err
	}
	if conf.DeadLetter != nil {
		if err := r.survey(&conf.DeadLetter.Output, sideDead); err != nil {
			return nil, err
		}
	}
	var err error
	r.chain, err = process.Compile(conf.Processors, r.siteOf("processors", ""))
	return r, err
}

// Pauses between two tries to start a stream.
const (
	firstStart   = time.Second
	longestStart = 30 * time.Second
)

// start has messages flow. It does not wait for connections.
func (r *running) start() { r.startAgain(firstStart) }

func (r *running) startAgain(pause time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		return
	}
	if err := r.connect(); err != nil {
		r.log.Error("a stream cannot be started; it is tried again", "err", err)
		r.laterLocked(pause, func() { r.startAgain(min(2*pause, longestStart)) }, func() {})
		return
	}
	r.out = r.reliable(&r.conf.Output, true)
	r.level = stream.All(r.out.demand(), r.room.demand, r.engine.room.demand)
	to := process.Destination{Take: func(m *stream.Message, settle stream.Settle) { r.out.write(m, settle) }}
	if r.conf.DeadLetter != nil {
		r.dead = &retrying{sink: r.sinkOf(&r.conf.DeadLetter.Output), run: r, always: true}
		to.Bury = r.buryFor
	}
	r.chain.Start(to)
	for _, c := range r.connectors {
		if s, ok := c.out.(stream.Starter); ok {
			s.Start()
		}
	}
	r.began, r.phase, r.since = true, stream.Running, time.Now()
	for _, c := range r.connectors {
		if c.in != nil {
			c.in.Start(r)
		}
	}
}

// Demand implements stream.Flow.
func (r *running) Demand() *stream.Demand { return r.level }

// A delivery is a message that the stream has taken.
type delivery struct {
	run    *running
	m      *stream.Message
	settle stream.Settle
	size   int
	since  time.Time
	tries  int         // that processors refused
	over   atomic.Bool // it was settled

	before, after *delivery // in the room; guarded by it
}

// overhead is charged for a message beside its content, in bytes.
const overhead = 256

// Take implements stream.Flow.
func (r *running) Take(m *stream.Message, settle stream.Settle) bool {
	if !r.level.On() {
		return false
	}
	size := m.Size() + overhead
	if !r.engine.room.enter(size) {
		return false
	}
	if !r.room.enter(size) {
		r.engine.room.leave(size)
		return false
	}
	d := &delivery{run: r, m: m, settle: settle, size: size, since: time.Now()}
	r.room.note(d)
	d.pass()
	return true
}

// pass runs the processors. A fault in one must not end the process.
func (d *delivery) pass() {
	defer func() {
		if fault := recover(); fault != nil {
			d.run.log.Error("a message made the stream fail", "message", d.m.ID, "panic", fault, "stack", string(debug.Stack()))
			d.end(stream.Failf(stream.Refused, "the message made the stream fail"))
		}
	}()
	d.run.chain.Take(d.m, d.done)
}

// done is called when everything that the message became is settled.
func (d *delivery) done(err error) {
	r := d.run
	if err == nil || isFinal(err) || d.m.Reply != nil {
		d.end(err)
		return
	}
	d.tries++ // a processor refused it
	if stream.ClassOf(err) != stream.Permanent && (r.conf.Retry.MaxAttempts == 0 || d.tries < r.conf.Retry.MaxAttempts) {
		r.later(pause(&r.conf.Retry, d.tries, err), func() { d.m = repeated(d.m); d.pass() }, func() { d.end(stream.ErrClosed) })
		return
	}
	if r.dead == nil {
		d.end(err)
		return
	}
	r.bury(d.m, err, metaProcessor, d.end)
}

// repeated returns a message as its next attempt.
func repeated(m *stream.Message) *stream.Message {
	return &stream.Message{ID: m.ID, Body: m.Body, Meta: m.Meta, Key: m.Key, At: m.At, Attempt: m.Attempt + 1, Reply: m.Reply}
}

// end settles the message, once.
func (d *delivery) end(err error) {
	if !d.over.CompareAndSwap(false, true) {
		return
	}
	r := d.run
	switch {
	case err == nil:
		r.passed.Add(1)
	case stream.ClassOf(err) == stream.Refused:
		r.refused.Add(1)
	default:
		r.returned.Add(1)
	}
	if f, ok := errors.AsType[*final](err); ok {
		err = f.error
	}
	d.settle(err)
	r.room.forget(d)
	r.room.leave(d.size)
	r.engine.room.leave(d.size)
}

// A timer is something that a stream does later, or never if it is stopped.
type timer struct {
	*time.Timer
	never func()
}

// later calls do after a time, or never if the stream is stopped before.
func (r *running) later(after time.Duration, do, never func()) {
	r.mu.Lock()
	off := r.calledOff
	if !off {
		r.laterLocked(after, do, never)
	}
	r.mu.Unlock()
	if off {
		never()
	}
}

func (r *running) laterLocked(after time.Duration, do, never func()) {
	t := &timer{never: never}
	if r.timers == nil {
		r.timers = make(map[*timer]struct{})
	}
	r.timers[t] = struct{}{}
	t.Timer = time.AfterFunc(after, func() {
		r.mu.Lock()
		_, due := r.timers[t]
		delete(r.timers, t)
		r.mu.Unlock()
		if due {
			do()
		}
	})
}

// drain stops the stream: inputs take nothing more, what is in it is passed on until ctx
// ends, and what is left then goes back to the sources.
func (r *running) drain(ctx context.Context) {
	r.mu.Lock()
	began := r.began
	r.stopping = true
	r.phase, r.since = stream.Draining, time.Now()
	r.mu.Unlock()
	if began {
		r.each(func(c *connector) {
			if c.in != nil {
				c.in.Stop(ctx)
			}
		})
		r.chain.Flush()
		select {
		case <-r.room.empty():
		case <-ctx.Done():
		}
	}
	r.chain.Close()
	r.callOff()
	r.each(func(c *connector) {
		if c.out != nil {
			c.out.Close(ctx)
		}
	})
	r.each(func(c *connector) {
		if c.in != nil && began {
			c.in.Close()
		}
	})
	r.mu.Lock()
	r.phase, r.since = stream.Stopped, time.Now()
	r.mu.Unlock()
}

// callOff calls off everything that is to be done later.
func (r *running) callOff() {
	r.mu.Lock()
	left := r.timers
	r.timers, r.calledOff = nil, true
	r.mu.Unlock()
	for t := range left {
		t.Stop()
		t.never()
	}
}

// each calls do for the connectors side by side, and waits for all.
func (r *running) each(do func(c *connector)) {
	var all sync.WaitGroup
	for _, c := range r.connectors {
		all.Go(func() { do(c) })
	}
	all.Wait()
}
