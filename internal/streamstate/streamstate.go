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
	Gateway         string     `json:"gateway" doc:"that runs the stream; empty: it has no name"`
	API             string     `json:"api_id"`
	Org             string     `json:"org_id"`
	Name            string     `json:"stream"`
	Phase           Phase      `json:"phase" enum:"starting,running,waiting,reconnecting,failing,draining,stopped" doc:"waiting: there is no demand; reconnecting: a connection is lost and mends by itself; failing: it does not mend without a change"`
	Since           time.Time  `json:"since" doc:"when it came into this phase"`
	MessagesIn      uint64     `json:"messages_in" doc:"that inputs took, since the stream was started"`
	MessagesOut     uint64     `json:"messages_out" doc:"that outputs gave"`
	LastError       string     `json:"last_error" doc:"without secrets and payload; empty: there was none"`
	LastErrorAt     *time.Time `json:"last_error_at" doc:"null: there was none"`
	InFlight        int        `json:"in_flight" doc:"messages that are not settled"`
	InFlightBytes   int64      `json:"in_flight_bytes"`
	OldestUnsettled float64    `json:"oldest_unsettled_seconds" doc:"age of the oldest message that is not settled; 0: there is none"`
	Nodes           []Node     `json:"nodes,omitempty" doc:"connectors and processors; in the status of an API only"`
}

// A Node is a connector or processor of a stream.
type Node struct {
	Path        string     `json:"path" doc:"in the stream object, such as output.broker.outputs[1]"`
	Label       string     `json:"label"`
	Kind        string     `json:"kind" doc:"name of the connector or processor, such as http_server"`
	Side        Side       `json:"side" enum:"input,processor,output,dead_letter"`
	Phase       Phase      `json:"phase" enum:",starting,running,waiting,reconnecting,failing,draining,stopped" doc:"empty: of a processor"`
	Since       *time.Time `json:"since" doc:"when it came into this phase; null: of a processor"`
	Messages    uint64     `json:"messages" doc:"that it took in or gave out; of a processor, those that it worked on"`
	Bytes       uint64     `json:"bytes"`
	Attempts    uint64     `json:"attempts" doc:"to connect, or of HTTP outputs to send"`
	Errors      Errors     `json:"errors"`
	Again       uint64     `json:"again" doc:"messages that came or went once more"`
	Clients     int64      `json:"clients" doc:"that are connected"`
	Dropped     uint64     `json:"clients_dropped" doc:"because they were too slow"`
	Lag         int64      `json:"lag" doc:"messages that wait at the source; -1: not known"`
	MeanSeconds float64    `json:"mean_seconds" doc:"of a processor: the time that a message takes"`
	LastError   string     `json:"last_error" doc:"without secrets and payload; empty: there was none"`
	LastErrorAt *time.Time `json:"last_error_at" doc:"null: there was none"`
}

// Errors counts errors by their class.
type Errors struct {
	Transient uint64 `json:"transient" doc:"the message was tried again"`
	Unknown   uint64 `json:"unknown" doc:"the peer may have the message: it was tried again"`
	Permanent uint64 `json:"permanent" doc:"the peer will never take the message"`
	Refused   uint64 `json:"refused" doc:"messages that processors refused"`
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
