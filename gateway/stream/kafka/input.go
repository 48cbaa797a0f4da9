package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

// Bounds of fetching.
const (
	maxFetch    = 8 << 20 // bytes of one answer
	awayAfter   = 2 * time.Second
	handOver    = 5 * time.Second // for what is not settled when a partition moves
	againFirst  = time.Second
	againAtMost = 30 * time.Second
)

// An Input takes messages from topics. Without a consumer group it gets what is published
// from its start on, and commits nothing.
type Input struct {
	config *streams.BrokerInput
	site   *stream.Site
	limit  int // unsettled messages of a partition

	client  *kgo.Client
	flow    stream.Flow
	unwatch func()
	halted  context.Context // ends with Stop
	halt    context.CancelFunc
	quiet   chan struct{} // closed when nothing is passed on any more
	wake    chan struct{}
	paused  bool // nothing is fetched for want of demand; of run alone

	mu         sync.Mutex
	changed    sync.Cond // something was settled
	stopPoll   func()    // of the poll that waits; nil: none does
	refused    bool      // a message was not taken
	stands     bool      // a partition stops at a message
	partitions map[place]*partition
	held       []*record // fetched, and not passed on yet
	closed     bool
}

// place is a partition of a topic.
type place struct {
	topic  string
	number int32
}

// NewInput returns an input of a stream.
func NewInput(c *streams.BrokerInput, site *stream.Site) *Input {
	in := &Input{
		config: c, site: site, limit: max(1, min(c.CheckpointLimit, site.MaxInFlight)),
		quiet: make(chan struct{}), wake: make(chan struct{}, 1), partitions: make(map[place]*partition),
	}
	in.changed.L = &in.mu
	in.halted, in.halt = context.WithCancel(context.Background())
	site.State.Lag.Store(-1)
	site.State.Enter(stream.Starting)
	return in
}

// Start implements stream.Input.
func (in *Input) Start(to stream.Flow) {
	in.flow = to
	from := kgo.NewOffset().AtEnd()
	if in.config.ConsumerGroup != "" && in.config.StartFromOldest {
		from = kgo.NewOffset().AtStart()
	}
	opts := append(options(&in.config.Servers, in.site, &hooks{state: in.site.State}), kgo.ConsumeTopics(in.config.Topics...), kgo.ConsumeResetOffset(from), kgo.FetchMaxBytes(maxFetch))
	if in.config.ConsumerGroup != "" {
		opts = append(opts, kgo.ConsumerGroup(in.config.ConsumerGroup), kgo.AutoCommitMarks(), kgo.AutoCommitInterval(in.config.CommitPeriod),
			kgo.BlockRebalanceOnPoll(), kgo.OnPartitionsRevoked(in.revoked), kgo.OnPartitionsLost(in.lost))
	}
	opts = append(opts, balancing(in.config)...)
	var err error
	if in.client, err = kgo.NewClient(opts...); err != nil { // the addresses were checked when the definition was
		in.site.State.Fail(stream.Failf(stream.Permanent, "%w", err))
		in.site.State.Enter(stream.Failing)
		close(in.quiet)
		return
	}
	in.unwatch = to.Demand().Watch(func(bool) { in.look() })
	go in.run()
}

