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

// maxPath bounds the path in a span, in bytes.
const maxPath = 1024

// record holds what is sent of a request. It does not refer to the exchange.
type record struct {
	id               trace.TraceID
	parent, upstream trace.SpanID
	flags            trace.TraceFlags
	start, end       time.Time
	name             string
	status           int
	about, called    []attribute.KeyValue // of the request, and of the upstream request
	steps            []pipeline.Step
}

// recordOf returns the record of a finished exchange. The query string is left out,
// because it may hold credentials.
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
		attribute.String("sluice.request_id", string(ex.RequestID())),
	)
	if ex.API != nil {
		def := ex.API.Definition
		r.name += " " + def.Proxy.ListenPath
		r.about = append(r.about, attribute.String("http.route", def.Proxy.ListenPath), attribute.String("sluice.api", def.ID))
	}
	r.add("sluice.revision", ex.Revision)
	r.add("sluice.key", ex.KeyName)
	if ex.Client.IsValid() {
		r.add("client.address", ex.Client.WithZone("").String())
	}
	if ex.Rejection != nil {
		r.add("sluice.reason", ex.Rejection.Reason.String())
	}
	if up := &ex.Upstream; up.Address != "" {
		r.called = []attribute.KeyValue{
			attribute.String("server.address", up.Address), attribute.Int("http.response.status_code", up.Status),
			attribute.Int("http.request.resend_count", int(up.Retries)),
		}
	}
	return r
}

// add adds an attribute unless its value is empty.
func (r *record) add(name, value string) {
	if value != "" {
		r.about = append(r.about, attribute.String(name, value))
	}
}

// decode decodes lower-case hex; digits of zero bytes leave dst as it is.
func decode(dst, digits []byte) {
	if digits[0] != 0 {
		_, _ = hex.Decode(dst, digits) // checked when it was received, or made here
	}
}

// digit returns the value of a lower-case hex digit.
func digit(c byte) uint8 {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

// methodOf returns a standard method, or "HTTP" for any other: names of spans must be
// few.
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

// appendSpans appends the span of the request and its children, one for each step.
func (r *record) appendSpans(dst []sdk.ReadOnlySpan, from *resource.Resource) []sdk.ReadOnlySpan {
	root := &span{
		name: r.name, own: r.context(newSpanID()), kind: trace.SpanKindServer, start: r.start, end: r.end,
		attributes: r.about, status: statusOf(r.status), resource: from, children: len(r.steps),
	}
	if r.parent.IsValid() {
		root.parent = r.context(r.parent).WithRemote(true)
	}
	dst = append(dst, root)
	fetches := 0
	for i := range r.steps {
		if r.steps[i].Fetch != nil {
			fetches++
		}
	}
	for i := range r.steps {
		step := &r.steps[i]
		s := &span{
			name: step.Name, own: r.context(newSpanID()), parent: root.own, kind: trace.SpanKindInternal,
			start: step.Start, end: step.End, resource: from,
		}
		switch {
		case step.Fetch != nil:
			r.setFetch(s, step.Fetch)
			root.children--
		case step.Name == "upstream" && fetches > 0:
			s.own, s.children = r.context(r.upstream), fetches
		case step.Name == "upstream" && len(r.called) > 0:
			s.own, s.kind, s.attributes = r.context(r.upstream), trace.SpanKindClient, r.called
		}
		if step.Verdict == pipeline.Rejected {
			s.status = sdk.Status{Code: codes.Error, Description: "refused"}
		}
		dst = append(dst, s)
	}
	return dst
}

// setFetch makes a span that of a request to a data source, which belongs to the one of all.
func (r *record) setFetch(s *span, f *pipeline.Fetch) {
	var id trace.SpanID
	decode(id[:], f.Span[:])
	s.name, s.own, s.parent, s.kind = s.name+" "+f.Source, r.context(id), r.context(r.upstream), trace.SpanKindClient
	s.attributes = []attribute.KeyValue{
		attribute.String("sluice.source", f.Source), attribute.String("server.address", f.Address),
		attribute.Int("http.response.status_code", f.Status), attribute.Int("http.request.resend_count", f.Retries),
	}
	if f.Status == 0 || f.Status >= 500 {
		s.status = sdk.Status{Code: codes.Error}
	}
}

func (r *record) context(id trace.SpanID) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: r.id, SpanID: id, TraceFlags: r.flags})
}

func newSpanID() (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}

// statusOf returns an error for server errors only: faults of clients are not failures
// of the gateway.
func statusOf(status int) sdk.Status {
	if status >= 500 {
		return sdk.Status{Code: codes.Error}
	}
	return sdk.Status{}
}

// span implements the interface that the exporter takes.
type span struct {
	sdk.ReadOnlySpan // nil: the interface has an unexported method; the others are below

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
