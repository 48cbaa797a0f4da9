package streams

import (
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// processorNames are the processors, with the aliases of mapping at the end.
var processorNames = []string{"mapping", "branch", "http", "switch", "filter", "split", "batch", "log", "dead_letter", "sync_response", "bloblang"}

// processorHints are about processors that users of comparable engines know.
var processorHints = map[string]string{
	"mutation":     `use mapping, which begins with "root = this"`,
	"jmespath":     "use mapping",
	"jq":           "use mapping",
	"text":         "use mapping",
	"json":         "use mapping",
	"insert_part":  "use mapping",
	"try":          "write on_error of the processors",
	"catch":        "write on_error of the processors",
	"for_each":     "processors see one message each; write them in place",
	"group_by":     "use switch",
	"archive":      "use batch, which makes an array",
	"unarchive":    "use split, which takes an array apart",
	"cache":        "there are no caches",
	"cached":       "there are no caches",
	"dedupe":       "there are no caches; receivers can compare message ids",
	"rate_limit":   "write rate_limit of the connector",
	"resource":     "write the processor in place; resources are not shared",
	"workflow":     "use branch",
	"parallel":     "messages are processed side by side already",
	"command":      "streams do not use the machine of the gateway",
	"subprocess":   "streams do not use the machine of the gateway",
	"sleep":        "write rate_limit of the connector",
	"metric":       "the gateway exports the metrics of all streams",
	"bounds_check": "write max_message_bytes of the stream",
}

func (r *reader) processor(n *node, at string, depth int) *Processor {
	if r.processors++; r.processors > maxProcessors {
		if r.processors == maxProcessors+1 {
			r.faultf("pipeline.processors", "has more than %d processors, nested ones counted", maxProcessors)
		}
		return nil
	}
	if depth > maxNesting {
		r.faultf(at, "nests deeper than %d levels", maxNesting)
		return nil
	}
	f := r.object(n, at)
	if f == nil {
		return nil
	}
	p := &Processor{Label: r.label(f), Path: at, OnError: OnError(f.oneOf("on_error", string(Reject), string(Pass), string(Drop)))}
	kind, own := r.pick(f, processorNames, "processor", processorHints)
	if own == nil {
		return nil
	}
	switch kind {
	case "mapping", "bloblang":
		p.Mapping = r.ownScript(own)
	case "filter":
		p.Filter = r.ownCheck(own)
	case "switch":
		p.Switch = r.cases(own, depth)
	case "dead_letter":
		p.DeadLetter = r.ownReason(own)
	default:
		r.objectProcessor(kind, own, p, depth)
	}
	return p
}

// objectProcessor reads the processors whose value always is an object.
func (r *reader) objectProcessor(kind string, f *fields, p *Processor, depth int) {
	if f.of != nil && f.of.kind != '{' {
		r.faultf(f.at, "must be an object, not %s", typeName(f.of))
		return
	}
	switch kind {
	case "branch":
		p.Branch = r.branch(f, depth)
	case "http":
		q := r.request(f, "POST", &Stream{MaxMessageBytes: 1 << 20})
		p.HTTP = &q
		if f.get("rate_limit") != nil {
			f.faultf("rate_limit", "is not supported; write rate_limit of the connector")
		}
		f.unknown(httpHints)
	case "split":
		p.Split = &Split{Path: f.text("path", "", 1024)}
		f.unknown(map[string]string{"size": "each item of the array becomes one message; remove it"})
	case "batch":
		p.Batch = r.batch(f)
	case "log":
		p.Log = &Log{Level: f.oneOf("level", "info", "debug", "warn", "error"), Message: f.template("message", ""), Fields: f.headers("fields")}
		f.unknown(map[string]string{"fields_mapping": "write fields, with templates"})
	case "sync_response":
		p.SyncResponse = true
		f.unknown(nil)
	}
}

// ownScript reads a processor that is a script.
func (r *reader) ownScript(f *fields) *string {
	if f.of == nil || f.of.kind != '"' {
		r.faultf(f.at, "must be the text of a script")
		return new(string)
	}
	if strings.TrimSpace(f.of.text) == "" {
		r.faultf(f.at, "is empty; write a script such as root = this")
		return new(string)
	}
	r.compile(f.at, f.of.text)
	return &f.of.text
}

// ownCheck reads a filter: the text of its check, or an object with it.
func (r *reader) ownCheck(f *fields) *string {
	if f.of != nil && f.of.kind == '{' {
		check := f.script("check")
		if check == "" && f.typed("check", '"', "a string") == nil {
			f.faultf("check", "is required: an expression such as this.amount > 0")
		}
		f.unknown(nil)
		return &check
	}
	return r.ownScript(f)
}

// ownReason reads a dead_letter: the text of its reason, or an object with it.
func (r *reader) ownReason(f *fields) *Template {
	if f.of != nil && f.of.kind == '"' {
		r.compileTemplate(f.at, f.of.text)
		reason := Template(f.of.text)
		return &reason
	}
	if f.of != nil && f.of.kind != '{' {
		r.faultf(f.at, "must be an object, not %s", typeName(f.of))
		return new(Template)
	}
	reason := f.template("reason", "")
	f.unknown(nil)
	return &reason
}

func (r *reader) branch(f *fields, depth int) *Branch {
	b := &Branch{RequestMap: f.script("request_map"), ResultMap: f.script("result_map")}
	b.Processors = r.nested(f, depth)
	if len(f.items("processors")) == 0 && (f.get("processors") == nil || f.get("processors").kind == '[') {
		f.faultf("processors", "is empty; a branch has at least one processor")
	}
	f.unknown(nil)
	return b
}

func (r *reader) nested(f *fields, depth int) (all []Processor) {
	for i, n := range f.items("processors") {
		if p := r.processor(n, object.Item(f.path("processors"), i), depth+1); p != nil {
			all = append(all, *p)
		}
	}
	return all
}

// cases reads a switch: an object with cases, or the list of them.
func (r *reader) cases(f *fields, depth int) []Case {
	at, items := f.at, []*node(nil)
	switch {
	case f.of != nil && f.of.kind == '[':
		items = f.of.below
	case f.of != nil && f.of.kind != '{':
		r.faultf(f.at, "must be an object with cases, or the list of cases, not %s", typeName(f.of))
		return []Case{}
	default:
		at, items = f.path("cases"), f.items("cases")
		f.unknown(nil)
	}
	if len(items) == 0 {
		r.faultf(at, "is empty; a switch has at least one case")
	}
	if len(items) > maxCases {
		r.faultf(at, "has %d entries; at most %d are allowed", len(items), maxCases)
		items = nil
	}
	all := []Case{}
	for i, n := range items {
		if f := r.object(n, object.Item(at, i)); f != nil {
			all = append(all, r.oneCase(f, depth))
		}
	}
	return all
}

func (r *reader) oneCase(f *fields, depth int) Case {
	c := Case{Check: f.script("check"), Fallthrough: f.yes("fallthrough", false), Continue: f.yes("continue", false)}
	c.Processors = r.nested(f, depth)
	if c.Fallthrough && c.Continue {
		f.faultf("continue", "excludes fallthrough; choose one")
	}
	f.unknown(nil)
	return c
}

func (r *reader) batch(f *fields) *Batch {
	b := &Batch{
		Count:    f.number("count", 0, 1, 4096),
		Period:   f.duration("period", 0, time.Millisecond, 10*time.Minute),
		MaxBytes: int(f.size(f.either("max_bytes", "byte_size"), 0, 1, 16<<20)),
	}
	if b.Count == 0 && b.Period == 0 {
		r.faultf(f.at, "would never be complete; write count, period or both")
	}
	f.unknown(map[string]string{"check": "write count and period; remove it", "processors": "write them behind batch"})
	return b
}

// checkTogether checks what depends on several parts of a stream.
func (r *reader) checkTogether(s *Stream) {
	inputs, outputs := leaves(s.Input), leaves(s.Output)
	if s.Retry.MaxAttempts == 0 && slices.ContainsFunc(inputs, func(c Connector) bool { return c.BrokerInput == nil && c.Kind() != "" }) {
		r.faultf("retry.max_attempts", "may be 0 (for ever) only if every input is msgbroker: others cannot wait for ever")
	}
	window := s.MaxInFlight
	for _, in := range inputs {
		if in.BrokerInput != nil {
			window = min(window, in.BrokerInput.CheckpointLimit)
		}
	}
	eachProcessor(s.Processors, func(p *Processor) {
		switch {
		case p.Batch != nil && p.Batch.Period == 0 && p.Batch.Count > window:
			r.faultf(p.Path+".batch.count", "is more than the %d messages that may be in flight (max_in_flight, checkpoint_limit), so that the batch would never be complete; set period, or write at most %d", window, window)
		case p.DeadLetter != nil && s.DeadLetter == nil:
			r.faultf(p.Path+".dead_letter", "has nowhere to send messages; write dead_letter of the stream")
		case p.SyncResponse && !slices.ContainsFunc(inputs, func(c Connector) bool { return c.HTTPServerInput != nil || c.Kind() == "" }):
			r.faultf(p.Path+".sync_response", "has nobody to answer; it needs an http_server as input")
		}
	})
	for _, out := range outputs {
		if out.HTTPServerOutput != nil && out.HTTPServerOutput.Resume {
			r.checkResume(out, s)
		}
	}
}

// checkResume checks an output whose clients can go on where they left off: they read the
// log of the source themselves.
func (r *reader) checkResume(out Connector, s *Stream) {
	const needs = "needs a source that keeps messages: msgbroker with retain (AMQP), or with Kafka"
	at, in := out.Path+".http_server.resume", s.Input.BrokerInput
	switch {
	case s.Input.Kind() == "":
	case in == nil, in.Scheme == InProcess, in.Scheme == AMQP && in.Retain == nil:
		r.faultf(at, "%s, as the input of the stream", needs)
	case len(in.Topics) > 1:
		r.faultf(at, "needs a source with a single topic, whose positions clients name")
	case s.Output.HTTPServerOutput == nil:
		r.faultf(at, "must be of the only output: clients read the source at their own pace")
	case in.ConsumerGroup != "":
		r.faultf("input.msgbroker.consumer_group", "has no use with resume, where every client reads all messages; leave it out")
	case out.HTTPServerOutput.WSPath != "":
		r.faultf(at, "is of events only, and ws_path serves WebSocket; leave ws_path out")
	case out.HTTPServerOutput.Path != "" && out.HTTPServerOutput.StreamPath != "":
		r.faultf(at, "is of events only, which stream_path serves; leave path out")
	case s.DeadLetter != nil:
		r.faultf("dead_letter", "has no use with resume, where every client reads all messages; they stay in the source")
	}
	eachProcessor(s.Processors, func(p *Processor) {
		if p.Batch != nil {
			r.faultf(p.Path+".batch", "cannot be used with resume: a client that goes on would get other batches")
		}
	})
}

// leaves returns the connectors that are no broker.
func leaves(c Connector) (all []Connector) {
	below := c.Inputs
	if c.Outputs != nil {
		below = c.Outputs.Outputs
	}
	if below == nil {
		return []Connector{c}
	}
	for _, one := range below {
		all = append(all, leaves(one)...)
	}
	return all
}

// eachProcessor calls do for processors and for those nested in them.
func eachProcessor(of []Processor, do func(*Processor)) {
	for i := range of {
		p := &of[i]
		do(p)
		if p.Branch != nil {
			eachProcessor(p.Branch.Processors, do)
		}
		for j := range p.Switch {
			eachProcessor(p.Switch[j].Processors, do)
		}
	}
}
