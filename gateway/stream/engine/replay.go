package engine

import (
	"context"
	"runtime/debug"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/sleep"
)

// keptShare is which part of the memory for messages the rings of outputs with resume have.
const keptShare = 4

// A replay is the input of a stream whose output reads the source itself, for each client
// from its own position.
type replay struct {
	run *running
	log stream.Log
	out stream.LogReader
}

// logReader returns the output that reads the source itself, nil if there is none.
func (r *running) logReader() stream.LogReader {
	for _, c := range r.connectors {
		if out, ok := c.out.(stream.LogReader); ok {
			return out
		}
	}
	return nil
}

// Start implements stream.Input.
func (p *replay) Start(stream.Flow) { p.out.Follow(p.log, p.run.become) }

// Stop implements stream.Input. Clients still get what was read.
func (p *replay) Stop(context.Context) { p.out.Unfollow() }

// Close implements stream.Input.
func (*replay) Close() {}

// become returns what the processors make of a message. One that they refuse is tried as
// often as any other, and left out then: the log keeps it.
func (r *running) become(ctx context.Context, m *stream.Message) ([]*stream.Message, error) {
	for tries := 1; ; tries++ {
		all, err := r.becomeOnce(m)
		if err == nil {
			r.passed.Add(1)
			return all, nil
		}
		again := stream.ClassOf(err) != stream.Permanent && (r.conf.Retry.MaxAttempts == 0 || tries < r.conf.Retry.MaxAttempts)
		if !again {
			r.refused.Add(1)
			r.log.Warn("a message is left out, because the processors refuse it", "message", m.ID, "err", err)
			return nil, nil
		}
		if err := sleep.For(ctx, pause(&r.conf.Retry, tries, err)); err != nil {
			return nil, err
		}
		m = repeated(m)
	}
}

// becomeOnce is become without a second try. A fault in a processor must not end the process.
func (r *running) becomeOnce(m *stream.Message) (all []*stream.Message, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			r.log.Error("a message made the stream fail", "message", m.ID, "panic", fault, "stack", string(debug.Stack()))
			all, err = nil, stream.Failf(stream.Permanent, "the message made the stream fail")
		}
	}()
	return r.chain.Become(m)
}
