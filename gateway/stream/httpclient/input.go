package httpclient

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/stream/httpcall"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

// input takes messages from a server: the responses to polls, or the lines or events of a
// response that goes on. It has a goroutine only while it calls the server.
type input struct {
	conf *streams.HTTPPoll
	site *stream.Site
	plan *httpcall.Plan
	pass passer

	unwatch func()
	ctx     context.Context // ends with Stop
	cancel  context.CancelFunc
	wake    chan struct{} // more messages may be fetched

	// Of the goroutine that calls; calls do not overlap.
	last    *stream.Message // for the templates
	attempt int             // of this poll, the first being 0
	began   time.Time       // the first attempt of this poll
	lastID  string          // of the events of a stream

	mu      sync.Mutex
	on      bool // there is demand
	stopped bool
	ended   bool // the stream is over, and there is none after it
	calling bool
	quiet   chan struct{} // closed when it calls no more; nil: nobody waits for that
	due     time.Time     // of the next call
	timer   *time.Timer   // of the next call; nil: none
	phase   stream.Phase  // while there is demand
}

// NewInput returns http_client as an input. The error names the field at fault.
func NewInput(c *streams.HTTPPoll, site *stream.Site) (stream.Input, error) {
	plan, err := httpcall.New(&c.HTTPRequest, site)
	if err != nil {
		return nil, err
	}
	in := &input{conf: c, site: site, plan: plan, wake: make(chan struct{}, 1), last: &stream.Message{}, phase: stream.Starting}
	in.pass = passer{site: site, free: in.free, again: make(map[*stream.Message]*time.Timer)}
	in.ctx, in.cancel = context.WithCancel(context.Background())
	site.State.Lag.Store(-1)
	site.State.Enter(stream.Starting)
	return in, nil
}

// Start implements stream.Input.
func (in *input) Start(to stream.Flow) {
	in.pass.flow = to
	in.unwatch = to.Demand().Watch(func(on bool) {
		in.mu.Lock()
		in.on = on
		in.show()
		in.mu.Unlock()
		in.pass.demand(on)
	})
}

// show sets the phase of the connector. It needs mu.
func (in *input) show() {
	switch {
	case in.stopped:
	case !in.on && !in.ended:
		in.site.State.Enter(stream.Waiting)
	default:
		in.site.State.Enter(in.phase)
	}
}

// enter sets the phase that is shown while there is demand. It reports whether it was
// another one.
func (in *input) enter(p stream.Phase) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	changed := in.phase != p
	in.phase = p
	in.show()
	return changed
}

// free is called when more messages may be fetched.
func (in *input) free() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.arm()
}

// arm sets the timer of the next call. It needs mu.
func (in *input) arm() {
	if !in.stopped && !in.ended && !in.calling && in.timer == nil {
		in.timer = time.AfterFunc(time.Until(in.due), in.call)
	}
}

// call calls the server, on a goroutine of its own, and sets the timer of the next call.
func (in *input) call() {
	in.mu.Lock()
	in.timer = nil
	if in.stopped || in.ended || in.calling {
		in.mu.Unlock()
		return
	}
	if time.Until(in.due) > 0 {
		in.arm()
		in.mu.Unlock()
		return
	}
	in.mu.Unlock()
	if !in.pass.ready() {
		return // free is called once it is
	}
	in.mu.Lock()
	if in.stopped || in.calling {
		in.mu.Unlock()
		return
	}
	in.calling = true
	in.mu.Unlock()

	var due time.Time
	if in.conf.Stream {
		due = in.follow()
	} else {
		due = in.poll()
	}

	in.mu.Lock()
	in.calling, in.due = false, due
	if in.quiet != nil {
		close(in.quiet)
		in.quiet = nil
	}
	in.mu.Unlock()
	if in.pass.ready() {
		in.free()
	}
}

// poll asks the server once, and returns when to ask again.
func (in *input) poll() time.Time {
	now := time.Now()
	if in.attempt == 0 {
		in.began = now
	}
	call, failure := in.prepare()
	var answer *httpcall.Response
	if failure == nil {
		in.site.State.Attempts.Add(1)
		answer, failure = call.Ask(in.ctx)
	}
	if in.ctx.Err() != nil {
		return now
	}
	if unchanged(failure) {
		answer, failure = nil, nil
	}
	if failure != nil {
		in.failed(failure)
		if failure.Class != stream.Permanent && in.attempt < in.conf.Retries {
			in.attempt++
			return time.Now().Add(in.plan.Pause(in.attempt-1, failure.After))
		}
		in.attempt = 0
		return later(in.next(), failure.After)
	}
	in.attempt = 0
	in.enter(stream.Running)
	if answer != nil && (len(answer.Body) > 0 || !in.conf.DropEmptyBodies) {
		in.emit(answer.Body, httpcall.Meta(answer.Status, answer.Header))
	}
	return in.next()
}

// unchanged reports whether the answer was that there is nothing new, which only the headers
// of the configuration can have asked for.
func unchanged(f *stream.Failure) bool {
	if f == nil {
		return false
	}
	e, ok := errors.AsType[*httpcall.StatusError](f)
	return ok && e.Status == http.StatusNotModified
}

// next returns the time of the next poll. Times that have passed are left out.
func (in *input) next() time.Time {
	periods := time.Since(in.began)/in.conf.Period + 1
	return in.began.Add(periods * in.conf.Period)
}

// later returns a time, but not one within a pause.
func later(t time.Time, pause time.Duration) time.Time {
	if end := time.Now().Add(pause); end.After(t) {
		return end
	}
	return t
}

// prepare makes a call for the last message.
func (in *input) prepare() (*httpcall.Call, *stream.Failure) {
	call, err := in.plan.Prepare(in.last.Doc, nil)
	if err != nil {
		return nil, &stream.Failure{Class: stream.Permanent, Err: err}
	}
	return call, nil
}

// emit passes a message on.
func (in *input) emit(body []byte, meta []stream.Meta) {
	m := &stream.Message{ID: stream.NewID(), Body: body, Meta: meta, At: time.Now(), Attempt: 1}
	if in.plan.Varies() {
		in.last = m
	}
	in.pass.pass(m)
}

// failed records the failure of a call. It is logged when calls begin to fail.
func (in *input) failed(f *stream.Failure) {
	in.site.State.Fail(f)
	phase := stream.Reconnecting
	if !httpcall.Mends(f) {
		phase = stream.Failing
	}
	if in.enter(phase) {
		in.site.Log.Warn("a stream cannot fetch messages", "stream", in.site.Stream, "input", in.site.Label, "error", f)
	}
}

// Stop implements stream.Input. Messages that were not taken yet are lost.
func (in *input) Stop(ctx context.Context) {
	in.halt()
	if in.unwatch == nil {
		return
	}
	in.site.State.Enter(stream.Draining)
	in.pass.stop(ctx)
	in.mu.Lock()
	var quiet chan struct{}
	if in.calling {
		if in.quiet == nil {
			in.quiet = make(chan struct{})
		}
		quiet = in.quiet
	}
	in.mu.Unlock()
	if quiet != nil {
		select {
		case <-quiet:
		case <-ctx.Done():
		}
	}
}

// halt ends calls.
func (in *input) halt() {
	in.mu.Lock()
	in.stopped = true
	if in.timer != nil {
		in.timer.Stop()
	}
	in.mu.Unlock()
	in.cancel()
	if in.unwatch != nil {
		in.unwatch()
	}
}

// Close implements stream.Input.
func (in *input) Close() {
	in.halt()
	in.plan.Close()
	in.site.State.Enter(stream.Stopped)
}
