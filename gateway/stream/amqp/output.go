package amqp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/mapping"
	"github.com/sluicegate/sluice/internal/sleep"
)

// maxQueued is how many messages an output takes without demand.
const maxQueued = 4096

// An Output publishes messages in confirm mode. What the broker has not confirmed when a
// connection is lost is published again on the next, in order.
type Output struct {
	config *streams.BrokerOutput
	site   *stream.Site
	group  *group
	topic  *mapping.Template
	key    *mapping.Template // nil: that of the message
	demand *stream.Demand
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned

	mu      sync.Mutex
	closed  bool
	started bool
	refuses error // the broker needs a change of the configuration first; nil: it does not
	blocked bool
	shown   bool // the level of demand that was wanted last
	epoch   *publishing
	queue   fifo[*letter] // to be published
	cut     bool          // metadata was cut, which was logged
}

// A letter is a message on its way to the broker.
type letter struct {
	topic    string
	meta     string // as its header has it
	key      []byte
	m        *stream.Message
	id       string
	settle   stream.Settle
	sent     time.Time // in this epoch
	times    int       // that it was sent
	returned error     // by the broker, which had no queue for it
}

// NewOutput returns an output of a stream. Its error is about a template.
func (p *Pool) NewOutput(c *streams.BrokerOutput, site *stream.Site) (*Output, error) {
	o := &Output{config: c, site: site, group: p.group(&c.Servers, true), demand: stream.NewDemand(false), done: make(chan struct{})}
	var err error
	if o.topic, err = mapping.CompileTemplate(string(c.Topic)); err != nil {
		return nil, fmt.Errorf("topic: %w", err)
	}
	if c.Key != "" {
		if o.key, err = mapping.CompileTemplate(string(c.Key)); err != nil {
			return nil, fmt.Errorf("key: %w", err)
		}
	}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	site.State.Enter(stream.Starting)
	return o, nil
}

// Start implements stream.Starter.
func (o *Output) Start() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed && !o.started {
		o.started = true
		go o.run()
	}
}

// Demand implements stream.Output.
func (o *Output) Demand() *stream.Demand { return o.demand }

// Write implements stream.Output.
func (o *Output) Write(m *stream.Message, settle stream.Settle) {
	l, err := o.letter(m)
	if err != nil {
		settle(err)
		return
	}
	l.settle = settle
	o.mu.Lock()
	err = o.accepts()
	if err == nil {
		o.queue.push(l)
		o.pump()
	}
	changed := o.levelled()
	o.mu.Unlock()
	if err != nil {
		settle(err)
	}
	if changed {
		o.show()
	}
}

// accepts is called with mu.
func (o *Output) accepts() error {
	switch {
	case o.closed:
		return stream.ErrClosed
	case o.refuses != nil:
		return &stream.Failure{Class: stream.Transient, Err: o.refuses}
	case o.queue.len() >= maxQueued:
		return stream.Failf(stream.Transient, "%d messages wait for the broker already", maxQueued)
	}
	return nil
}

// letter addresses a message.
func (o *Output) letter(m *stream.Message) (*letter, error) {
	topic, err := o.topic.Text(m.Doc)
	if err != nil {
		return nil, stream.Failf(stream.Permanent, "topic: %w", err)
	}
	switch {
	case topic == "" || len(topic) > 255:
		return nil, stream.Failf(stream.Permanent, "the topic has %d bytes; it must have 1 to 255", len(topic))
	case strings.ContainsAny(topic, "*#"):
		return nil, stream.Failf(stream.Permanent, "the topic %q has a * or #, which are for those who listen", topic)
	}
	key := m.Key
	if o.key != nil {
		text, err := o.key.Text(m.Doc)
		if err != nil {
			return nil, stream.Failf(stream.Permanent, "key: %w", err)
		}
		key = []byte(text)
	}
	if len(key) > maxKey {
		return nil, stream.Failf(stream.Permanent, "the key has %d bytes; it must not have more than %d", len(key), maxKey)
	}
	meta, whole := metaText(m.Meta)
	if !whole {
		o.logCut()
	}
	return &letter{topic: topic, meta: meta, key: key, m: m, id: idOf(m.ID)}, nil
}

