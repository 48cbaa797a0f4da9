package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/sleep"
)

// Bounds of reading a log.
const (
	maxPoll    = 256 // messages of one poll
	growth     = time.Minute
	readFirst  = 200 * time.Millisecond // between two attempts; it doubles
	readAtMost = 15 * time.Second
	idMargin   = 16 // bytes that ids may grow by while a topic is read
)

// A Log is a topic, read by clients at their own positions, outside of any group. The mark of
// a position is of the topic, which gets another one when it is deleted and created again.
type Log struct {
	config *streams.BrokerInput
	site   *stream.Site
	growth time.Duration // between two looks for new partitions
}

// NewLog returns the log of the only topic of c.
func NewLog(c *streams.BrokerInput, site *stream.Site) *Log {
	site.State.Lag.Store(-1)
	site.State.Enter(stream.Starting)
	return &Log{config: c, site: site, growth: growth}
}

// reading is one call of Read.
type reading struct {
	log    *Log
	client *kgo.Client // of this epoch
	to     stream.Reader
	leads  bool             // it keeps the phase of the state
	at     *stream.Position // where it goes on; nil: now
	begun  bool             // Begin was called
	looked time.Time        // for new partitions
}

// takeError is an error of the reader.
type takeError struct{ error }

// Read implements stream.Log.
func (l *Log) Read(ctx context.Context, from *stream.Position, to stream.Reader) error {
	r := &reading{log: l, to: to, leads: from == nil}
	if from != nil {
		r.at = &stream.Position{Next: slices.Clone(from.Next), Mark: from.Mark}
	}
	for pause := readFirst; ctx.Err() == nil; pause = min(2*pause, readAtMost) {
		began := time.Now()
		err := r.epoch(ctx)
		if taken, ok := errors.AsType[*takeError](err); ok {
			return taken.error
		}
		if ctx.Err() != nil {
			break
		}
		l.site.State.Fail(err)
		if r.leads {
			l.site.State.Enter(phaseAfter(err))
		}
		if time.Since(began) > readAtMost {
			pause = readFirst
		}
		_ = sleep.For(ctx, pause/2+rand.N(pause/2)) // it ends early with the context
	}
	return ctx.Err()
}

func phaseAfter(err error) stream.Phase {
	if stream.ClassOf(err) == stream.Permanent {
		return stream.Failing
	}
	return stream.Reconnecting
}

// epoch reads until an error.
func (r *reading) epoch(ctx context.Context) (err error) {
	opts := append(options(&r.log.config.Servers, r.log.site, &hooks{state: r.log.site.State}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchMaxBytes(maxFetch),
		kgo.DisableFetchSessions()) // the library ends them while they are in use
	if r.client, err = kgo.NewClient(opts...); err != nil { // the addresses were checked when the definition was
		return stream.Failf(stream.Permanent, "%w", err)
	}
	defer r.client.Close()
	b, err := r.bounds(ctx)
	if err != nil {
		return err
	}
	gap := r.settle(b)
	if id := r.log.ID(&stream.Position{Next: b.end, Mark: b.mark}); id == "" || len(id) > stream.MaxPositionID-idMargin {
		return stream.Failf(stream.Permanent, "topic %s has %d partitions: a position in all of them does not fit into the %d bytes of an event id", r.topic(), len(b.end), stream.MaxPositionID)
	}
	if gap || !r.begun {
		r.begun = true
		if err := r.to.Begin(&stream.Position{Next: slices.Clone(r.at.Next), Mark: r.at.Mark}, gap); err != nil {
			return &takeError{err}
		}
	}
	r.consume(0)
	if r.leads {
		r.log.site.State.Enter(stream.Running)
	}
	return r.pass(ctx)
}

func (r *reading) topic() string { return r.log.config.Topics[0] }

// settle makes the position one of the topic as it is, and reports whether messages behind
// it are missing.
func (r *reading) settle(b *bounds) (gap bool) {
	if r.at == nil {
		r.at = &stream.Position{Next: slices.Clone(b.end), Mark: b.mark}
		return false
	}
	gap = r.at.Mark != b.mark || len(r.at.Next) > len(b.end)
	for i, next := range r.at.Next {
		gap = gap || next < b.first[i] || next > b.end[i]
	}
	if gap {
		r.at = &stream.Position{Next: slices.Clone(b.first), Mark: b.mark}
		return true
	}
	r.at.Next = append(r.at.Next, b.first[len(r.at.Next):]...) // of partitions that are new
	return false
}

// consume has partitions from a number on fetched from where the position is.
func (r *reading) consume(from int) {
	offsets := make(map[int32]kgo.Offset)
	for i := from; i < len(r.at.Next); i++ {
		offsets[int32(i)] = kgo.NewOffset().At(r.at.Next[i])
	}
	r.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{r.topic(): offsets})
	r.looked = time.Now()
}

