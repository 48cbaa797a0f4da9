package transform

import "github.com/sluicegate/sluice/gateway/pipeline"

// request changes the headers of calls.
type request struct{ *rules }

// Handle changes what goes upstream.
func (r request) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	h := r.of(ex)
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
		out.Extra = pipeline.RemoveLines(out.Extra, h.names)
	}
	out.Extra = h.append(out.Extra, ex)
	return pipeline.Next
}

// Explain tells which headers are changed.
func (r request) Explain(ex *pipeline.Exchange, f *pipeline.Finding) { r.explain(ex, f) }

// response changes the headers of answers.
type response struct{ *rules }

// Handle changes the answer.
func (r response) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if h := r.of(ex); h != nil {
		a := ex.Answer
		a.Lines = h.append(pipeline.RemoveLines(a.Lines, h.names), ex)
	}
	return pipeline.Next
}

// Explain tells which headers of an answer would be changed.
func (r response) Explain(ex *pipeline.Exchange, f *pipeline.Finding) { r.explain(ex, f) }
