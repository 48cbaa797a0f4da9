package inproc

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/mapping"
)

// An Output publishes to a topic.
type Output struct {
	broker     *Broker
	site       *stream.Site
	topic, key *mapping.Template
	always     *topic // nil: the topic depends on the message
	demand     *stream.Demand
	limit      int

	mu      sync.Mutex
	closed  bool
	flying  map[*sending]struct{}
	settled chan struct{} // closed once nothing flies; nil: nobody waits for it
}

// NewOutput returns an output to a topic. The error is that of opening the journal, or of
// a template.
func (b *Broker) NewOutput(c *streams.BrokerOutput, site *stream.Site) (stream.Output, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	o := &Output{broker: b, site: site, limit: max(1, c.MaxInFlight), flying: make(map[*sending]struct{})}
	var err error
	if o.topic, err = mapping.CompileTemplate(string(c.Topic)); err != nil {
		return nil, err
	}
	if o.key, err = mapping.CompileTemplate(string(c.Key)); err != nil {
		return nil, err
	}
	o.demand = stream.NewDemand(true)
	if fixed, ok := o.topic.Static(); ok {
		if o.always, err = b.topic(site.Org, fixed); err != nil {
			return nil, err
		}
		o.always.publisher(1)
		o.demand = o.always.demand
	}
	site.State.Enter(stream.Running)
	return o, nil
}

// Demand implements stream.Output.
func (o *Output) Demand() *stream.Demand { return o.demand }

// A sending is a message that was written and not settled.
type sending struct {
	output *Output
	topic  *topic
	to     publication
	settle stream.Settle
	bytes  int
	done   atomic.Bool
}

// Write implements stream.Output.
func (o *Output) Write(m *stream.Message, settle stream.Settle) {
	t, key, err := o.place(m)
	s := &sending{output: o, topic: t, settle: settle, bytes: len(m.Body)}
	if err == nil {
		s.to = publication{entry: newEntry(m, key), end: s.end}
		err = o.begin(s)
	}
	if err != nil {
		settle(err)
		return
	}
	o.site.State.Attempts.Add(1)
	t.publish(&s.to)
}

// begin counts a message, unless there are too many.
func (o *Output) begin(s *sending) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return stream.ErrClosed
	case len(o.flying) >= o.limit:
		return stream.Failf(stream.Transient, "%d messages wait to be published already", o.limit)
	}
	o.flying[s] = struct{}{}
	return nil
}

// place returns the topic and the key of a message.
func (o *Output) place(m *stream.Message) (*topic, []byte, error) {
	key := m.Key
	if text, err := o.key.Text(m.Doc); err != nil {
		return nil, nil, stream.Failf(stream.Permanent, "key: %w", err)
	} else if text != "" {
		key = []byte(text)
	}
	if o.always != nil {
		return o.always, key, nil
	}
	name, err := o.topic.Text(m.Doc)
	if err != nil {
		return nil, nil, stream.Failf(stream.Permanent, "topic: %w", err)
	}
	t, err := o.broker.topic(o.site.Org, name)
	return t, key, err
}

// end settles the message, once.
func (s *sending) end(err error) {
	if !s.done.CompareAndSwap(false, true) {
		return
	}
	o := s.output
	o.mu.Lock()
	delete(o.flying, s)
	if len(o.flying) == 0 && o.settled != nil {
		close(o.settled)
		o.settled = nil
	}
	o.mu.Unlock()
	if err == nil {
		o.site.State.Messages.Add(1)
		o.site.State.Bytes.Add(uint64(s.bytes))
	}
	s.settle(err)
}

// Close implements stream.Output. What waits for room fails; what is being written to the
// journal is waited for until ctx ends.
func (o *Output) Close(ctx context.Context) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return
	}
	o.closed = true
	left := make([]*sending, 0, len(o.flying))
	for s := range o.flying {
		left = append(left, s)
	}
	var settled chan struct{}
	if len(left) > 0 {
		o.settled = make(chan struct{})
		settled = o.settled
	}
	o.mu.Unlock()
	for _, s := range left {
		if s.topic.withdraw(&s.to) {
			s.end(stream.ErrClosed)
		}
	}
	if settled != nil {
		select {
		case <-settled:
		case <-ctx.Done():
		}
	}
	for _, s := range left {
		s.end(stream.ErrClosed)
	}
	if o.always != nil {
		o.always.publisher(-1)
	}
	o.site.State.Enter(stream.Stopped)
}
