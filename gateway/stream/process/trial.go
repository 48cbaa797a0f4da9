package process

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/streamstate"
)

// Try runs the processors of a stream on the message of a trial, and ends the calls that
// they make when ctx ends. A script cannot be ended. The error is of processors that do not
// compile, or ctx's.
func Try(ctx context.Context, of *streams.Stream, site *stream.Site, t *streamstate.Trial) (*streamstate.Tried, error) {
	w := &trial{calls: t.Calls, shower: streamstate.NewShower()}
	chain, err := compile(of.Processors, site, w)
	if err != nil {
		return nil, err
	}
	m := &stream.Message{ID: stream.NewID(), Body: t.Message(), At: time.Now(), Attempt: 1, Reply: new(stream.Reply)}
	for name, value := range t.Metadata {
		m.Meta = append(m.Meta, stream.Meta{Name: strings.ToLower(name), Value: value})
	}
	to := Destination{Take: w.take}
	if of.DeadLetter != nil {
		to.Bury = w.bury
	}
	chain.Start(to)
	stop := context.AfterFunc(ctx, chain.cancel)
	defer stop()
	defer chain.Close()
	settled := make(chan error, 1)
	chain.Take(m, func(err error) { settled <- err })
	chain.Flush()
	select {
	case err = <-settled:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return w.tried(m, err), nil
}

// trial notes what becomes of a message.
type trial struct {
	calls bool // http processors call their servers

	mu     sync.Mutex
	shower *streamstate.Shower
}

// ran notes a run. it is the message after it, or the one that was refused.
func (t *trial) ran(s *step, it item, to node, err error, took time.Duration) {
	doc := it.document()
	body, also := doc.Bytes()
	meta := make(map[string]string)
	doc.EachMeta(func(name, value string) { meta[name] = value })
	t.mu.Lock()
	defer t.mu.Unlock()
	one := &streamstate.TriedStep{
		Path: s.Path, Label: s.Label, Kind: s.Kind, Depth: strings.Count(s.Path, "processors[") - 1,
		Seconds: took.Seconds(), TriedMessage: *t.shower.Message(body, meta),
	}
	switch {
	case err != nil:
		one.Error = err.Error()
	case also != nil:
		one.Error = also.Error()
	default:
		_, one.Filtered = to.(dropped)
		_, one.Skipped = s.work.(*skipped)
	}
	t.shower.Step(one)
}

func (t *trial) shown(m *stream.Message) *streamstate.TriedMessage {
	meta := make(map[string]string, len(m.Meta))
	for _, one := range m.Meta {
		meta[one.Name] = one.Value
	}
	return t.shower.Message(m.Body, meta)
}

func (t *trial) take(m *stream.Message, settle stream.Settle) {
	t.mu.Lock()
	t.shower.Output(t.shown(m))
	t.mu.Unlock()
	settle(nil)
}

func (t *trial) bury(m *stream.Message, reason string, settle stream.Settle) {
	t.mu.Lock()
	one := t.shown(m)
	one.Reason = reason
	t.shower.Buried(one)
	t.mu.Unlock()
	settle(nil)
}

func (t *trial) tried(m *stream.Message, err error) *streamstate.Tried {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.shower.Error = err.Error()
	}
	if reply := m.Reply.Message(); reply != nil {
		t.shower.Reply = t.shown(reply)
	}
	return &t.shower.Tried
}

// skipped stands for an http processor that does not call.
type skipped struct{ next node }

func (w *skipped) run(*item) (node, error) { return w.next, nil }
