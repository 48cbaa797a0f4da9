package engine

import (
	"fmt"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/stream/connectors"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

// A connector is an input or an output of a stream.
type connector struct {
	conf *streams.Connector
	side string // input, output or dead_letter
	site *stream.Site
	in   stream.Input  // nil: it is an output, or was not made yet
	out  stream.Output // nil: it is an input, or was not made yet
}

// The sides of connectors.
const (
	sideInput  = "input"
	sideOutput = "output"
	sideDead   = "dead_letter"
)

// survey lists the connectors below a connector, and makes those that serve requests: they do
// nothing before they are started.
func (r *running) survey(c *streams.Connector, side string) error {
	below := c.Inputs
	if c.Outputs != nil {
		below = c.Outputs.Outputs
	}
	if below != nil {
		for i := range below {
			if err := r.survey(&below[i], side); err != nil {
				return err
			}
		}
		return nil
	}
	made := &connector{conf: c, side: side, site: r.siteOf(c.Label, c.Path)}
	r.connectors = append(r.connectors, made)
	if connectors.Serves(c) {
		return r.make(made)
	}
	return nil
}

func (r *running) siteOf(label, path string) *stream.Site {
	if label == "" {
		label = path
	}
	return &stream.Site{
		Org: r.org, API: r.api, Stream: r.conf.Name, Label: label,
		MaxMessageBytes: r.conf.MaxMessageBytes, MaxInFlight: r.conf.MaxInFlight,
		Log:   r.log,
		State: new(stream.State), Dial: r.engine.dial, HTTP: r.engine.connectors.HTTP,
	}
}

// routes returns what the connectors serve.
func (r *running) routes() []served {
	var all []served
	joined := make(map[*connector]bool)
	for _, c := range r.connectors {
		joiner, ok := c.in.(stream.Joiner)
		if !ok {
			continue
		}
		for _, other := range r.connectors {
			if _, ok := other.out.(stream.Server); ok && joiner.Join(other.out) {
				joined[other] = true
			}
		}
	}
	for _, c := range r.connectors {
		server, ok := c.in.(stream.Server)
		if !ok {
			server, ok = c.out.(stream.Server)
		}
		if !ok {
			continue
		}
		for _, route := range server.Routes() {
			if !joined[c] || !route.WebSocket {
				all = append(all, served{route, r, c})
			}
		}
	}
	return all
}

// connect makes the connectors that survey did not make. What one of them cannot be made
// for may mend by itself, such as a folder that another process holds.
func (r *running) connect() error {
	for _, c := range r.connectors {
		if c.in != nil || c.out != nil {
			continue
		}
		if err := r.make(c); err != nil {
			c.site.State.Fail(err)
			c.site.State.Enter(stream.Failing)
			return err
		}
	}
	return nil
}

func (r *running) make(c *connector) (err error) {
	if out := r.logReader(); c.side == sideInput && out != nil && c.conf.BrokerInput != nil {
		var log stream.Log
		log, err = r.engine.connectors.Log(c.conf.BrokerInput, c.site)
		c.in = &replay{r, log, out}
	} else if c.side == sideInput {
		c.in, err = r.engine.connectors.Input(c.conf, c.site)
	} else {
		c.out, err = r.engine.connectors.Output(c.conf, c.site)
	}
	if err != nil {
		c.in, c.out = nil, nil
		return fmt.Errorf("%s: %w", c.conf.Path, err)
	}
	return nil
}

// sinkOf returns a connector, or what is below it, as a sink.
func (r *running) sinkOf(c *streams.Connector) sink {
	if c.Outputs == nil {
		for _, made := range r.connectors {
			if made.conf == c {
				return &leaf{made, made.out}
			}
		}
	}
	below := make([]sink, len(c.Outputs.Outputs))
	demands := make([]*stream.Demand, len(below))
	for i := range below {
		one := &c.Outputs.Outputs[i]
		if c.Outputs.Pattern == streams.FanOut {
			below[i] = r.reliable(one, false)
		} else {
			below[i] = r.sinkOf(one)
		}
		demands[i] = below[i].demand()
	}
	switch c.Outputs.Pattern {
	case streams.FanOut:
		return &all{sinks: below, level: stream.All(demands...)}
	case streams.FanOutFailFast:
		return &all{sinks: below, level: stream.All(demands...), failFast: true}
	case streams.FanOutSequential:
		return &inTurn{below, stream.All(demands...)}
	}
	return &one{sinks: below, level: stream.Any(demands...), turns: c.Outputs.Pattern == streams.RoundRobin}
}

// reliable returns a sink that tries messages again and buries those that stay. asks has
// senders that wait get the error rather than the dead letter the message.
func (r *running) reliable(c *streams.Connector, asks bool) sink {
	s := r.sinkOf(c)
	switch {
	case c.Outputs == nil:
	case c.Outputs.Pattern == streams.FanOut:
		return s // each of its outputs is reliable by itself
	case c.Outputs.Pattern == streams.FanOutFailFast:
		return &burying{sink: s, run: r, onlyPermanent: true, asks: asks}
	}
	return &burying{sink: &retrying{sink: s, run: r}, run: r, asks: asks}
}
