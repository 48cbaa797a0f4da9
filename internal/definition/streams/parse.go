package streams

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// Bounds of what is read.
const (
	maxBytes      = 1 << 20 // of x-svc-streaming
	maxStreams    = 1000    // of one API
	maxConnectors = 64      // of one stream
	maxProcessors = 64      // of one stream, nested ones included
	maxNesting    = 8       // of processors
	maxBrokers    = 4       // of a broker in a broker
	maxList       = 32      // inputs or outputs of a broker
	maxCases      = 64      // of a switch
	maxTopics     = 64      // of an input
	maxAddresses  = 16      // of a message broker
	maxHeaders    = 64
	maxScript     = 64 << 10
	maxTemplate   = 64 << 10
)

// Options are what Parse knows of the gateway. The zero value is for checks where no
// gateway is: what depends on its settings passes.
type Options struct {
	// DefaultScheme is that of addresses of message brokers without one; "": not known.
	DefaultScheme Scheme

	// PlainHTTP says whether messages may go to a host without TLS; nil: not known.
	PlainHTTP func(host string) bool

	// SkipScripts leaves out the compilation of scripts and templates, for what has passed
	// it before.
	SkipScripts bool
}

// Parse reads the object x-svc-streaming: its streams, ordered by name, and everything
// that is wrong with them, with paths below x-svc-streaming such as
// streams.orders.input.http_server.path. Streams beside faults are not fit for use.
// An object without streams has no faults.
func Parse(raw json.RawMessage, o Options) ([]Stream, []object.Fault) {
	if len(raw) == 0 {
		return nil, nil
	}
	if fault := object.Check(raw, maxBytes); fault != nil {
		return nil, []object.Fault{*fault}
	}
	r := &reader{options: o}
	root := readTree(raw)
	if root.kind == 'n' {
		return nil, nil
	}
	f := r.object(root, "")
	if f == nil {
		return nil, r.faults
	}
	n := f.get("streams")
	if n == nil || n.kind == '{' && len(n.names) == 0 {
		return nil, r.faults
	}
	f.unknown(map[string]string{"info": "x-svc-api-gateway.info describes the API; remove it"})
	streams := r.streams(n)
	r.checkRoutes()
	slices.SortFunc(streams, func(a, b Stream) int { return strings.Compare(a.Name, b.Name) })
	return streams, r.faults
}

// A reader reads the streams of one API.
type reader struct {
	options Options
	faults  object.Faults
	routes  []route // of all streams

	// Of the stream at hand.
	name       string
	base       string            // its path
	labels     map[string]string // path by label
	processors int
	connectors int
}

// faultf adds a fault at a path in the stream object.
func (r *reader) faultf(at, format string, args ...any) { r.faults.Addf(r.full(at), format, args...) }

// full returns a path in the stream object as one below x-svc-streaming.
func (r *reader) full(at string) string {
	switch {
	case at == "":
		return r.base
	case at[0] == '[':
		return r.base + at
	}
	return object.Member(r.base, at)
}

func (r *reader) streams(n *node) []Stream {
	f := r.object(n, "streams")
	if f == nil {
		return nil
	}
	r.faults.Count("streams", len(n.names), maxStreams)
	var all []Stream
	for i, name := range n.names {
		r.name, r.base = name, entry("streams", name)
		r.labels, r.processors, r.connectors = make(map[string]string), 0, 0
		if !isStreamName(name) {
			r.faultf("", `must have a name of at most 64 letters, digits, "_", "." and "-", which begins with a letter or a digit`)
		}
		if f := r.object(n.below[i], ""); f != nil {
			all = append(all, r.stream(f))
		}
	}
	r.base = ""
	return all
}

func isStreamName(name string) bool {
	const alnum = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return name != "" && len(name) <= 64 && strings.IndexByte(alnum, name[0]) >= 0 && strings.Trim(name, alnum+"_.-") == ""
}

