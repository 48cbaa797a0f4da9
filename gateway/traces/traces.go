// Package traces sends spans of sampled requests to a collector, by OpenTelemetry's
// protocol over HTTP.
//
// Of the library it uses the exporter only. Spans are made from an exchange when it is
// finished, so that requests that are not sampled cost nothing.
package traces

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

const (
	maxQueue    = 4096             // requests that wait to be sent; more are dropped
	maxBatch    = 256              // requests that are sent together
	flushEvery  = time.Second      // before a smaller batch is sent
	sendTimeout = 10 * time.Second // of one attempt
	retryFor    = 30 * time.Second // before a batch is dropped
	lastSend    = 3 * time.Second  // for what is left at the end
	quietFor    = time.Minute      // between two warnings
	idDigits    = len(pipeline.Trace{}.ID)
	sampleBits  = 56
)

// Options are the settings of a Recorder.
type Options struct {
	Endpoint string  // address of the collector, with its scheme
	Headers  string  // of calls to it: name=value, with commas between
	Sample   float64 // share of the traces that begin here, in [0, 1]
	Version  string  // of the program
	Instance string  // name of this gateway
	Log      *slog.Logger
}

// Recorder records requests. It is safe for concurrent use.
type Recorder struct {
	log       *slog.Logger
	exporter  sdk.SpanExporter
	resource  *resource.Resource
	threshold uint64 // a trace is recorded if the last bits of its id are below

	queue                 chan *record
	sent, failed, dropped atomic.Uint64 // spans; of dropped requests one each
}

// New returns a recorder. Run sends what it records.
func New(o Options) (*Recorder, error) {
	endpoint, err := endpointOf(o.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("telemetry.otlp.endpoint: %w", err)
	}
	exporter, err := otlptracehttp.New(context.Background(), // only for starting
		otlptracehttp.WithEndpointURL(endpoint),
		otlptracehttp.WithHeaders(headersOf(o.Headers)),
		otlptracehttp.WithTimeout(sendTimeout),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: time.Second, MaxInterval: sendTimeout, MaxElapsedTime: retryFor,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("telemetry.otlp.endpoint: %w", err)
	}
	return &Recorder{
		log: o.Log, exporter: exporter,
		resource: resource.NewSchemaless(
			attribute.String("service.name", "sluice"), attribute.String("service.version", o.Version),
			attribute.String("service.instance.id", o.Instance),
		),
		threshold: uint64(math.Round(min(max(o.Sample, 0), 1) * (1 << sampleBits))),
		queue:     make(chan *record, maxQueue),
	}, nil
}

// endpointOf adds the path of the protocol to an address that has none.
func endpointOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// headersOf reads name=value pairs.
func headersOf(text string) map[string]string {
	headers := make(map[string]string)
	for pair := range strings.SplitSeq(text, ",") {
		if name, value, ok := strings.Cut(strings.TrimSpace(pair), "="); ok {
			headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return headers
}

// Begins reports whether a trace that begins here is recorded. It decides by the id, in
// lower-case hex, so that others with the same share decide the same.
func (r *Recorder) Begins(id *[32]byte) bool {
	bits := uint64(0)
	for _, c := range id[idDigits-sampleBits/4:] {
		bits = bits<<4 | uint64(digit(c))
	}
	return bits < r.threshold
}

// Done records a finished request.
func (r *Recorder) Done(ex *pipeline.Exchange) {
	select {
	case r.queue <- recordOf(ex):
	default:
		r.dropped.Add(1)
	}
}

// Stats counts spans.
type Stats struct {
	Sent, Failed uint64
	Dropped      uint64 // requests that were not sent because too many waited
}

// Stats returns current numbers.
func (r *Recorder) Stats() Stats {
	return Stats{Sent: r.sent.Load(), Failed: r.failed.Load(), Dropped: r.dropped.Load()}
}

// Run sends what is recorded until ctx ends, and then for up to three seconds the rest.
// It must run once.
func (r *Recorder) Run(ctx context.Context) {
	s := sender{Recorder: r}
	sending, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastSend, giveUp) })()
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case one := <-r.queue:
			if s.batch = append(s.batch, one); len(s.batch) >= maxBatch {
				s.flush(sending)
			}
		case <-tick.C:
			s.flush(sending)
		case <-ctx.Done():
			s.finish(sending)
			return
		}
	}
}

// sender is the state of Run.
type sender struct {
	*Recorder
	batch  []*record
	warned time.Time // when a failure was last logged
}

// finish sends what is left.
func (s *sender) finish(ctx context.Context) {
	for len(s.queue) > 0 {
		s.batch = append(s.batch, <-s.queue)
		if len(s.batch) >= maxBatch {
			s.flush(ctx)
		}
	}
	s.flush(ctx)
	_ = s.exporter.Shutdown(ctx) // nothing is being sent any more
}

// flush sends the batch.
func (s *sender) flush(ctx context.Context) {
	if len(s.batch) == 0 {
		return
	}
	var spans []sdk.ReadOnlySpan
	for _, one := range s.batch {
		spans = one.appendSpans(spans, s.resource)
	}
	clear(s.batch)
	s.batch = s.batch[:0]
	if err := s.exporter.ExportSpans(ctx, spans); err != nil {
		s.failed.Add(uint64(len(spans)))
		s.warn(err, len(spans))
		return
	}
	s.sent.Add(uint64(len(spans)))
}

// warn logs a failure, at most once a minute.
func (s *sender) warn(err error, spans int) {
	if now := time.Now(); now.Sub(s.warned) >= quietFor {
		s.warned = now
		s.log.Warn("sending traces to the collector", "spans", spans, "err", err)
	}
}
