package gateway

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// A Tracer records some requests. It is safe for concurrent use.
type Tracer interface {
	// Begins reports whether a trace of this id, which begins here, is recorded. It
	// runs for every request and does not allocate.
	Begins(id *[32]byte) bool

	// Done records a finished exchange. It keeps no reference to it.
	Done(ex *pipeline.Exchange)
}

// join makes a request part of its caller's trace, or begins a trace where traces
// are recorded or the caller's trace header is malformed. A trace that is not
// recorded here passes unchanged.
func (g *Gateway) join(ex *pipeline.Exchange) {
	t := &ex.Trace
	t.Read(ex.Call)
	known := t.Known()
	switch {
	case known && (g.tracer == nil || t.Flags&pipeline.Sampled == 0):
		return
	case !known && g.tracer == nil && !t.Own:
		return
	}
	if !known {
		t.ID = ex.ID
		if g.tracer != nil && g.tracer.Begins(&t.ID) {
			t.Flags = pipeline.Sampled
		}
	}
	setSpan(&t.Span)
	t.Own = true
	if g.tracer != nil && t.Flags&pipeline.Sampled != 0 && !ex.IsDry() {
		t.Steps = new(pipeline.Steps)
	}
}

// setSpan sets a span id, which is never 0.
func setSpan(id *[16]byte) {
	bits := rand.Uint64() | 1
	binary.LittleEndian.PutUint64(id[0:], hex(uint32(bits)))
	binary.LittleEndian.PutUint64(id[8:], hex(uint32(bits>>32)))
}

// pass runs a list of stages, and records each when the request is traced.
func (g *Gateway) pass(ex *pipeline.Exchange, stages []pipeline.CompiledStage) pipeline.Verdict {
	if ex.Live != nil && ex.Live.Again {
		return pipeline.RunOnly(stages, ex, pipeline.Uncounted)
	}
	if ex.Trace.Steps == nil {
		return pipeline.Run(stages, ex)
	}
	start := time.Now()
	return pipeline.Walk(stages, ex, func(s pipeline.CompiledStage, v pipeline.Verdict) {
		start = addStep(ex, s.Kind, start, v)
	})
}

// forward calls the upstream of the version.
func (g *Gateway) forward(ex *pipeline.Exchange) pipeline.Verdict {
	if ex.Trace.Steps == nil {
		return ex.Version.Forward.Handle(ex)
	}
	start := time.Now()
	v := ex.Version.Forward.Handle(ex)
	addStep(ex, forwarding, start, v)
	return v
}

// addStep records a step that began at start and ends now, which it returns.
func addStep(ex *pipeline.Exchange, kind *pipeline.StageKind, start time.Time, v pipeline.Verdict) time.Time {
	now := time.Now()
	ex.Trace.Steps.List = append(ex.Trace.Steps.List, pipeline.Step{Name: kind.Name, Start: start, End: now, Verdict: v})
	return now
}