// pass passes messages on.
func (r *reading) pass(ctx context.Context) error {
	for {
		within, cancel := context.WithTimeout(ctx, r.log.growth)
		fetched := r.client.PollRecords(within, maxPoll)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for all := fetched.RecordIter(); !all.Done(); {
			if err := r.take(ctx, all.Next()); err != nil {
				return err
			}
		}
		for _, e := range fetched.Errors() {
			if !errors.Is(e.Err, context.DeadlineExceeded) {
				return fmt.Errorf("topic %s, partition %d: %w", e.Topic, e.Partition, e.Err)
			}
		}
		if time.Since(r.looked) >= r.log.growth {
			if err := r.grow(ctx); err != nil {
				return err
			}
		}
	}
}

func (r *reading) take(ctx context.Context, one *kgo.Record) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := &stream.Entry{Partition: int(one.Partition), Offset: one.Offset, Mark: r.at.Mark}
	r.at.Pass(e)
	site := r.log.site
	if n := len(one.Value); n > site.MaxMessageBytes {
		site.State.Fail(stream.Failf(stream.Permanent, "the message of topic %s, partition %d, offset %d has %d bytes, more than the %d of max_message_bytes", one.Topic, one.Partition, one.Offset, n, site.MaxMessageBytes))
		return nil
	}
	site.State.Messages.Add(1)
	site.State.Bytes.Add(uint64(len(one.Value)))
	e.Message = messageOf(one)
	if err := r.to.Take(e); err != nil {
		return &takeError{err}
	}
	return nil
}

// grow has partitions fetched that the topic has got.
func (r *reading) grow(ctx context.Context) error {
	b, err := r.bounds(ctx)
	if err != nil {
		return err
	}
	have := len(r.at.Next)
	if r.at.Mark != b.mark || have > len(b.end) {
		return fmt.Errorf("topic %s was created again", r.topic())
	}
	r.at.Next = append(r.at.Next, b.first[have:]...)
	r.consume(have)
	return nil
}

// bounds are where a topic begins and ends: an offset of each partition.
type bounds struct {
	first, end []int64
	mark       uint32
}

func (r *reading) bounds(ctx context.Context) (*bounds, error) {
	b, err := r.partitions(ctx)
	if err != nil {
		return nil, err
	}
	const first, end = -2, -1 // timestamps that stand for them
	if err := r.offsets(ctx, first, b.first); err != nil {
		return nil, err
	}
	return b, r.offsets(ctx, end, b.end)
}

// partitions returns the bounds of a topic without offsets.
func (r *reading) partitions(ctx context.Context) (*bounds, error) {
	ask := kmsg.NewPtrMetadataRequest()
	one := kmsg.NewMetadataRequestTopic()
	one.Topic = new(r.topic())
	ask.Topics = append(ask.Topics, one)
	got, err := ask.RequestWith(ctx, r.client)
	if err != nil {
		return nil, err
	}
	if len(got.Topics) != 1 {
		return nil, fmt.Errorf("topic %s: the broker says nothing about it", r.topic())
	}
	t := &got.Topics[0]
	if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
		return nil, fmt.Errorf("topic %s: %w", r.topic(), err)
	}
	n := len(t.Partitions)
	for i := range t.Partitions {
		if p := t.Partitions[i].Partition; p < 0 || int(p) >= n {
			return nil, fmt.Errorf("topic %s: partition %d of %d", r.topic(), p, n)
		}
	}
	return &bounds{make([]int64, n), make([]int64, n), markOf(t.TopicID)}, nil
}

// offsets asks for an offset of each partition.
func (r *reading) offsets(ctx context.Context, at int64, into []int64) error {
	ask := kmsg.NewPtrListOffsetsRequest()
	ask.ReplicaID = -1
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = r.topic()
	for i := range into {
		one := kmsg.NewListOffsetsRequestTopicPartition()
		one.Partition, one.Timestamp = int32(i), at
		topic.Partitions = append(topic.Partitions, one)
	}
	ask.Topics = append(ask.Topics, topic)
	got, err := ask.RequestWith(ctx, r.client)
	if err != nil {
		return err
	}
	answered := 0
	for i := range got.Topics {
		for _, p := range got.Topics[i].Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return fmt.Errorf("topic %s, partition %d: %w", r.topic(), p.Partition, err)
			}
			if p.Partition < 0 || int(p.Partition) >= len(into) {
				continue
			}
			into[p.Partition] = p.Offset
			answered++
		}
	}
	if answered != len(into) {
		return fmt.Errorf("topic %s: the broker knows offsets of %d of its %d partitions", r.topic(), answered, len(into))
	}
	return nil
}