// balancing returns the options that only data graphs set.
func balancing(c *streams.BrokerInput) (opts []kgo.Opt) {
	if c.OnlyCommitted {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	switch {
	case c.ConsumerGroup == "":
	case c.Balance == "range":
		opts = append(opts, kgo.Balancers(kgo.RangeBalancer()))
	case c.Balance == "roundrobin":
		opts = append(opts, kgo.Balancers(kgo.RoundRobinBalancer()))
	case c.Balance == "sticky":
		opts = append(opts, kgo.Balancers(kgo.StickyBalancer()))
	}
	return opts
}

// look has run look at the demand, and at what may be passed on.
func (in *Input) look() {
	in.mu.Lock()
	if in.stopPoll != nil {
		in.stopPoll()
	}
	in.mu.Unlock()
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// run fetches until Stop.
func (in *Input) run() {
	defer close(in.quiet)
	for in.halted.Err() == nil {
		if !in.passHeld() || !in.flow.Demand().On() {
			in.rest()
			continue
		}
		in.resume()
		in.fetch()
	}
}

// fetch asks for messages once, and passes them on.
func (in *Input) fetch() {
	ctx, cancel := context.WithCancel(in.halted)
	defer cancel()
	in.mu.Lock()
	in.stopPoll = cancel
	in.mu.Unlock()
	fetched := in.client.PollRecords(ctx, in.limit)
	defer in.client.AllowRebalance() // what is not settled is waited for when a partition moves
	failed := false
	fetched.EachError(func(topic string, number int32, err error) {
		if !errors.Is(err, context.Canceled) {
			failed = true
			in.site.State.Fail(fmt.Errorf("topic %s, partition %d: %w", topic, number, err))
		}
	})
	in.mu.Lock()
	in.stopPoll = nil
	fetched.EachPartition(func(p kgo.FetchTopicPartition) { in.keep(&p) })
	in.measure()
	stands := in.stands
	in.mu.Unlock()
	switch {
	case stands:
	case failed:
		in.site.State.Enter(stream.Reconnecting)
	default:
		in.site.State.Enter(stream.Running)
	}
	in.passHeld()
}

// keep takes what was fetched of a partition. It needs mu.
func (in *Input) keep(f *kgo.FetchTopicPartition) {
	if f.Err != nil {
		return
	}
	at := place{f.Topic, f.Partition}
	p := in.partitions[at]
	if p == nil {
		p = &partition{place: at, done: f.HighWatermark}
		in.partitions[at] = p
	}
	p.end = f.HighWatermark
	for _, r := range f.Records {
		in.held = append(in.held, p.add(r))
	}
	if len(p.open) >= in.limit && !p.full {
		p.full = true
		in.client.PauseFetchPartitions(map[string][]int32{at.topic: {at.number}})
	}
}

// measure sets the lag. It needs mu.
func (in *Input) measure() {
	lag := int64(0)
	for _, p := range in.partitions {
		lag += max(0, p.end-p.next())
	}
	in.site.State.Lag.Store(lag)
}

// passHeld passes on what was fetched, and reports whether nothing is left of it.
func (in *Input) passHeld() bool {
	for in.halted.Err() == nil {
		in.mu.Lock()
		if len(in.held) == 0 {
			in.mu.Unlock()
			return true
		}
		r := in.held[0]
		in.mu.Unlock()
		if !r.of.gone.Load() && !in.pass(r) {
			return false
		}
		in.mu.Lock()
		if len(in.held) > 0 && in.held[0] == r { // lost may have dropped it
			in.held[0] = nil
			in.held = in.held[1:]
		}
		in.mu.Unlock()
	}
	return false
}

// pass passes a record on, and reports whether it was taken.
func (in *Input) pass(r *record) bool {
	if !in.flow.Demand().On() {
		return false
	}
	m := messageOf(r.Record)
	m.Attempt = r.tries + 1
	in.mu.Lock()
	r.flying = true
	in.mu.Unlock()
	if !in.flow.Take(m, func(err error) { in.settled(r, err) }) {
		in.mu.Lock()
		r.flying, in.refused = false, true
		in.changed.Broadcast()
		in.mu.Unlock()
		return false
	}
	in.site.State.Messages.Add(1)
	in.site.State.Bytes.Add(uint64(len(m.Body)))
	if m.Attempt > 1 {
		in.site.State.Again.Add(1)
	}
	return true
}

// messageOf returns the message of a record.
func messageOf(r *kgo.Record) *stream.Message {
	m := &stream.Message{Body: r.Value, Key: r.Key, At: time.Now(), Attempt: 1}
	carried := stream.NewCarrier()
	for _, h := range r.Headers {
		if h.Key == idHeader {
			m.ID = string(h.Value)
		} else if name, ours := strings.CutPrefix(h.Key, metaHeader); ours {
			carried.Add(name, string(h.Value))
		}
	}
	if m.ID == "" {
		m.ID = fmt.Sprintf("%s-%d-%d", r.Topic, r.Partition, r.Offset)
	}
	m.Meta = carried.Meta()
	return m
}

// settled notes the end of a message. One that failed is passed on again after a pause,
// unless nothing would come of that: then its partition stops.
func (in *Input) settled(r *record, err error) {
	in.mu.Lock()
	if in.refused {
		in.refused = false
		defer in.look() // there may be room
	}
	defer in.mu.Unlock()
	p := r.of
	r.flying = false
	switch {
	case p.gone.Load() || in.closed:
	case err == nil:
		if last := p.settle(r); last != nil && in.config.ConsumerGroup != "" {
			in.client.MarkCommitRecords(last)
		}
		if p.full && !p.stands && len(p.open) < in.limit {
			p.full = false
			in.client.ResumeFetchPartitions(map[string][]int32{p.topic: {p.number}})
		}
		if len(p.open) == 0 {
			in.measure()
		}
	case in.halted.Err() != nil: // it is delivered again when the stream runs again
	case stream.ClassOf(err) == stream.Permanent || stream.ClassOf(err) == stream.Refused:
		in.stuck(p, r, err)
	default:
		in.later(r)
	}
	in.changed.Broadcast()
}

// stuck stops a partition whose next message cannot be passed on: it is never skipped
// without being kept elsewhere. It needs mu.
func (in *Input) stuck(p *partition, r *record, err error) {
	in.stands, p.stands = true, true
	in.client.PauseFetchPartitions(map[string][]int32{p.topic: {p.number}})
	in.site.State.Fail(stream.Failf(stream.Permanent, "topic %s, partition %d stops at offset %d; give the stream a dead_letter: %w", p.topic, p.number, r.Offset, err))
	in.site.State.Enter(stream.Failing)
	in.site.Log.Error("a partition of a stream stops at a message that cannot be passed on", "stream", in.site.Stream, "input", in.site.Label,
		"topic", p.topic, "partition", p.number, "offset", r.Offset, "err", err)
}

// later passes a record on again after a pause. It needs mu.
func (in *Input) later(r *record) {
	pause := min(againFirst<<min(r.tries, 10), againAtMost)
	r.tries++
	time.AfterFunc(pause, func() {
		in.mu.Lock()
		in.held = append(in.held, r)
		in.mu.Unlock()
		in.look()
	})
}

// rest waits until a message may be taken. Without demand for a while nothing is fetched.
func (in *Input) rest() {
	if !in.flow.Demand().On() {
		in.site.State.Enter(stream.Waiting)
	}
	pause := time.NewTimer(awayAfter)
	defer pause.Stop()
	select {
	case <-in.wake:
	case <-in.halted.Done():
	case <-pause.C:
		if !in.paused {
			in.paused = true
			in.client.PauseFetchTopics(in.config.Topics...)
		}
	}
}

// resume has messages fetched again.
func (in *Input) resume() {
	if in.paused {
		in.paused = false
		in.client.ResumeFetchTopics(in.config.Topics...)
	}
}

// Stop implements stream.Input.
func (in *Input) Stop(ctx context.Context) {
	in.halt()
	if in.flow == nil {
		return
	}
	in.site.State.Enter(stream.Draining)
	select {
	case <-in.quiet:
	case <-ctx.Done():
	}
}

// Close implements stream.Input.
func (in *Input) Close() {
	in.halt()
	if in.client != nil {
		in.unwatch()
		<-in.quiet
		if in.config.ConsumerGroup != "" {
			ctx, cancel := context.WithTimeout(context.Background(), handOver)
			if err := in.client.CommitMarkedOffsets(ctx); err != nil {
				in.site.State.Fail(err)
			}
			cancel()
		}
		in.mu.Lock()
		in.closed = true
		in.held = nil
		in.changed.Broadcast()
		in.mu.Unlock()
		in.client.CloseAllowingRebalance()
	}
	in.site.State.Enter(stream.Stopped)
}
