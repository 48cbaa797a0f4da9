package gateway

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

// A Tracer keeps what became of some requests. It is safe for concurrent use.
type Tracer interface {
	// Begins tells whether a trace of this id, which begins here, is recorded. It
	// runs for every request and does not allocate.
	Begins(id *[32]byte) bool

	// Done takes a finished exchange that is recorded, of which it keeps nothing.
	Done(ex *pipeline.Exchange)
}

// join makes a request part of the trace that its caller is in, or of one that
// begins here: where traces are recorded, and where the caller's is not what it
// should be. A trace that is not recorded here is left as it is.
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
	if g.tracer != nil && t.Flags&pipeline.Sampled != 0 && !ex.Dry {
		t.Steps = new(pipeline.Steps)
	}
}

// setSpan fills the id of a span, which is not 0.
func setSpan(id *[16]byte) {
	bits := rand.Uint64() | 1
	binary.LittleEndian.PutUint64(id[0:], hex(uint32(bits)))
	binary.LittleEndian.PutUint64(id[8:], hex(uint32(bits>>32)))
}

// pass has an exchange walk a list of stages.
func (g *Gateway) pass(ex *pipeline.Exchange, part uint8, stages []pipeline.Stage) pipeline.Verdict {
	if ex.Trace.Steps == nil {
		return pipeline.Run(stages, ex)
	}
	start := time.Now()
	return pipeline.Walk(stages, ex, func(at int, _ pipeline.Stage, v pipeline.Verdict) {
		ex.Stopped = uint8(at)
		start = noteStep(ex, part, start, v)
	})
}

// ask has an exchange answered by what stands behind the stages.
func (g *Gateway) ask(ex *pipeline.Exchange) pipeline.Verdict {
	if ex.Trace.Steps == nil {
		return ex.Version.Forward.Handle(ex)
	}
	start := time.Now()
	v := ex.Version.Forward.Handle(ex)
	noteStep(ex, inForward, start, v)
	return v
}

// noteStep notes a step that began at start and has just ended.
func noteStep(ex *pipeline.Exchange, part uint8, start time.Time, v pipeline.Verdict) time.Time {
	now := time.Now()
	ex.Trace.Steps.List = append(ex.Trace.Steps.List, pipeline.Step{Name: nameOf(explain.Place{List: part, Kind: kindOf(ex, part)}), Start: start, End: now, Verdict: v})
	return now
}
