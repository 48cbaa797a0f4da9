package engine

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/stream/process"
	"github.com/sluicegate/sluice/internal/metrics"
	"github.com/sluicegate/sluice/internal/streamstate"
)

var (
	streamsRunning = metrics.Describe("streams", "Event streams that the gateway runs, by phase.", "phase")
	streamMessages = metrics.Describe("stream_messages_total", "Messages that a connector of an event stream took in or gave out.", "api", "stream", "connector", "side")
	streamEnds     = metrics.Describe("stream_ends_total", "Messages of an event stream by how they ended: passed (every output has it, or it was filtered), refused (by a processor), dead (in the dead letter), returned (to the source).", "api", "stream", "result")
	streamAttempts = metrics.Describe("stream_attempts_total", "Attempts of a connector of an event stream to connect, or of HTTP outputs to send.", "api", "stream", "connector", "side")
	streamErrors   = metrics.Describe("stream_errors_total", "Errors of a connector of an event stream, by class: transient and unknown ones are tried again.", "api", "stream", "connector", "side", "class")
	streamAgain    = metrics.Describe("stream_repeated_total", "Messages that came or went once more.", "api", "stream", "connector", "side")
	streamClients  = metrics.Describe("stream_clients", "Clients of a connector of an event stream that are connected.", "api", "stream", "connector", "side")
	streamDropped  = metrics.Describe("stream_clients_dropped_total", "Clients of a connector of an event stream that were disconnected because they read too slowly.", "api", "stream", "connector", "side")
	streamLag      = metrics.Describe("stream_lag", "Messages that wait at the source of an event stream, where that is known.", "api", "stream", "connector")
	streamUp       = metrics.Describe("stream_connector_up", "Whether a connector of an event stream works, or waits for demand: 1 or 0.", "api", "stream", "connector", "side")
	streamFlying   = metrics.Describe("stream_in_flight", "Messages of an event stream that are not settled.", "api", "stream")
	streamBytes    = metrics.Describe("stream_in_flight_bytes", "Bytes of the messages of an event stream that are not settled.", "api", "stream")
	streamOldest   = metrics.Describe("stream_oldest_unsettled_seconds", "Age of the oldest message of an event stream that is not settled.", "api", "stream")
	streamSteps    = metrics.Describe("stream_processor_seconds", "Time that a processor of an event stream took for a message.", "api", "stream", "processor")
	streamRefusals = metrics.Describe("stream_processor_errors_total", "Messages that a processor of an event stream refused.", "api", "stream", "processor")
)

// Metrics returns the metrics of the streams in service.
func (e *Engine) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		phases := make(map[streamstate.Phase]int)
		for _, r := range e.inService() {
			s := r.status(false)
			phases[s.Phase]++
			r.collect(ch, &s)
		}
		for _, phase := range streamstate.Phases {
			ch <- metrics.Gauge(streamsRunning, float64(phases[phase]), string(phase))
		}
	}, streamsRunning, streamMessages, streamEnds, streamAttempts, streamErrors, streamAgain, streamClients, streamDropped, streamLag, streamUp,
		streamFlying, streamBytes, streamOldest, streamSteps, streamRefusals)
}

// inService returns the streams of APIs in service. Those that drain are left out: the
// stream that replaces one has its names.
func (e *Engine) inService() []*running {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]*running, 0, len(e.running))
	for _, r := range e.running {
		list = append(list, r)
	}
	return list
}

func (r *running) collect(ch chan<- prometheus.Metric, s *streamstate.Stream) {
	api, name := metrics.Label(r.api), metrics.Label(r.conf.Name)
	ch <- metrics.Counter(streamEnds, r.passed.Load(), api, name, "passed")
	ch <- metrics.Counter(streamEnds, r.refused.Load(), api, name, "refused")
	ch <- metrics.Counter(streamEnds, r.buried.Load(), api, name, "dead")
	ch <- metrics.Counter(streamEnds, r.returned.Load(), api, name, "returned")
	ch <- metrics.Gauge(streamFlying, float64(s.InFlight), api, name)
	ch <- metrics.Gauge(streamBytes, float64(s.InFlightBytes), api, name)
	ch <- metrics.Gauge(streamOldest, s.OldestUnsettled, api, name)
	for _, c := range r.connectors {
		c.collect(ch, api, name)
	}
	for _, step := range r.chain.Steps() {
		collectStep(ch, step, api, name)
	}
}

// classes are the names of the classes of errors.
var classes = [...]string{stream.Transient: "transient", stream.Unknown: "unknown", stream.Permanent: "permanent", stream.Refused: "refused"}

func (c *connector) collect(ch chan<- prometheus.Metric, api, name string) {
	state, label := c.site.State, metrics.Label(c.site.Label)
	ch <- metrics.Counter(streamMessages, state.Messages.Load(), api, name, label, c.side)
	ch <- metrics.Counter(streamAttempts, state.Attempts.Load(), api, name, label, c.side)
	ch <- metrics.Counter(streamAgain, state.Again.Load(), api, name, label, c.side)
	for class, text := range classes {
		if n := state.Errors[class].Load(); n > 0 {
			ch <- metrics.Counter(streamErrors, n, api, name, label, c.side, text)
		}
	}
	phase, _ := state.Phase()
	ch <- metrics.Flag(streamUp, phase == stream.Running || phase == stream.Waiting, api, name, label, c.side)
	if _, serves := c.out.(stream.Server); serves || c.in != nil && state.Clients.Load() > 0 {
		ch <- metrics.Gauge(streamClients, float64(state.Clients.Load()), api, name, label, c.side)
		ch <- metrics.Counter(streamDropped, state.Dropped.Load(), api, name, label, c.side)
	}
	if lag := state.Lag.Load(); c.conf.BrokerInput != nil && lag >= 0 {
		ch <- metrics.Gauge(streamLag, float64(lag), api, name, label)
	}
}

func collectStep(ch chan<- prometheus.Metric, s *process.Step, api, name string) {
	count, sum, buckets := s.Seconds()
	label := metrics.Label(s.Label)
	ch <- prometheus.MustNewConstHistogram(streamSteps, count, sum, buckets, api, name, label)
	ch <- metrics.Counter(streamRefusals, s.Errors(), api, name, label)
}
