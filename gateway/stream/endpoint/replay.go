package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/mapping"
)

// maxCatchUps is how many clients of a Replay read the log by themselves at a time.
const maxCatchUps = 64

// A Replay is the connector http_server with resume: its clients get events, each from its
// own position in a log. A client that names no position gets what comes from now on. The
// ids of the events are positions: with Last-Event-ID a client goes on behind one.
//
// One reading of the log keeps the last events for all clients, in a ring. A client whose
// position is older reads the log itself until it meets the ring. No client settles
// anything, or keeps others waiting.
type Replay struct {
	site   *stream.Site
	conf   streams.HTTPServerOutput
	format eventFormat
	wheel  wheel
	buffers
	ring     *ring
	catching chan struct{} // one for each client that reads the log
	timing   replayTiming

	follows   context.Context // ends with Unfollow
	unfollow  context.CancelFunc
	serving   context.Context // ends with Close
	stop      context.CancelFunc
	following sync.WaitGroup // the reading of the ring
	log       stream.Log     // set before ring.attached is closed
	process   stream.Process

	mu      sync.Mutex
	viewers map[*viewer]struct{}
	closed  bool
	empty   chan struct{} // closed when the last client has left; nil: it is not waited for
}

// replayTiming are the times of a Replay, which tests shorten.
type replayTiming struct {
	turn  time.Duration // that a client reads the log for before others do
	quiet time.Duration // without a message, after which it leaves the log to others
	pause time.Duration // until it looks at the log again; it doubles
	calm  time.Duration // the longest pause
}

// NewReplay returns the connector http_server as an output with resume. memory bounds what
// several keep together.
func NewReplay(c *streams.HTTPServerOutput, site *stream.Site, memory *Memory) (*Replay, error) {
	r := &Replay{
		site: site, conf: *c, ring: newRing(memory), catching: make(chan struct{}, maxCatchUps), viewers: make(map[*viewer]struct{}),
		timing: replayTiming{turn: 30 * time.Second, quiet: time.Second, pause: 5 * time.Second, calm: 10 * time.Minute},
	}
	r.wheel.every = c.Heartbeat
	r.follows, r.unfollow = context.WithCancel(context.Background())
	r.serving, r.stop = context.WithCancel(context.Background())
	if c.Event != "" {
		var err error
		if r.format.event, err = mapping.CompileTemplate(string(c.Event)); err != nil {
			return nil, fmt.Errorf("event: %w", err)
		}
	}
	site.State.Enter(stream.Waiting)
	return r, nil
}

// Follow begins to read a log. It does not wait.
func (r *Replay) Follow(log stream.Log, process stream.Process) {
	r.log, r.process = log, process
	r.following.Go(func() { _ = log.Read(r.follows, nil, &tail{r}) }) // it ends with follows
}

// Unfollow ends the reading of the ring.
func (r *Replay) Unfollow() {
	r.unfollow()
	r.following.Wait()
}

// A tail is the reading that fills the ring.
type tail struct{ *Replay }

// Begin implements stream.Reader.
func (t *tail) Begin(at *stream.Position, gap bool) error {
	t.ring.begin(at, t.log.ID(at), gap)
	return nil
}

// Take implements stream.Reader.
func (t *tail) Take(e *stream.Entry) error {
	events, err := t.eventsOf(t.follows, e.Message)
	if err != nil {
		return err
	}
	t.ring.add(e, events, t.log.ID)
	return nil
}

// eventsOf returns the events that a message of the log becomes. Its error is that of ctx.
func (r *Replay) eventsOf(ctx context.Context, m *stream.Message) ([]event, error) {
	all, err := r.process(ctx, m)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	events := make([]event, 0, len(all))
	for _, one := range all {
		e, err := r.format.eventOf(one)
		if err != nil {
			r.site.State.Fail(&stream.Failure{Class: stream.Permanent, By: r.site.Label, Err: err})
			continue
		}
		events = append(events, e)
	}
	return events, nil
}

// Routes implements stream.Server.
func (r *Replay) Routes() []stream.Route {
	return routesOf(r.conf.Routes(), nil, func(*streams.Route) serve { return r.serve })
}

