package httpclient

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/stream/httpcall"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

const (
	maxQueued      = 4096        // messages that wait although there is no demand
	aheadOfTurn    = time.Second // of messages, by the interval, that wait while there is demand
	idempotencyKey = "Idempotency-Key"
	maxID          = 128 // bytes of the key
)

// output sends messages to a server. It has a goroutine for each request that is on its way.
type output struct {
	conf   *streams.HTTPSend
	site   *stream.Site
	plan   *httpcall.Plan
	limit  int // messages that are on their way
	ahead  int // messages that may wait for their turn while there is demand
	demand *stream.Demand
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	done   sync.WaitGroup // of requests

	telling sync.Mutex // orders the changes of demand; taken before mu

	mu      sync.Mutex
	closed  bool
	shown   bool       // the level of demand
	queue   []*sending // whose next request is due
	waiting map[*sending]*time.Timer
	open    int // messages that are not settled
	begun   int // of these, those on their way
	next    time.Time
	turn    *time.Timer // of the next request; nil: none waits for it
	phase   stream.Phase
}

// A sending is a message that is not settled.
type sending struct {
	m       *stream.Message
	settle  stream.Settle
	call    *httpcall.Call // nil before the first request
	attempt int            // the first being 0
	arrived bool           // a request may have
}

// NewOutput returns http_client as an output. The error names the field at fault.
func NewOutput(c *streams.HTTPSend, site *stream.Site) (stream.Output, error) {
	plan, err := httpcall.New(&c.HTTPRequest, site)
	if err != nil {
		return nil, err
	}
	o := &output{
		conf: c, site: site, plan: plan, limit: max(1, site.MaxInFlight), ahead: maxQueued, demand: stream.NewDemand(true),
		shown: true, waiting: make(map[*sending]*time.Timer), phase: stream.Running,
	}
	if c.Interval > 0 {
		o.ahead = max(1, int(aheadOfTurn/c.Interval))
	}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	site.State.Enter(stream.Running)
	return o, nil
}

// Demand implements stream.Output.
func (o *output) Demand() *stream.Demand { return o.demand }

// Write implements stream.Output.
func (o *output) Write(m *stream.Message, settle stream.Settle) {
	o.mu.Lock()
	var err error
	switch {
	case o.closed:
		err = stream.ErrClosed
	case len(o.queue) >= maxQueued:
		err = stream.Failf(stream.Transient, "%d messages wait to be sent already", maxQueued)
	default:
		o.open++
		o.queue = append(o.queue, &sending{m: m, settle: settle})
	}
	o.release()
	if err != nil {
		settle(err)
	}
}

// release sends what is due, unlocks mu, and sets the demand to its level.
func (o *output) release() {
	o.pump()
	changed := o.level() != o.shown
	o.mu.Unlock()
	if !changed {
		return
	}
	o.telling.Lock()
	defer o.telling.Unlock()
	o.mu.Lock()
	o.shown = o.level()
	on := o.shown
	o.mu.Unlock()
	o.demand.Set(on)
}

// level returns the level that the demand is to have. It needs mu.
func (o *output) level() bool {
	open, ahead := o.limit, o.ahead
	if !o.shown { // some room, rather than one at a time
		open, ahead = open-open/4, ahead-ahead/4
	}
	return !o.closed && o.open < open && len(o.queue) < ahead
}

// pump sends what is due. It needs mu.
func (o *output) pump() {
	for len(o.queue) > 0 && !o.closed {
		s := o.queue[0]
		if s.attempt == 0 && o.begun >= o.limit {
			return
		}
		if o.conf.Interval > 0 {
			now := time.Now()
			if wait := o.next.Sub(now); wait > 0 {
				if o.turn == nil {
					o.turn = time.AfterFunc(wait, o.takeTurn)
				}
				return
			}
			o.next = now.Add(o.conf.Interval)
		}
		o.queue[0] = nil
		o.queue = o.queue[1:]
		if s.attempt == 0 {
			o.begun++
		}
		o.done.Go(func() { o.send(s) })
	}
}

