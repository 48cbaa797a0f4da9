package amqp

import (
	"context"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/sleep"
)

// An Input takes messages from queues, one for each topic. A message is acknowledged when
// it is settled without an error.
type Input struct {
	config *streams.BrokerInput
	site   *stream.Site
	group  *group
	queues []queue // of one entry per topic
	logs   []queue // that are declared, and not read here
	wake   chan struct{}
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	halted context.Context // ends with Stop
	halt   context.CancelFunc
	quiet  chan struct{} // closed when nothing is passed on any more
	done   chan struct{} // closed when run has returned

	flow      stream.Flow
	offsets   []int64 // of each queue that keeps messages: where to go on; -1: not begun
	unwatch   func()
	quietOnce sync.Once
	shown     sync.Mutex
	current   []string // names of the queues of this epoch; with shown
}

// NewInput returns an input of a stream. Its error is about a topic that is too long.
func (p *Pool) NewInput(c *streams.BrokerInput, site *stream.Site) (*Input, error) {
	in := &Input{
		config: c, site: site, group: p.group(&c.Servers, false), wake: make(chan struct{}, 1),
		quiet: make(chan struct{}), done: make(chan struct{}),
	}
	for _, topic := range c.Topics {
		q, err := queueOf(c, topic)
		if err != nil {
			return nil, err
		}
		in.queues, in.offsets = append(in.queues, q), append(in.offsets, -1)
		if c.Retain != nil && q.kind != log {
			q, err := logOf(c, topic)
			if err != nil {
				return nil, err
			}
			in.logs = append(in.logs, q)
		}
	}
	in.ctx, in.cancel = context.WithCancel(context.Background())
	in.halted, in.halt = context.WithCancel(in.ctx)
	site.State.Lag.Store(-1)
	site.State.Enter(stream.Starting)
	return in, nil
}

// Start implements stream.Input.
func (in *Input) Start(to stream.Flow) {
	in.flow = to
	in.unwatch = to.Demand().Watch(func(bool) {
		select {
		case in.wake <- struct{}{}:
		default:
		}
	})
	go in.run()
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
	in.cancel()
	if in.flow != nil {
		in.unwatch()
		<-in.done
	}
	in.site.State.Enter(stream.Stopped)
}

// prefetch returns how many messages the broker sends ahead for each queue.
func (in *Input) prefetch() int {
	n := max(1, min(in.config.CheckpointLimit, in.site.MaxInFlight))
	return (n + len(in.queues) - 1) / len(in.queues)
}

// run goes from epoch to epoch until Close, and begins none after Stop.
func (in *Input) run() {
	defer close(in.done)
	defer in.hush()
	p := pacer{timing: &in.group.pool.timing}
	for in.halted.Err() == nil {
		in.site.State.Attempts.Add(1)
		began := time.Now()
		err, connected := in.consume()
		if in.halted.Err() != nil {
			return
		}
		pause, failing := p.next(err, connected, time.Since(began))
		in.failed(err, failing)
		_ = sleep.For(in.halted, pause) // it ends early with the context
	}
}

func (in *Input) failed(err error, failing bool) {
	in.site.State.Fail(err)
	phase := stream.Reconnecting
	if failing {
		phase = stream.Failing
	}
	if was, _ := in.site.State.Phase(); failing && was != phase {
		in.site.Log.Error("the message broker refuses a stream", "stream", in.site.Stream, "input", in.site.Label, "error", err)
	}
	in.site.State.Enter(phase)
}

// hush notes that nothing is passed on any more.
func (in *Input) hush() { in.quietOnce.Do(func() { close(in.quiet) }) }

// measure sets the lag. The channel is closed after it if a queue does not exist.
func (in *Input) measure(ch *amqp.Channel) {
	in.shown.Lock()
	names := in.current
	in.shown.Unlock()
	if len(names) == 0 {
		return
	}
	total := 0
	for _, name := range names {
		q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		if err != nil {
			in.site.State.Lag.Store(-1)
			return
		}
		total += q.Messages
	}
	in.site.State.Lag.Store(int64(total))
}

// show says which queues are measured. Those that keep messages are not: all that they
// keep counts as ready.
func (in *Input) show(all []queue) {
	var names []string
	for i := range all {
		if all[i].kind != log {
			names = append(names, all[i].name)
		}
	}
	in.shown.Lock()
	in.current = names
	in.shown.Unlock()
}
