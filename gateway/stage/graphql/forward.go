package graphql

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql/request"
	"github.com/sluicegate/sluice/gateway/vars"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// Forward returns the stage that answers admitted requests: itself if the response
// follows from the schema, otherwise by upstream.
func (s *Stage) Forward(upstream pipeline.Stage) pipeline.Stage {
	return forward{upstream, s.headers, s.streams}
}

type forward struct {
	upstream pipeline.Stage
	headers  *vars.Headers // nil: headers are not changed
	streams  streams
}

// Handle answers a request.
func (f forward) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	w, ok := ex.Held.(*work)
	if !ok || w.local == nil {
		if f.headers != nil && len(ex.Operations) > 0 {
			f.headers.Apply(ex)
		}
		if ok && ex.Live != nil && w.asked != nil {
			ex.Live.Limits = f.streams.limits(ex)
		}
		if graph, is := f.upstream.(subscriber); is {
			if ok && ex.Live != nil && w.asked != nil && !ex.IsDry() {
				return f.trigger(ex, graph, w.asked)
			}
			return graph.Handle(ex)
		}
		if ok && ex.Live != nil && ex.Live.Events {
			return f.events(ex, w)
		}
		if ok && w.asked != nil {
			f.streams.subscribe(ex, w.asked)
		}
		return f.upstream.Handle(ex)
	}
	a := ex.Answer
	a.Status, a.Body = 200, w.local
	a.Lines = append(a.Lines, "Content-Type: "...)
	a.Lines = append(a.Lines, w.head.Media...)
	a.Lines = append(a.Lines, "\r\n"...)
	if ex.Call.IsHead() {
		a.NoBody, a.Length = true, int64(len(w.local))
	}
	return pipeline.Answered
}

// dropParameters removes what a GraphQL server could read from the forwarded URL.
func (w *work) dropParameters(ex *pipeline.Exchange) {
	if query := ex.Query(); w.decoder.HasParameters(query) { // may share memory with the result
		ex.Outgoing.Query = w.decoder.AppendOthers(ex.Outgoing.Query[:0], query)
		ex.Outgoing.HasQuery = true
	}
}

// asJSON gives the forwarded request the media type by which its body was read.
func (w *work) asJSON(ex *pipeline.Exchange) {
	ex.Outgoing.Rewrite("Content-Type")
	ex.Outgoing.Extra = append(ex.Outgoing.Extra, "Content-Type: application/json\r\n"...)
}

// expand writes a document into the forwarded request.
func (w *work) expand(ex *pipeline.Exchange, r *request.Request) {
	if !w.get {
		w.out = appendRequest(w.out[:0], r)
		ex.Call.SetBody(w.out)
		return
	}
	q := w.decoder.AppendOthers(ex.Outgoing.Query[:0], ex.Query())
	ex.Outgoing.Query, ex.Outgoing.HasQuery = r.AppendParameters(q), true
}

// expandAll is expand for a batch. The result has at most most bytes, because a
// short batch can name many long documents.
func (w *work) expandAll(ex *pipeline.Exchange, list []request.Request, most int) *pipeline.Rejection {
	w.out = append(w.out[:0], '[')
	for i := range list {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.out = appendRequest(w.out, &list[i])
		if len(w.out) >= most {
			return expandedTooLarge
		}
	}
	w.out = append(w.out, ']')
	ex.Call.SetBody(w.out)
	return nil
}

var expandedTooLarge = request.Refusal(pipeline.ReasonBodyTooLarge, 413, "The documents that the batch names are larger together than a request body may be.")

// appendRequest appends a request as JSON.
func appendRequest(b []byte, r *request.Request) []byte {
	b = append(b, `{"query":`...)
	b = jsonscan.AppendString(b, r.Query)
	if len(r.Operation) > 0 {
		b = append(b, `,"operationName":`...)
		b = jsonscan.AppendString(b, r.Operation)
	}
	if r.Variables != nil {
		b = append(b, `,"variables":`...)
		b = append(b, r.Variables...)
	}
	return append(b, '}')
}