// logCut logs once that metadata does not fit into a message.
func (o *Output) logCut() {
	o.mu.Lock()
	first := !o.cut
	o.cut = true
	o.mu.Unlock()
	if first {
		o.site.Log.Warn("metadata of a message is more than headers take; the rest is left out of messages, and this is logged once",
			"stream", o.site.Stream, "output", o.site.Label, "max_headers", maxMeta, "max_bytes", maxMetaBytes)
	}
}

// levelled notes the level of demand that the state asks for, and reports whether it has
// changed. It is called with mu.
func (o *Output) levelled() bool {
	n := o.queue.len()
	if o.epoch != nil {
		n += o.epoch.flight.len()
	}
	on := o.epoch != nil && !o.blocked && !o.closed && n < o.config.MaxInFlight
	if on && !o.shown {
		on = n <= o.config.MaxInFlight-1-o.config.MaxInFlight/4 // some room, rather than one at a time
	}
	changed := on != o.shown
	o.shown = on
	return changed
}

// show sets the demand. Watchers are called without mu; the last to come sets what is
// wanted last.
func (o *Output) show() {
	for {
		o.mu.Lock()
		on := o.shown
		o.mu.Unlock()
		o.demand.Set(on)
		o.mu.Lock()
		same := o.shown == on
		o.mu.Unlock()
		if same {
			return
		}
	}
}

// pump has what is queued published. It is called with mu.
func (o *Output) pump() {
	if e := o.epoch; e != nil && !o.blocked && !e.writing && o.queue.len() > 0 && e.flight.len() < o.config.MaxInFlight {
		e.writing = true
		e.writers.Go(e.write)
	}
}

// block follows whether the broker takes messages.
func (o *Output) block(b amqp.Blocking) {
	o.mu.Lock()
	was := o.blocked
	o.blocked = b.Active
	if e := o.epoch; e != nil && was && !b.Active {
		e.rest() // what was sent before waits for its confirmation from now on
	}
	o.pump()
	changed := o.levelled()
	o.mu.Unlock()
	if changed {
		o.show()
	}
	if b.Active {
		o.site.State.Fail(stream.Failf(stream.Transient, "the broker takes no messages: %s", b.Reason))
		o.site.State.Enter(stream.Waiting)
	} else if was {
		o.site.State.Enter(stream.Running)
	}
}

// Close implements stream.Output.
func (o *Output) Close(ctx context.Context) {
	o.mu.Lock()
	o.closed = true
	started := o.started
	changed := o.levelled()
	o.mu.Unlock()
	if changed {
		o.show()
	}
	o.cancel()
	if started {
		select {
		case <-o.done:
		case <-ctx.Done():
		}
	}
	o.settleQueued(stream.ErrClosed)
	o.site.State.Enter(stream.Stopped)
}

// settleQueued settles what is not being published.
func (o *Output) settleQueued(err error) {
	o.mu.Lock()
	all := o.queue.take(o.queue.len())
	changed := o.levelled()
	o.mu.Unlock()
	for _, l := range all {
		l.settle(err)
	}
	if changed {
		o.show()
	}
}

// run goes from epoch to epoch until Close.
func (o *Output) run() {
	defer close(o.done)
	p := pacer{timing: &o.group.pool.timing}
	for o.ctx.Err() == nil {
		o.site.State.Attempts.Add(1)
		began := time.Now()
		err, connected := o.publish()
		if o.ctx.Err() != nil {
			break
		}
		pause, failing := p.next(err, connected, time.Since(began))
		o.site.State.Fail(err)
		if failing {
			o.refuse(err)
		} else {
			o.site.State.Enter(stream.Reconnecting)
		}
		_ = sleep.For(o.ctx, pause) // it ends early with the context
	}
	o.settleQueued(stream.ErrClosed)
}

// refuse settles messages until there is an epoch again: that needs a change of the
// configuration.
func (o *Output) refuse(err error) {
	if phase, _ := o.site.State.Phase(); phase != stream.Failing {
		o.site.Log.Error("the message broker refuses a stream", "stream", o.site.Stream, "output", o.site.Label, "error", err)
	}
	o.site.State.Enter(stream.Failing)
	o.mu.Lock()
	o.refuses = err
	o.mu.Unlock()
	o.settleQueued(&stream.Failure{Class: stream.Transient, Err: err})
}
