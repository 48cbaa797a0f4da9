// Package streamstate is what gateways and the admin say to each other about running event
// streams: how they are asked for and listed, and how the processors of one are tried.
package streamstate

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A Stream is an event stream as one gateway runs it.
type Stream struct {
	// Name of the gateway that runs the stream; empty: it has no name.
	Gateway string `json:"gateway"`
	// Id of the API that has the stream.
	API string `json:"api_id"`
	// Id of the organisation that the API belongs to.
	Org string `json:"org_id"`
	// Name of the stream, unique in its API.
	Name string `json:"stream"`
	// Phase of the stream. waiting: there is no demand; reconnecting: a connection is lost and mends
	// by itself; failing: it does not mend without a change.
	Phase Phase `json:"phase" enum:"starting,running,waiting,reconnecting,failing,draining,stopped"`
	// Time at which it entered the phase.
	Since time.Time `json:"since"`
	// Messages that the inputs took since the stream was started.
	MessagesIn uint64 `json:"messages_in"`
	// Messages that the outputs sent since the stream was started.
	MessagesOut uint64 `json:"messages_out"`
	// Last error, without secrets and payload; empty: there was none.
	LastError string `json:"last_error"`
	// Time of the last error; null: there was none.
	LastErrorAt *time.Time `json:"last_error_at"`
	// Messages that are not settled.
	InFlight int `json:"in_flight"`
	// Size of the messages that are not settled, in bytes.
	InFlightBytes int64 `json:"in_flight_bytes"`
	// Age of the oldest message that is not settled, in seconds; 0: there is none.
	OldestUnsettled float64 `json:"oldest_unsettled_seconds"`
	// Connectors and processors of the stream; in the status of an API only.
	Nodes []Node `json:"nodes,omitempty"`
}

// A Node is a connector or processor of a stream.
type Node struct {
	// Path in the stream object, such as output.broker.outputs[1].
	Path string `json:"path"`
	// Label that the configuration gives it; empty: none.
	Label string `json:"label"`
	// Name of the connector or processor, such as http_server.
	Kind string `json:"kind"`
	// Part of the stream that it belongs to.
	Side Side `json:"side" enum:"input,processor,output,dead_letter"`
	// Phase of the connector; empty: it is a processor.
	Phase Phase `json:"phase" enum:",starting,running,waiting,reconnecting,failing,draining,stopped"`
	// Time at which it entered the phase; null: it is a processor.
	Since *time.Time `json:"since"`
	// Messages that it took in or sent; of a processor, those that it worked on.
	Messages uint64 `json:"messages"`
	// Size of those messages, in bytes.
	Bytes uint64 `json:"bytes"`
	// Attempts to connect, or of HTTP outputs to send.
	Attempts uint64 `json:"attempts"`
	// Number of its errors by class.
	Errors Errors `json:"errors"`
	// Messages that came or went once more.
	Again uint64 `json:"again"`
	// Number of clients that are connected.
	Clients int64 `json:"clients"`
	// Number of clients that were disconnected because they were too slow.
	Dropped uint64 `json:"clients_dropped"`
	// Messages that wait at the source; -1: not known.
	Lag int64 `json:"lag"`
	// Mean time that a processor takes for a message, in seconds; 0: it is a connector.
	MeanSeconds float64 `json:"mean_seconds"`
	// Last error, without secrets and payload; empty: there was none.
	LastError string `json:"last_error"`
	// Time of the last error; null: there was none.
	LastErrorAt *time.Time `json:"last_error_at"`
}

// Errors counts errors by their class.
type Errors struct {
	// Errors after which the message was tried again.
	Transient uint64 `json:"transient"`
	// Errors after which the peer may have the message, which was tried again.
	Unknown uint64 `json:"unknown"`
	// Errors after which the peer will never take the message.
	Permanent uint64 `json:"permanent"`
	// Messages that processors refused.
	Refused uint64 `json:"refused"`
}

// A Phase is what a stream or connector does.
type Phase string

// The phases, those that need attention last.
const (
	Stopped      Phase = "stopped"
	Draining     Phase = "draining"
	Running      Phase = "running"
	Waiting      Phase = "waiting"
	Starting     Phase = "starting"
	Reconnecting Phase = "reconnecting"
	Failing      Phase = "failing"
)

// Phases are all phases, those that need attention last.
var Phases = []Phase{Stopped, Draining, Running, Waiting, Starting, Reconnecting, Failing}

// Worse returns the phase of two that needs more attention.
func Worse(a, b Phase) Phase {
	if slices.Index(Phases, a) < slices.Index(Phases, b) {
		return b
	}
	return a
}

// A Side is where a node is in its stream.
type Side string

// The sides.
const (
	Input      Side = "input"
	Processor  Side = "processor"
	Output     Side = "output"
	DeadLetter Side = "dead_letter"
)

// A Source is what runs streams: the engine of a gateway.
type Source interface {
	// Streams returns the streams of a filter, in any order.
	Streams(f Filter) []Stream
}

// A Filter chooses streams. Empty members choose all.
type Filter struct {
	Org, API string
	Nodes    bool // with connectors and processors
}

// Compare orders streams by API and name.
func Compare(a, b *Stream) int {
	return cmp.Or(strings.Compare(a.API, b.API), strings.Compare(a.Name, b.Name))
}

// Cursor returns the place behind the stream in a list: API and name, each escaped as in a
// query, with a slash between them.
func (s *Stream) Cursor() string { return url.QueryEscape(s.API) + "/" + url.QueryEscape(s.Name) }

// parseCursor reads the text of a cursor.
func parseCursor(text string) (api, name string, ok bool) {
	api, name, ok = strings.Cut(text, "/")
	api, err := url.QueryUnescape(api)
	name, also := url.QueryUnescape(name)
	return api, name, ok && err == nil && also == nil
}