var (
	notReached = pipeline.NewRejection(pipeline.ReasonStreamUnavailable, 503, "The source of the stream is not connected, please try again")
	badEventID = pipeline.NewRejection(pipeline.ReasonBadRequest, 400, "Last-Event-ID is not the id of an event of this stream")
)

// serve answers a request with events.
func (r *Replay) serve(ex *pipeline.Exchange, _ []stream.Meta) pipeline.Verdict {
	id := string(ex.Call.Header("Last-Event-ID"))
	if len(id) > stream.MaxPositionID {
		return ex.Reject(badEventID)
	}
	var v *viewer
	if !ex.Call.IsHead() {
		if refused := r.reached(); refused != nil {
			return again(ex, refused)
		}
		if id != "" {
			if _, ok := r.log.Position(id); !ok {
				return ex.Reject(badEventID)
			}
		}
		var refused *pipeline.Rejection
		if v, refused = r.join(id); refused != nil {
			return again(ex, refused)
		}
	}
	a := ex.Answer
	a.Status, a.NoBody, a.Length = 200, true, -1
	a.Lines = append(a.Lines, r.format.head()...)
	if v == nil {
		return pipeline.Answered
	}
	a.Lines = append(a.Lines, "Connection: close\r\n"...)
	ex.Cut = func(error) { v.abandon() }
	a.Takeover = v.serve
	return pipeline.Answered
}

// reached waits, for a while, until it is known what comes from now on.
func (r *Replay) reached() *pipeline.Rejection {
	timer := time.NewTimer(r.conf.Timeout)
	defer timer.Stop()
	select {
	case <-r.ring.attached:
		return nil
	case <-r.serving.Done():
		return draining
	case <-timer.C:
		return notReached
	}
}

// join adds a client.
func (r *Replay) join(id string) (*viewer, *pipeline.Rejection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, draining
	case len(r.viewers) >= r.conf.MaxClients:
		return nil, fullOfClients
	}
	v := &viewer{of: r, kick: make(chan struct{}, 1), place: r.ring.find(id)}
	v.ctx, v.cancel = context.WithCancel(r.serving)
	r.viewers[v] = struct{}{}
	r.site.State.Clients.Add(1)
	r.site.State.Enter(stream.Running)
	return v, nil
}

func (r *Replay) leave(v *viewer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.viewers, v)
	r.site.State.Clients.Add(-1)
	if len(r.viewers) > 0 || r.closed {
		if len(r.viewers) == 0 && r.empty != nil {
			close(r.empty)
			r.empty = nil
		}
		return
	}
	r.site.State.Enter(stream.Waiting)
}

// never is the demand of a Replay: it takes its messages from the log.
var never = stream.NewDemand(false)

// Demand implements stream.Output.
func (*Replay) Demand() *stream.Demand { return never }

// Write implements stream.Output.
func (*Replay) Write(_ *stream.Message, settle stream.Settle) {
	settle(stream.Failf(stream.Permanent, "the output reads its source itself"))
}

// Close implements stream.Output. Clients are asked to connect again.
func (r *Replay) Close(ctx context.Context) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	r.closed = true
	var empty chan struct{}
	if len(r.viewers) > 0 {
		empty = make(chan struct{})
		r.empty = empty
	}
	r.mu.Unlock()
	r.site.State.Enter(stream.Draining)
	r.Unfollow()
	r.stop()
	if empty != nil {
		select {
		case <-empty:
		case <-ctx.Done():
			r.abandon()
		}
	}
	r.ring.release()
	r.site.State.Enter(stream.Stopped)
}

func (r *Replay) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for v := range r.viewers {
		v.abandon()
	}
}

// errBehind says that a client's next event is not in the ring.
var errBehind = errors.New("the event is not kept")

// errMet ends a reading of the log when the ring has what follows.
var errMet = errors.New("the next event is kept")

// hangUp ends a connection at once.
func hangUp(conn net.Conn) {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn() // the goodbye of TLS could wait for the peer
	}
	_ = conn.Close() // it is not used any more
}

// clone returns a copy of a position.
func clone(p *stream.Position) *stream.Position {
	return &stream.Position{Next: slices.Clone(p.Next), Mark: p.Mark}
}
