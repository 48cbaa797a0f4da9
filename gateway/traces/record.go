package traces

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// maxPath bounds how much of a path is told, in bytes.
const maxPath = 1024

// record is what is kept of a request until it is sent: nothing of its exchange.
type record struct {
	id               trace.TraceID
	parent, upstream trace.SpanID
	flags            trace.TraceFlags
	start, end       time.Time
	name             string
	status           int
	about, called    []attribute.KeyValue // the request, and the call upstream
	steps            []pipeline.Step
}

// recordOf makes the record of a finished exchange. The query is left out whole,
// because credentials travel in it.
func recordOf(ex *pipeline.Exchange) *record {
	t := &ex.Trace
	r := &record{
		flags: trace.TraceFlags(t.Flags), start: ex.Started, end: ex.Call.End(), status: ex.Answer.Status, steps: t.Steps.List,
	}
	decode(r.id[:], t.ID[:])
	decode(r.parent[:], t.Parent[:])
	decode(r.upstream[:], t.Span[:])
	method := methodOf(ex.Call.Method)
	r.name = method
	r.about = append(make([]attribute.KeyValue, 0, 10),
		attribute.String("http.request.method", method),
		attribute.String("url.path", string(ex.Call.Path[:min(len(ex.Call.Path), maxPath)])),
		attribute.Int("http.response.status_code", r.status),
		attribute.String("sluice.request_id", string(ex.ID[:])),
	)
	if ex.API != nil {
		def := ex.API.Definition
		r.name += " " + def.Proxy.ListenPath
		r.about = append(r.about, attribute.String("http.route", def.Proxy.ListenPath), attribute.String("sluice.api", def.ID))
	}
	r.tell("sluice.revision", ex.Revision)
	r.tell("sluice.key", ex.KeyName)
	if ex.Client.IsValid() {
		r.tell("client.address", ex.Client.WithZone("").String())
	}
	if ex.Rejection != nil {
		r.tell("sluice.reason", ex.Rejection.Reason.String())
	}
	if up := &ex.Upstream; up.Address != "" {
		r.called = []attribute.KeyValue{
			attribute.String("server.address", up.Address), attribute.Int("http.response.status_code", up.Status),
			attribute.Int("http.request.resend_count", int(up.Retries)),
		}
	}
	return r
}

// tell adds what is not empty.
func (r *record) tell(name, value string) {
	if value != "" {
		r.about = append(r.about, attribute.String(name, value))
	}
}

// decode reads lower-case hex, of which zero bytes are zero.
func decode(dst, digits []byte) {
	if digits[0] != 0 {
		_, _ = hex.Decode(dst, digits) // it was checked, or made here
	}
}

// digit returns the value of a lower-case hex digit.
func digit(c byte) uint8 {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

// methodOf returns a method that is known, or what stands for all others: names
// of spans are to be few.
func methodOf(method []byte) string {
	switch string(method) {
	case "GET":
		return "GET"
	case "HEAD":
		return "HEAD"
	case "POST":
		return "POST"
	case "PUT":
		return "PUT"
	case "PATCH":
		return "PATCH"
	case "DELETE":
		return "DELETE"
	case "OPTIONS":
		return "OPTIONS"
	}
	return "HTTP"
}

// appendSpans appends the request's span and, below it, one for each step.
func (r *record) appendSpans(dst []sdk.ReadOnlySpan, from *resource.Resource) []sdk.ReadOnlySpan {
	root := &span{
		name: r.name, own: r.context(newSpanID()), kind: trace.SpanKindServer, start: r.start, end: r.end,
		attributes: r.about, status: statusOf(r.status), resource: from, children: len(r.steps),
	}
	if r.parent.IsValid() {
		root.parent = r.context(r.parent).WithRemote(true)
	}
	dst = append(dst, root)
	for i := range r.steps {
		step := &r.steps[i]
		s := &span{
			name: step.Name, own: r.context(newSpanID()), parent: root.own, kind: trace.SpanKindInternal,
			start: step.Start, end: step.End, resource: from,
		}
		if step.Name == "upstream" && len(r.called) > 0 {
			s.own, s.kind, s.attributes = r.context(r.upstream), trace.SpanKindClient, r.called
		}
		if step.Verdict == pipeline.Rejected {
			s.status = sdk.Status{Code: codes.Error, Description: "refused"}
		}
		dst = append(dst, s)
	}
	return dst
}

func (r *record) context(id trace.SpanID) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: r.id, SpanID: id, TraceFlags: r.flags})
}

func newSpanID() (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}

// statusOf tells whether the gateway failed: what clients did wrong is no error
// of its.
func statusOf(status int) sdk.Status {
	if status >= 500 {
		return sdk.Status{Code: codes.Error}
	}
	return sdk.Status{}
}

// span is a span in the form that the exporter takes.
type span struct {
	sdk.ReadOnlySpan // nil: no other type can be one. All methods are below

	name        string
	own, parent trace.SpanContext
	kind        trace.SpanKind
	start, end  time.Time
	attributes  []attribute.KeyValue
	status      sdk.Status
	resource    *resource.Resource
	children    int
}

// Name implements sdk.ReadOnlySpan.
func (s *span) Name() string { return s.name }

// SpanContext implements sdk.ReadOnlySpan.
func (s *span) SpanContext() trace.SpanContext { return s.own }

// Parent implements sdk.ReadOnlySpan.
func (s *span) Parent() trace.SpanContext { return s.parent }

// SpanKind implements sdk.ReadOnlySpan.
func (s *span) SpanKind() trace.SpanKind { return s.kind }

// StartTime implements sdk.ReadOnlySpan.
func (s *span) StartTime() time.Time { return s.start }

// EndTime implements sdk.ReadOnlySpan.
func (s *span) EndTime() time.Time { return s.end }

// Attributes implements sdk.ReadOnlySpan.
func (s *span) Attributes() []attribute.KeyValue { return s.attributes }

// Links implements sdk.ReadOnlySpan.
func (s *span) Links() []sdk.Link { return nil }

// Events implements sdk.ReadOnlySpan.
func (s *span) Events() []sdk.Event { return nil }

// Status implements sdk.ReadOnlySpan.
func (s *span) Status() sdk.Status { return s.status }

// InstrumentationScope implements sdk.ReadOnlySpan.
func (s *span) InstrumentationScope() instrumentation.Scope {
	return instrumentation.Scope{Name: "sluice"}
}

// InstrumentationLibrary implements sdk.ReadOnlySpan.
func (s *span) InstrumentationLibrary() instrumentation.Scope {
	return s.InstrumentationScope()
}

// Resource implements sdk.ReadOnlySpan.
func (s *span) Resource() *resource.Resource { return s.resource }

// DroppedAttributes implements sdk.ReadOnlySpan.
func (s *span) DroppedAttributes() int { return 0 }

// DroppedLinks implements sdk.ReadOnlySpan.
func (s *span) DroppedLinks() int { return 0 }

// DroppedEvents implements sdk.ReadOnlySpan.
func (s *span) DroppedEvents() int { return 0 }

// ChildSpanCount implements sdk.ReadOnlySpan.
func (s *span) ChildSpanCount() int { return s.children }
