package transform

import (
	"github.com/sluicegate/sluice/gateway/pipeline"

	"github.com/sluicegate/sluice/internal/http1"
)

// request changes request headers.
type request struct{ *rules }

// Handle implements pipeline.Stage.
func (r request) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	h := r.find(ex)
	if h == nil {
		return pipeline.Next
	}
	out := &ex.Outgoing
	if len(out.Drop) == 0 {
		out.Drop = h.names
	} else {
		for _, name := range h.names {
			out.AlsoDrop(name)
		}
	}
	if len(out.Extra) > 0 {
		out.Extra = http1.RemoveLines(out.Extra, h.names...)
	}
	out.Extra = h.append(out.Extra, ex)
	return pipeline.Next
}

// Explain implements pipeline.Explainer.
func (r request) Explain(ex *pipeline.Exchange, f *pipeline.Finding) { r.explain(ex, f) }

// response changes response headers.
type response struct{ *rules }

// Handle implements pipeline.Stage.
func (r response) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if h := r.find(ex); h != nil {
		a := ex.Answer
		a.Lines = h.append(http1.RemoveLines(a.Lines, h.names...), ex)
	}
	return pipeline.Next
}

// Explain implements pipeline.Explainer.
func (r response) Explain(ex *pipeline.Exchange, f *pipeline.Finding) { r.explain(ex, f) }
