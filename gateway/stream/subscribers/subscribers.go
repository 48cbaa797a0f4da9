// Package subscribers is the output of streams whose messages are the events of GraphQL
// subscriptions: every subscriber gets every message. Each of them has an event stream
// (WHATWG HTML, section 9.2), which the gateway reads itself, with the data
//
//	{"message": …}
//
// for a message that is JSON, and {"fault": "…"} for another.
package subscribers

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/wire"
)

// maxWaiting bounds the events that wait for one reader, in bytes. Readers pass events on
// without waiting for clients.
const maxWaiting = 8 << 20

// lookEvery is the time between two looks for a client that has left.
const lookEvery = 2 * time.Second

// An Output gives messages to subscribers. It is a stream.Output, and the stage that begins
// a subscription.
type Output struct {
	site   *stream.Site
	key    []byte // by which subscriptions share a reader
	demand *stream.Demand

	telling sync.Mutex // orders the changes of demand; taken before mu

	mu     sync.Mutex
	all    map[*reader]struct{}
	closed bool
}

// New returns an output without subscribers.
func New(site *stream.Site) *Output {
	site.State.Enter(stream.Waiting)
	return &Output{
		site: site, key: []byte("subscribers " + rand.Text()),
		demand: stream.NewDemand(false), all: make(map[*reader]struct{}),
	}
}

// Demand implements stream.Output. It is on while there are subscribers.
func (o *Output) Demand() *stream.Demand { return o.demand }

var errNoSubscriber = stream.Failf(stream.Transient, "the last client has ended its subscription")

// Write implements stream.Output. A message is settled once it waits for every reader.
func (o *Output) Write(m *stream.Message, settle stream.Settle) {
	event := eventOf(m.Body)
	o.mu.Lock()
	closed, readers := o.closed, len(o.all)
	for r := range o.all {
		if !r.add(event) {
			o.site.State.Dropped.Add(1)
		}
	}
	o.mu.Unlock()
	switch {
	case closed:
		settle(stream.ErrClosed)
	case readers == 0:
		settle(errNoSubscriber)
	default:
		o.site.State.Messages.Add(1)
		o.site.State.Bytes.Add(uint64(len(m.Body)))
		settle(nil)
	}
}

func eventOf(body []byte) []byte {
	b := bytes.NewBufferString(`data: {"message":`)
	if json.Compact(b, body) != nil { // which leaves no line ends
		return []byte("data: {\"fault\":\"the message is not JSON\"}\n\n")
	}
	b.WriteString("}\n\n")
	return b.Bytes()
}

// Close implements stream.Output.
func (o *Output) Close(context.Context) {
	o.mu.Lock()
	o.closed = true
	for r := range o.all {
		r.end(errClosed)
	}
	o.mu.Unlock()
	o.tell()
	o.site.State.Enter(stream.Stopped)
}

// Handle implements pipeline.Stage: it begins a subscription. Those on GraphQL connections
// share a reader.
func (o *Output) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	a := ex.Answer
	if live := ex.Live; live != nil && live.Upstreams != nil {
		live.Streamed.Share = true
		if live.Joined = live.Upstreams.Join(o.key); live.Joined {
			a.Status, a.NoBody, a.Length = 200, true, -1
			return pipeline.Answered
		}
	}
	r := &reader{of: o, client: ex.Call.Client(), wake: make(chan struct{}, 1)}
	if live := ex.LiveEvents(); live != nil && live.Left != nil {
		r.client = wire.ClientUntil(live.Left)
	}
	if !o.join(r) {
		return ex.Reject(closing)
	}
	a.Status, a.Stream, a.Body, a.Length = 200, r, nil, -1
	a.Lines = append(a.Lines[:0], "Content-Type: text/event-stream\r\n"...)
	return pipeline.Answered
}

var closing = pipeline.NewRejection(pipeline.ReasonStreamUnavailable, 503, "The topics of the subscription are being changed, please try again")

// join adds a reader unless the output is closed.
func (o *Output) join(r *reader) bool {
	o.mu.Lock()
	closed := o.closed
	if !closed {
		o.all[r] = struct{}{}
		o.site.State.Clients.Store(int64(len(o.all)))
	}
	o.mu.Unlock()
	o.tell()
	return !closed
}

func (o *Output) leave(r *reader) {
	o.mu.Lock()
	delete(o.all, r)
	o.site.State.Clients.Store(int64(len(o.all)))
	o.mu.Unlock()
	o.tell()
}

// tell sets the demand. Of several changes at a time the last one counts.
func (o *Output) tell() {
	o.telling.Lock()
	defer o.telling.Unlock()
	o.mu.Lock()
	closed := o.closed
	on := len(o.all) > 0 && !closed
	o.mu.Unlock()
	o.demand.Set(on)
	switch {
	case on:
		o.site.State.Enter(stream.Running)
	case !closed:
		o.site.State.Enter(stream.Waiting)
	}
}

// Why an event stream ends.
var (
	errClosed = errors.New("the topics of the subscription have changed")
	errSlow   = errors.New("the events of the subscription are not read fast enough")
	errLeft   = errors.New("the client has left")
)

// A reader is the event stream of a subscription, or of all that share it.
type reader struct {
	of     *Output
	client wire.Client
	wake   chan struct{} // there is something to read
	closed sync.Once

	mu      sync.Mutex
	waiting []byte
	why     error // the end; nil: events may follow
}

// add adds an event. It returns false, and ends the stream, if too many wait.
func (r *reader) add(event []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.why != nil {
		return true
	}
	fits := len(r.waiting)+len(event) <= maxWaiting
	if fits {
		r.waiting = append(r.waiting, event...)
	} else {
		r.waiting, r.why = nil, errSlow
	}
	r.awake()
	return fits
}

func (r *reader) end(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.why == nil {
		r.why = why
	}
	r.awake()
}

func (r *reader) awake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Read implements io.Reader. It waits for an event.
func (r *reader) Read(p []byte) (int, error) {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	for {
		if n, err := r.take(p); n > 0 || err != nil {
			return n, err
		}
		select {
		case <-r.wake:
		case <-timer.C:
			if r.client.Gone() {
				return 0, errLeft
			}
			timer.Reset(lookEvery)
		}
	}
}

func (r *reader) take(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := copy(p, r.waiting)
	if r.waiting = r.waiting[n:]; len(r.waiting) == 0 {
		r.waiting = nil
	}
	if n == 0 {
		return 0, r.why
	}
	return n, nil
}

// Close implements io.Closer.
func (r *reader) Close() error {
	r.closed.Do(func() {
		r.of.leave(r)
		r.end(io.EOF)
	})
	return nil
}
