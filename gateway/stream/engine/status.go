package engine

import (
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/stream/process"
	"github.com/sluicegate/sluice/internal/streamstate"
)

// all returns the streams that run, and those that drain.
func (e *Engine) all() []*running {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]*running, 0, len(e.running)+len(e.left))
	for _, r := range e.running {
		list = append(list, r)
	}
	for r := range e.left {
		list = append(list, r)
	}
	return list
}

// Streams implements streamstate.Source.
func (e *Engine) Streams(f streamstate.Filter) []streamstate.Stream {
	if e == nil {
		return nil
	}
	var list []streamstate.Stream
	for _, r := range e.all() {
		if (f.Org == "" || f.Org == r.org) && (f.API == "" || f.API == r.api) {
			list = append(list, r.status(f.Nodes))
		}
	}
	return list
}

// status returns the state of the stream, with its connectors and processors if nodes is
// set. While it runs, its phase is the worst of its connectors.
func (r *running) status(nodes bool) streamstate.Stream {
	r.mu.Lock()
	s := streamstate.Stream{API: r.api, Org: r.org, Name: r.conf.Name, Phase: streamstate.Phase(r.phase), Since: r.since}
	r.mu.Unlock()
	settled := s.Phase == streamstate.Draining || s.Phase == streamstate.Stopped
	for _, c := range r.connectors {
		n := nodeOf(c)
		switch c.side {
		case sideInput:
			s.MessagesIn += n.Messages
		case sideOutput:
			s.MessagesOut += n.Messages
		}
		if worse := streamstate.Worse(s.Phase, n.Phase); worse != s.Phase && !settled {
			s.Phase, s.Since = worse, *n.Since
		}
		if n.LastErrorAt != nil && (s.LastErrorAt == nil || n.LastErrorAt.After(*s.LastErrorAt)) {
			s.LastError, s.LastErrorAt = n.LastError, n.LastErrorAt
		}
		if nodes {
			s.Nodes = append(s.Nodes, n)
		}
	}
	if nodes {
		for _, step := range r.chain.Steps() {
			s.Nodes = append(s.Nodes, stepNode(step))
		}
	}
	have, bytes, oldest := r.room.load()
	s.InFlight, s.InFlightBytes = have, int64(bytes)
	if !oldest.IsZero() {
		s.OldestUnsettled = time.Since(oldest).Seconds()
	}
	return s
}

func nodeOf(c *connector) streamstate.Node {
	state := c.site.State
	phase, since := state.Phase()
	n := streamstate.Node{
		Path: c.conf.Path, Label: c.site.Label, Kind: c.conf.Kind(), Side: streamstate.Side(c.side), Phase: streamstate.Phase(phase), Since: &since,
		Messages: state.Messages.Load(), Bytes: state.Bytes.Load(), Attempts: state.Attempts.Load(), Again: state.Again.Load(),
		Clients: state.Clients.Load(), Dropped: state.Dropped.Load(), Lag: state.Lag.Load(),
		Errors: streamstate.Errors{
			Transient: state.Errors[stream.Transient].Load(), Unknown: state.Errors[stream.Unknown].Load(),
			Permanent: state.Errors[stream.Permanent].Load(), Refused: state.Errors[stream.Refused].Load(),
		},
	}
	if at, err := state.Last(); err != nil {
		n.LastError, n.LastErrorAt = err.Error(), &at
	}
	return n
}

func stepNode(s *process.Step) streamstate.Node {
	count, sum, _ := s.Seconds()
	n := streamstate.Node{
		Path: s.Path, Label: s.Label, Kind: s.Kind, Side: streamstate.Processor, Messages: count,
		Errors: streamstate.Errors{Refused: s.Errors()}, Lag: -1,
	}
	if count > 0 {
		n.MeanSeconds = sum / float64(count)
	}
	return n
}