// streamHints are about fields that users of comparable engines know.
var streamHints = map[string]string{
	"buffer":               "outputs say when they can take messages, so that nothing waits in memory; remove it",
	"cache_resources":      "there are no caches; remove it",
	"rate_limit_resources": `write rate_limit of the connector, such as "100/1s"`,
	"input_resources":      "write the input in place; resources are not shared",
	"output_resources":     "write the output in place; resources are not shared",
	"processor_resources":  "write the processor in place; resources are not shared",
	"resources":            "write connectors and processors in place; resources are not shared",
	"http":                 "the gateway owns the listener; remove it",
	"logger":               "the gateway has one log; remove it",
	"metrics":              "the gateway exports the metrics of all streams; remove it",
	"tracer":               "remove it",
	"shutdown_timeout":     "write drain_timeout",
	"processors":           "write them in pipeline.processors",
}

func (r *reader) stream(f *fields) Stream {
	s := Stream{Name: r.name, MaxInFlight: f.number("max_in_flight", 256, 1, 4096)}
	s.MaxMessageBytes = int(f.size("max_message_bytes", 1<<20, 1, 16<<20))
	s.MaxInFlightBytes = int(f.size("max_in_flight_bytes", max(4<<20, int64(s.MaxMessageBytes)), 1<<10, 1<<30))
	if s.MaxInFlightBytes < s.MaxMessageBytes {
		f.faultf("max_in_flight_bytes", "must be at least max_message_bytes (%s), or a message of that size would never be taken", sizeText(int64(s.MaxMessageBytes)))
	}
	s.DrainTimeout = f.duration("drain_timeout", 30*time.Second, 0, 10*time.Minute)
	s.Retry = r.retry(f.object("retry"))
	s.Input = r.end(f, "input", ofInput, &s)
	r.readPipeline(f.object("pipeline"), &s)
	s.Output = r.end(f, "output", ofOutput, &s)
	if n := f.get("dead_letter"); n != nil {
		s.DeadLetter = r.deadLetter(n, &s)
	}
	f.unknown(streamHints)
	r.checkTogether(&s)
	return s
}

func (r *reader) retry(f *fields) Retry {
	retry := Retry{
		MaxAttempts: f.number("max_attempts", 5, 0, 1000),
		Initial:     f.duration("initial", 100*time.Millisecond, time.Millisecond, time.Hour),
	}
	retry.Max = f.duration("max", max(10*time.Second, retry.Initial), time.Millisecond, time.Hour)
	if retry.Max < retry.Initial {
		f.faultf("max", "must not be shorter than initial (%s)", short(retry.Initial))
	}
	f.unknown(nil)
	return retry
}

func (r *reader) readPipeline(f *fields, s *Stream) {
	for i, n := range f.items("processors") {
		if p := r.processor(n, object.Item(f.path("processors"), i), 1); p != nil {
			s.Processors = append(s.Processors, *p)
		}
	}
	f.unknown(map[string]string{"threads": "each message is processed where it comes in, and max_in_flight bounds how many are; remove it"})
}

// end reads the input or the output of a stream.
func (r *reader) end(f *fields, name string, side side, s *Stream) Connector {
	n := f.get(name)
	if n == nil {
		f.faultf(name, "is required: an object with one connector, such as http_server")
		return Connector{}
	}
	return r.connector(n, place{at: name, side: side, stream: s})
}

func (r *reader) deadLetter(n *node, s *Stream) *DeadLetter {
	f := r.object(n, "dead_letter")
	if f == nil {
		return nil
	}
	d := &DeadLetter{IncludeError: f.yes("include_error", true)}
	d.Output = r.connectorOf(f, place{at: "dead_letter", side: ofDeadLetter, stream: s})
	return d
}

// label reads a label, or derives it from the path.
func (r *reader) label(f *fields) string {
	n := f.typed("label", '"', "a string")
	if n == nil {
		return f.at
	}
	label := n.text
	if label == "" {
		return f.at
	}
	if len(label) > 64 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		f.faultf("label", `must be 1 to 64 of a-z, 0-9 and "_"`)
		return f.at
	}
	if other, taken := r.labels[label]; taken {
		f.faultf("label", "%q is the label of %s already; labels are unique in a stream", label, other)
		return f.at
	}
	r.labels[label] = f.at
	return label
}
