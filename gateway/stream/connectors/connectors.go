// Package connectors makes the inputs and outputs that definitions describe, and has what
// they share in a gateway: connections to message brokers, and the broker inside it.
package connectors

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/stream/amqp"
	"github.com/sluicegate/sluice/gateway/stream/endpoint"
	"github.com/sluicegate/sluice/gateway/stream/httpcall"
	"github.com/sluicegate/sluice/gateway/stream/httpclient"
	"github.com/sluicegate/sluice/gateway/stream/inproc"
	"github.com/sluicegate/sluice/gateway/stream/kafka"
	"github.com/sluicegate/sluice/gateway/stream/portalhook"
	"github.com/sluicegate/sluice/gateway/stream/subscribers"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

// Options configure a Set.
type Options struct {
	Dir  string        // of the journal of the in-process broker; "": its messages are kept in memory
	Kept int           // bytes that outputs with resume keep of what they have read
	Dial stream.Dialer // guarded
	Log  *slog.Logger
}

// A Set makes connectors. It opens nothing before the first connector needs it. It is safe
// for concurrent use.
type Set struct {
	opts Options
	kept endpoint.Memory // of outputs with resume

	mu     sync.Mutex
	http   *httpcall.Pool // nil: nothing was called by HTTP
	amqp   *amqp.Pool     // nil: no connector needs it
	inproc *inproc.Broker // likewise
}

// New returns a set.
func New(o Options) *Set {
	return &Set{opts: o, kept: endpoint.Memory{Limit: int64(o.Kept)}}
}

// Serves reports whether a connector serves requests to its API.
func Serves(c *streams.Connector) bool {
	return c.HTTPServerInput != nil || c.HTTPServerOutput != nil || c.WebSocket != nil || c.Subscribers != nil
}

// Input makes an input. Those that serve requests have no effect before they are started, and
// do not fail for reasons that may pass.
func (s *Set) Input(c *streams.Connector, site *stream.Site) (stream.Input, error) {
	switch {
	case c.HTTPServerInput != nil:
		return input(endpoint.NewInput(c.HTTPServerInput, site))
	case c.WebSocket != nil:
		return endpoint.NewSocketInput(c.WebSocket, site), nil
	case c.HTTPPoll != nil:
		return input(httpclient.NewInput(c.HTTPPoll, site))
	case c.BrokerInput == nil:
	case c.BrokerInput.Scheme == streams.AMQP:
		return input(s.brokers().NewInput(c.BrokerInput, site))
	case c.BrokerInput.Scheme == streams.Kafka:
		return kafka.NewInput(c.BrokerInput, site), nil
	default:
		return s.inside().NewInput(c.BrokerInput, site)
	}
	return nil, errUnknown
}

// Output makes an output, like Input.
func (s *Set) Output(c *streams.Connector, site *stream.Site) (stream.Output, error) {
	switch {
	case c.HTTPServerOutput != nil && c.HTTPServerOutput.Resume:
		return output(endpoint.NewReplay(c.HTTPServerOutput, site, &s.kept))
	case c.HTTPServerOutput != nil:
		return output(endpoint.NewOutput(c.HTTPServerOutput, site))
	case c.WebSocket != nil:
		return endpoint.NewSocketOutput(c.WebSocket, site), nil
	case c.HTTPSend != nil:
		return output(httpclient.NewOutput(c.HTTPSend, site))
	case c.PortalWebhook != nil:
		return output(portalhook.NewOutput(c.PortalWebhook, site))
	case c.Subscribers != nil:
		return subscribers.New(site), nil
	case c.BrokerOutput == nil:
	case c.BrokerOutput.Scheme == streams.AMQP:
		return output(s.brokers().NewOutput(c.BrokerOutput, site))
	case c.BrokerOutput.Scheme == streams.Kafka:
		return output(kafka.NewOutput(c.BrokerOutput, site))
	default:
		return s.inside().NewOutput(c.BrokerOutput, site)
	}
	return nil, errUnknown
}

// Log makes the log of an input, for outputs whose clients read it themselves.
func (s *Set) Log(c *streams.BrokerInput, site *stream.Site) (stream.Log, error) {
	if c.Scheme == streams.Kafka {
		return kafka.NewLog(c, site), nil
	}
	log, err := s.brokers().NewLog(c, site)
	if err != nil {
		return nil, err
	}
	return log, nil
}

var errUnknown = errors.New("the connector is unknown")

// input returns what made an input, without a nil pointer in the interface.
func input[T stream.Input](in T, err error) (stream.Input, error) {
	if err != nil {
		return nil, err
	}
	return in, nil
}

// output is input for outputs.
func output[T stream.Output](out T, err error) (stream.Output, error) {
	if err != nil {
		return nil, err
	}
	return out, nil
}

// HTTP is that of stream.Site.
func (s *Set) HTTP(skipVerify bool) http.RoundTripper {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http == nil {
		s.http = httpcall.NewPool(s.opts.Dial)
	}
	return s.http.Transport(skipVerify)
}

// brokers returns the connections to AMQP brokers.
func (s *Set) brokers() *amqp.Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.amqp == nil {
		s.amqp = amqp.NewPool()
	}
	return s.amqp
}

// inside returns the broker inside the gateway.
func (s *Set) inside() *inproc.Broker {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inproc == nil {
		s.inproc = inproc.New(inproc.Options{Dir: s.opts.Dir, Log: s.opts.Log})
	}
	return s.inproc
}

// Close closes what the connectors share. They are closed before.
func (s *Set) Close(ctx context.Context) error {
	s.mu.Lock()
	pool, broker, calls := s.amqp, s.inproc, s.http
	s.mu.Unlock()
	if calls != nil {
		calls.Close()
	}
	if pool != nil {
		pool.Close(ctx)
	}
	if broker != nil {
		return broker.Close()
	}
	return nil
}