func (o *output) takeTurn() {
	o.mu.Lock()
	o.turn = nil
	o.release()
}

// send makes one request.
func (o *output) send(s *sending) {
	failure := o.request(s)
	if failure == nil {
		o.site.State.Messages.Add(1)
		o.site.State.Bytes.Add(uint64(len(s.m.Body)))
		o.enter(stream.Running, nil)
		o.end(s, nil)
		return
	}
	if o.ctx.Err() != nil {
		o.end(s, stream.ErrClosed)
		return
	}
	s.arrived = s.arrived || failure.Class == stream.Unknown
	if s.arrived && failure.Class == stream.Transient {
		failure.Class = stream.Unknown
	}
	switch {
	case failure.Class == stream.Permanent: // the server answers
	case httpcall.Mends(failure):
		o.enter(stream.Reconnecting, failure)
	default:
		o.enter(stream.Failing, failure)
	}
	if failure.Class == stream.Permanent || s.attempt >= o.conf.Retries || !o.retry(s, failure) {
		o.end(s, failure)
	}
}

func (o *output) request(s *sending) *stream.Failure {
	if s.call == nil {
		call, err := o.plan.Prepare(s.m.Doc, func() ([]byte, error) { return s.m.Body, nil })
		if err != nil {
			return &stream.Failure{Class: stream.Permanent, Err: err}
		}
		if call.Header[idempotencyKey] == nil {
			call.Header.Set(idempotencyKey, keyOf(s.m.ID))
		}
		s.call = call
	}
	o.site.State.Attempts.Add(1)
	return s.call.Tell(o.ctx)
}

// keyOf returns the id of a message as the value of a header.
func keyOf(id string) string {
	if id != "" && len(id) <= maxID && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256-" + hex.EncodeToString(sum[:])
}

// retry makes another request later. It returns false if there is none any more.
func (o *output) retry(s *sending, f *stream.Failure) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.site.State.Fail(f)
	o.site.State.Again.Add(1)
	pause := o.plan.Pause(s.attempt, f.After)
	s.attempt++
	o.waiting[s] = time.AfterFunc(pause, func() { o.resume(s) })
	return true
}

func (o *output) resume(s *sending) {
	o.mu.Lock()
	if o.waiting[s] != nil { // else Close has settled it
		delete(o.waiting, s)
		o.queue = slices.Insert(o.queue, 0, s)
	}
	o.release()
}

// end settles a message.
func (o *output) end(s *sending, err error) {
	o.mu.Lock()
	o.open--
	o.begun--
	o.release()
	s.settle(err)
}

// enter sets the phase. It is logged when requests begin to fail.
func (o *output) enter(p stream.Phase, why error) {
	o.mu.Lock()
	changed := o.phase != p && !o.closed
	if changed {
		o.phase = p
		o.site.State.Enter(p)
	}
	o.mu.Unlock()
	if changed && why != nil {
		o.site.Log.Warn("a stream cannot send messages", "stream", o.site.Stream, "output", o.site.Label, "error", why)
	}
}

// Close implements stream.Output. What has not been sent fails at once; requests that are on
// their way are waited for until ctx ends.
func (o *output) Close(ctx context.Context) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return
	}
	o.closed = true
	left := o.queue
	o.queue = nil
	for s, timer := range o.waiting {
		timer.Stop()
		left = append(left, s)
	}
	clear(o.waiting)
	if o.turn != nil {
		o.turn.Stop()
	}
	o.release()
	o.site.State.Enter(stream.Draining)
	for _, s := range left {
		s.settle(stream.ErrClosed)
	}
	stop := context.AfterFunc(ctx, o.cancel)
	o.done.Wait() // requests end with o.ctx
	stop()
	o.cancel()
	o.plan.Close()
	o.site.State.Enter(stream.Stopped)
}
