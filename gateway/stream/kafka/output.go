package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/mapping"
	"github.com/sluicegate/sluice/internal/sleep"
)

// Bounds of publishing.
const (
	deliverWithin = 30 * time.Second
	pingWithin    = 5 * time.Second
	firstPause    = 200 * time.Millisecond
	longestPause  = 15 * time.Second
	batchOverhead = 64 << 10 // of headers and keys beside a body
	maxTopic      = 249      // bytes, as brokers have it
)

// An Output publishes messages, each acknowledged by all replicas that are in sync. The
// library repeats what may have been lost without making two of it (idempotent producer).
type Output struct {
	config *streams.BrokerOutput
	site   *stream.Site
	topic  *mapping.Template
	key    *mapping.Template // nil: that of the message
	demand *stream.Demand
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	client *kgo.Client // nil before Start
	up     bool        // the brokers can be reached
	closed bool
	flying int // messages that are not settled
	shown  bool
}

// NewOutput returns an output of a stream. Its error is about a template.
func NewOutput(c *streams.BrokerOutput, site *stream.Site) (*Output, error) {
	o := &Output{config: c, site: site, demand: stream.NewDemand(false)}
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
	opts := append(options(&o.config.Servers, o.site, &hooks{o.site.State, o.lost}),
		kgo.MaxBufferedRecords(2*max(1, o.config.MaxInFlight)), kgo.RecordDeliveryTimeout(deliverWithin), kgo.ProducerLinger(0),
		kgo.ProducerBatchMaxBytes(int32(o.site.MaxMessageBytes+batchOverhead)), kgo.AllowAutoTopicCreation(),
	)
	client, err := kgo.NewClient(opts...)
	if err != nil { // the addresses were checked when the definition was
		o.site.State.Fail(stream.Failf(stream.Permanent, "%w", err))
		o.site.State.Enter(stream.Failing)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		client.Close()
		return
	}
	o.client = client
	o.done.Go(o.reach)
}

// reach waits until the brokers can be reached.
func (o *Output) reach() {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		ctx, cancel := context.WithTimeout(o.ctx, pingWithin)
		err := o.client.Ping(ctx)
		cancel()
		if o.ctx.Err() != nil {
			return
		}
		if err == nil {
			o.site.State.Enter(stream.Running)
			o.change(func() { o.up = true })
			return
		}
		o.site.State.Fail(err)
		o.site.State.Enter(stream.Reconnecting)
		if sleep.For(o.ctx, pause) != nil {
			return
		}
	}
}

// Demand implements stream.Output.
func (o *Output) Demand() *stream.Demand { return o.demand }

// Write implements stream.Output.
func (o *Output) Write(m *stream.Message, settle stream.Settle) {
	r, err := o.record(m)
	if err != nil {
		settle(err)
		return
	}
	o.mu.Lock()
	client := o.client
	switch {
	case o.closed:
		err = stream.ErrClosed
	case client == nil:
		err = stream.Failf(stream.Transient, "there is no connection to the message broker")
	default:
		o.flying++
	}
	o.mu.Unlock()
	if err != nil {
		settle(err)
		return
	}
	o.change(func() {})
	client.TryProduce(o.ctx, r, func(_ *kgo.Record, err error) {
		o.published(m, err)
		settle(o.failure(err))
	})
}

// published follows the end of a message.
func (o *Output) published(m *stream.Message, err error) {
	if err == nil {
		o.site.State.Messages.Add(1)
		o.site.State.Bytes.Add(uint64(len(m.Body)))
	}
	o.change(func() { o.flying-- })
	if errors.Is(err, kgo.ErrRecordTimeout) {
		o.lost()
	}
}

// lost takes no more messages until the brokers can be reached again.
func (o *Output) lost() {
	o.change(func() {
		if o.up && !o.closed {
			o.up = false
			o.done.Go(o.reach)
		}
	})
}

// failure returns the class of an error of the library, or nil if the message counts as
// published.
func (o *Output) failure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		if o.config.DropUnroutable {
			return nil
		}
		return stream.Failf(stream.Permanent, "the topic does not exist: %w", err)
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.InvalidTopicException), errors.Is(err, kerr.RecordListTooLarge):
		return stream.Failf(stream.Permanent, "%w", err)
	case errors.Is(err, kgo.ErrMaxBuffered):
		return stream.Failf(stream.Transient, "too many messages wait for the broker already")
	case errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrClientClosed):
		return stream.ErrClosed
	}
	return stream.Failf(stream.Unknown, "%w", err)
}

// record addresses a message.
func (o *Output) record(m *stream.Message) (*kgo.Record, error) {
	topic, err := o.topic.Text(m.Doc)
	if err != nil {
		return nil, stream.Failf(stream.Permanent, "topic: %w", err)
	}
	if topic == "" || len(topic) > maxTopic {
		return nil, stream.Failf(stream.Permanent, "the topic has %d bytes; it must have 1 to %d", len(topic), maxTopic)
	}
	r := &kgo.Record{Topic: topic, Key: m.Key, Value: m.Body, Headers: []kgo.RecordHeader{{Key: idHeader, Value: []byte(m.ID)}}}
	if o.key != nil {
		text, err := o.key.Text(m.Doc)
		if err != nil {
			return nil, stream.Failf(stream.Permanent, "key: %w", err)
		}
		r.Key = []byte(text)
	}
	carried := stream.NewCarrier()
	for _, one := range m.Meta {
		if carried.Add(one.Name, one.Value) {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: metaHeader + one.Name, Value: []byte(one.Value)})
		}
	}
	return r, nil
}

// change changes the state and sets the demand by it. Watchers are called without mu; the
// last to come sets what is wanted last.
func (o *Output) change(do func()) {
	o.mu.Lock()
	do()
	on := o.up && !o.closed && o.flying < o.config.MaxInFlight
	if on && !o.shown {
		on = o.flying <= o.config.MaxInFlight-1-o.config.MaxInFlight/4 // some room, rather than one at a time
	}
	changed := on != o.shown
	o.shown = on
	o.mu.Unlock()
	for changed {
		o.demand.Set(on)
		o.mu.Lock()
		changed, on = o.shown != on, o.shown
		o.mu.Unlock()
	}
}

// Close implements stream.Output.
func (o *Output) Close(ctx context.Context) {
	o.change(func() { o.closed = true })
	o.mu.Lock()
	client := o.client
	o.mu.Unlock()
	if client != nil {
		_ = client.Flush(ctx) // what is left is settled with an error
	}
	o.cancel()
	o.done.Wait()
	if client != nil {
		client.Close()
	}
	o.site.State.Enter(stream.Stopped)
}
